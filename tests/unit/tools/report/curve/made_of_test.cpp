// Whether a plan was made of a recording, where another one has the same calls.
#include "tools/report/curve/made_of.h"

#include "analyzer/planner/planner.h"
#include "tests/support/test.h"
#include "tests/support/trace_builder.h"

namespace reprise::report {
namespace {

using analyzer::testing::kChunk;
using analyzer::testing::reads;
using analyzer::testing::TraceBuilder;
using analyzer::testing::updates;
using analyzer::testing::writes;

constexpr int kSteps = 6;

plan::Plan plan_of(const trace::Trace& trace, analyzer::PlanOptions options = {}) {
  if (options.budget_bytes == 0) options.budget_fraction = 0.75;
  const Result<plan::Plan> plan = analyzer::Planning(trace, options).plan();
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? plan.value() : plan::Plan();
}

void allocate_and_free(TraceBuilder& program) { program.free(program.allocate(kChunk)); }

// Weights, and what each step makes and gives up; `between` is done before each step.
trace::Trace training(const std::function<void(TraceBuilder&, int)>& between = {}) {
  TraceBuilder program;
  const uint64_t weights = program.allocate(4 * kChunk), state = program.allocate(4 * kChunk);
  for (int step = 0; step < kSteps; ++step) {
    if (between) between(program, step);
    const uint64_t passing = program.allocate(2 * kChunk);
    program.launch("forward", {reads(weights), writes(passing)});
    program.launch("backward", {updates(weights), reads(passing)});
    program.free(passing);
    program.launch("update", {updates(state)});
  }
  trace::Trace trace = program.trace();
  trace.ended = true;
  return trace;
}

TEST(MadeOf, APlanIsOfItsRecordingAndOfOneWithTheSameNumbers) {
  const trace::Trace trace = training();
  const plan::Plan plan = plan_of(trace);
  EXPECT_TRUE(is_made_of(plan, trace));
  EXPECT_TRUE(is_made_of(plan, training()));
  analyzer::PlanOptions parts;
  parts.split_tensors = true;
  EXPECT_TRUE(is_made_of(plan_of(trace, parts), trace));
}

TEST(MadeOf, OtherNumbersInTheLoopAreAnotherRecording) {
  const plan::Plan plan = plan_of(training());
  const auto evaluating = [](int at, int times) {
    return training([at, times](TraceBuilder& program, int step) {
      for (int i = 0; step == at && i < times; ++i) allocate_and_free(program);
    });
  };
  for (const trace::Trace& other : {evaluating(0, kSteps), evaluating(kSteps - 1, 1)}) {
    EXPECT_FALSE(is_made_of(plan, other)) << "the number of what was passing is that of something else";
    EXPECT_TRUE(is_made_of(plan_of(other), other));
  }
  EXPECT_TRUE(is_made_of(plan, evaluating(0, 1))) << "it is that of the same tensor, an iteration before";
}

// The iteration that a plan was made of is not there where the file ends early; what lives on can still be told.
TEST(MadeOf, OfARecordingThatIsCutShortWhatLivesOnIsCompared) {
  const plan::Plan plan = plan_of(training());
  trace::Trace beginning = training();
  beginning.events.resize(8);
  EXPECT_FALSE(is_made_of(plan, beginning)) << "it ended, and never had that iteration";
  beginning.ended = false;
  EXPECT_TRUE(is_made_of(plan, beginning));
  std::get<trace::Allocate>(beginning.events[0]).record.size = kChunk;
  EXPECT_FALSE(is_made_of(plan, beginning));
}

// All is allocated before the loop, in sizes that tell nothing: only what the calls touch does.
trace::Trace in_place(bool spare_first, uint64_t size = 4 * kChunk) {
  TraceBuilder program;
  if (spare_first) program.allocate(size);
  const uint64_t weights = program.allocate(size), state = program.allocate(size), buffer = program.allocate(size);
  if (!spare_first) program.allocate(size);
  for (int step = 0; step < kSteps; ++step) {
    program.launch("forward", {reads(weights), writes(buffer)});
    program.launch("backward", {updates(weights), reads(buffer)});
    program.launch("update", {updates(state)});
  }
  return program.trace();
}

TEST(MadeOf, ALoopThatAllocatesNothingIsToldByWhatItTouches) {
  const trace::Trace trace = in_place(false);
  const plan::Plan plan = plan_of(trace);
  EXPECT_TRUE(is_made_of(plan, trace));
  EXPECT_FALSE(is_made_of(plan, in_place(true)));
  EXPECT_FALSE(is_made_of(plan, in_place(false, 6 * kChunk)));
}

TEST(MadeOf, WhatIsHandedOverGoesOnUnderItsNextNumber) {
  const auto handing_over = [](bool first) {
    TraceBuilder program;
    if (first) allocate_and_free(program);
    const uint64_t weights = program.allocate(4 * kChunk), state = program.allocate(4 * kChunk);
    uint64_t loss = program.allocate(2 * kChunk);
    for (int step = 0; step < kSteps; ++step) {
      program.launch("forward", {reads(weights), reads(loss)});
      program.free(loss);
      loss = program.allocate(2 * kChunk);
      program.launch("loss", {updates(weights), writes(loss)});
      program.launch("update", {updates(state)});
    }
    return program.trace();
  };
  const plan::Plan plan = plan_of(handing_over(false));
  EXPECT_TRUE(is_made_of(plan, handing_over(false)));
  EXPECT_FALSE(is_made_of(plan, handing_over(true)));
}

}  // namespace
}  // namespace reprise::report
