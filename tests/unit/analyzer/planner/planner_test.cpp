// From a trace to a verified plan, end to end.
#include "analyzer/planner/planner.h"

#include <fmt/core.h>

#include "analyzer/base/parallel.h"
#include "analyzer/verify/verify.h"
#include "preload/base/readable.h"
#include "tests/support/graph_builder.h"
#include "tests/support/test.h"
#include "tests/support/trace_builder.h"

namespace reprise::analyzer {
namespace {

// Whatever the rest is: a plan for it keeps nothing of the program within a budget.
TEST(Planner, OneCallOrNextToNothingIsNoIteration) {
  const auto why = [](const std::vector<std::string>& repeats, int times, uint64_t once_ns, PlanOptions options = {}) {
    testing::TraceBuilder program;
    const uint64_t w = program.allocate(testing::kChunk);
    for (int i = 0; once_ns > 0 && i < 40; ++i) {
      program.launch("layer" + std::to_string(i), {testing::updates(w)}, once_ns);
    }
    for (int i = 0; i < times; ++i) {
      for (const std::string& name : repeats) program.launch(name, {testing::updates(w)}, 1000);
    }
    const Result<Workload> made = Planning(program.trace(), options).workload();
    if (made.ok()) return std::to_string(made.value().iteration.call_count) + " calls";
    EXPECT_EQ(made.status().code(), StatusCode::not_found);
    return made.status().message();
  };
  const std::string once =
      " times, 0 % of the recorded device time; most of what it does happens only once; at least three equal "
      "iterations must be recorded";
  const std::string one = "what repeats is one call, in which nothing can move, ";
  EXPECT_EQ(why({"a"}, 3, 1'000'000), "no iteration found in 44 calls: " + one + "3" + once);
  EXPECT_EQ(why({"a", "b"}, 4, 1'000'000), "no iteration found in 49 calls: what repeats are 2 calls, 4" + once);
  EXPECT_EQ(why({"a"}, 100, 0),
            "no iteration found in 101 calls: " + one + "100 times, 100 % of the recorded device time");
  EXPECT_EQ(why({"a", "b"}, 100, 0), "2 calls");
  EXPECT_EQ(why({"a", "b"}, 40, 50'000), "2 calls") << "3.8 % of the time";
  PlanOptions any;
  any.wanted.least_calls = 1;
  EXPECT_EQ(why({"a"}, 3, 1'000'000, any), "1 calls");
}

using namespace testing;

Result<plan::Plan> plan_for(const trace::Trace& trace, uint64_t budget, const char* policy = "auto") {
  PlanOptions options;
  options.budget_bytes = budget;
  options.policy = policy;
  return Planning(trace, options).plan();
}

TEST(Planner, MovesNothingWhenEverythingFits) {
  const trace::Trace trace = train_chain(6, 4 * kChunk, 3);
  PlanOptions options;
  options.budget_fraction = 1.0;
  const auto plan = good(Planning(trace, options).plan());
  EXPECT_EQ(plan.offload_bytes, 0u);
  EXPECT_EQ(plan.reload_bytes, 0u);
  EXPECT_EQ(plan.peak_bytes, 13 * 4 * kChunk);
  EXPECT_EQ(plan.predicted_ns, plan.compute_ns);
}

TEST(Planner, PlansDownToTheLargestWorkingSet) {
  const trace::Trace trace = train_chain(6, 4 * kChunk, 3);
  uint64_t last = 0;
  for (uint64_t units = 13; units >= 3; --units) {
    const Result<plan::Plan> plan = plan_for(trace, units * 4 * kChunk);
    ASSERT_TRUE(plan.ok()) << units << ": " << plan.status().message();
    EXPECT_LE(plan.value().chunk_count, units * 4);
    EXPECT_GE(plan.value().reload_bytes, last) << units;
    last = plan.value().reload_bytes;
  }
  EXPECT_GT(last, 0u);
}

// The program frees ahead of the device, mostly before the iteration has begun there.
TEST(Planner, ReleasesAreBehindWhatUsesTheTensor) {
  const auto planned = good(plan_for(train_chain(6, 4 * kChunk, 3), 6 * 4 * kChunk));
  const plan::Plan& plan = planned;
  size_t releases = 0;
  for (const plan::Call& call : plan.calls) {
    if (call.kind != plan::CallKind::op) continue;
    const uint64_t done = plan.vertices[call.vertex].predicted_end_ns;
    for (const plan::OpAccess& access : call.accesses) {
      if (is_persistent(plan.tensors[access.tensor])) continue;
      const uint32_t release = plan.calls[plan.tensors[access.tensor].free_call].vertex;
      EXPECT_GE(plan.vertices[release].predicted_start_ns, done) << release;
      EXPECT_GE(plan.vertices[release].predicted_end_ns, plan.vertices[release].predicted_start_ns);
      ++releases;
    }
  }
  EXPECT_GT(releases, 0u);
}

TEST(Planner, SaysWhichKernelNeedsMore) {
  const trace::Trace trace = train_chain(6, 4 * kChunk, 3);
  const Result<plan::Plan> plan = plan_for(trace, 12 * kChunk - 1);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), StatusCode::infeasible);
  EXPECT_TRUE(has(plan.status().message(), "forward"));
  // To be typed, and as all other messages show sizes.
  const std::string least = fmt::format("at least {} bytes ({}) are needed", 12 * kChunk, readable_bytes(12 * kChunk));
  EXPECT_TRUE(has(plan.status().message(), least));
}

TEST(Planner, ItsSizesForPeopleAreAsInAllOtherMessages) {
  plan::Plan plan;
  plan.peak_bytes = uint64_t{3} << 30;
  plan.chunk_bytes = 2 << 20;
  const std::string text = explain(plan, {});
  EXPECT_TRUE(has(text, "memory      peak 3.0 GiB, budget 0 B,"));
  EXPECT_TRUE(has(text, " chunks of 2.0 MiB,"));
}

// Each part of the smallest budget is named, with its bytes, and none that is nothing.
TEST(Planner, SaysThatSmallTensorsAreWhatStays) {
  const auto message = [](uint64_t tensor_bytes, uint64_t held) {
    const trace::Trace trace = train_chain(6, tensor_bytes, 3);
    PlanOptions options;
    options.budget_bytes = kChunk;
    options.held_bytes = held;
    const Result<plan::Plan> plan = Planning(trace, options).plan();
    EXPECT_EQ(plan.status().code(), StatusCode::infeasible) << tensor_bytes;
    return plan.status().message();
  };
  for (const uint64_t bytes : {kChunk / 2 - 1, kChunk / 3, kChunk / 5}) {
    const std::string said = message(bytes, 0);
    EXPECT_FALSE(has(said, "works on"));
    EXPECT_TRUE(has(said, "are kept by tensors smaller than half a chunk of " + std::to_string(kChunk) + " bytes"));
    EXPECT_FALSE(has(said, "batch smaller"));
    EXPECT_FALSE(has(said, "around them"));
  }
  const std::string large = message(4 * kChunk, 3 * kChunk);
  EXPECT_TRUE(has(large, "works on " + std::to_string(12 * kChunk)));
  EXPECT_TRUE(has(large, "the program holds " + std::to_string(3 * kChunk)));
  EXPECT_FALSE(has(large, "smaller than half"));
  EXPECT_TRUE(has(large, "at least " + std::to_string(15 * kChunk)));
}

// Small tensors of a set-up that share a block with those of the iteration, which a plan keeps apart.
trace::Trace small_beside_large(int small, uint64_t large_chunks) {
  TraceBuilder program;
  std::vector<Use> uses;
  for (int i = 0; i < small; ++i) uses.push_back(updates(program.allocate(kChunk / 4)));
  for (int step = 0; step < 3; ++step) {
    std::vector<uint64_t> brief;
    for (int i = 0; i < small; ++i) brief.push_back(program.allocate(kChunk / 4));
    const uint64_t large = program.allocate(large_chunks * kChunk);
    std::vector<Use> all = uses;
    for (const uint64_t one : brief) all.push_back(writes(one));
    all.push_back(updates(large));
    program.launch("mix", all);
    program.free(large);
    for (const uint64_t one : brief) program.free(one);
    program.synchronize();
  }
  return program.trace();
}

// A plan may take more than the program does without one: then all that the program has is enough.
TEST(Planner, NamesNoBudgetAboveWhatTheProgramTakes) {
  int above = 0;
  for (const int small : {1, 2, 3, 5, 6, 7}) {
    for (const uint64_t chunks : {1u, 2u, 5u}) {
      const auto made = good(Planning(small_beside_large(small, chunks), {}).workload());
      const Workload& workload = made;
      const uint64_t least = least_budget(workload);
      EXPECT_LE(least, workload.peak_bytes);
      PlanOptions options;
      options.budget_bytes = least - 1;
      const std::string said = make_plan(workload, options).status().message();
      EXPECT_TRUE(has(said, "at least " + std::to_string(least) + " bytes"));
      options.budget_bytes = budget_as_run(workload, least);
      const Result<plan::Plan> plan = make_plan(workload, options);
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      EXPECT_LE(plan.value().minimum_bytes, workload.peak_bytes);
      if (workload.minimum_bytes <= workload.peak_bytes) continue;
      ++above;
      EXPECT_EQ(least, workload.peak_bytes);
      EXPECT_EQ(plan.value().offload_bytes + plan.value().reload_bytes, 0u);
      EXPECT_TRUE(has(said, "give that much, and nothing has to move"));
      // What is kept is more than what is needed: both figures are named, with what each is of.
      EXPECT_TRUE(has(said, ": a plan takes " + std::to_string(workload.minimum_bytes) + " bytes"));
      EXPECT_TRUE(has(said, "the program without one " + std::to_string(least) + " bytes"));
      options.budget_bytes = least;
      const std::string fits = make_plan(workload, options).status().message();
      EXPECT_TRUE(has(fits, "nothing has to move, and nothing is planned"));
    }
  }
  EXPECT_GT(above, 0) << "otherwise this test shows nothing";
}

// What is asked about may be the last part of a recording; the program's peak is not only that part's.
TEST(Planner, ThePeakOfAStretchIsTheProgramsPeak) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk);
  program.free(program.allocate(9 * kChunk));
  PlanOptions options;
  options.wanted.from_call = program.next_sequence();
  for (int step = 0; step < 3; ++step) {
    program.launch("first", {updates(w)});
    program.launch("second", {updates(w)});
  }
  EXPECT_EQ(good(Planning(program.trace(), options).workload()).peak_bytes, 10 * kChunk);
}

TEST(Planner, EveryPolicyGivesAVerifiedPlan) {
  const trace::Trace trace = train_chain(8, 3 * kChunk - 5, 3);
  for (const char* policy : {"disco", "link_aware", "g10", "g10_late", "gemini", "lru", "auto"}) {
    const Result<plan::Plan> plan = plan_for(trace, 24 * kChunk, policy);
    ASSERT_TRUE(plan.ok()) << policy << ": " << plan.status().message();
    EXPECT_TRUE(verify(plan.value()).ok());
    EXPECT_GT(plan.value().reload_bytes, 0u);
  }
  EXPECT_EQ(plan_for(trace, 24 * kChunk, "magic").status().code(), StatusCode::invalid_argument);
}

// 300 tensors, forth and back again and again: more ops than a portfolio has time for.
TEST(Planner, VeryLargeGraphsArePlannedInHaste) {
  GraphBuilder builder(1);
  for (uint32_t t = 0; t < 300; ++t) builder.persistent(0);
  for (uint32_t i = 0; i < 20'400; ++i) {
    const uint32_t at = i % 600;
    builder.kernel(0, "step", {at < 300 ? at : 599 - at}, {});
  }
  PlanOptions options;
  const auto workload = good(make_workload(builder.build(), options));
  for (const char* policy : {"reprise", "auto"}) {
    for (const double fraction : {0.5, 1.0}) {
      options.policy = policy;
      options.budget_fraction = fraction;
      PlanSummary summary;
      const auto plan = good(make_plan(workload, options, &summary));
      EXPECT_LE(summary.candidates, 6u);
      EXPECT_EQ(plan.reload_bytes == 0, fraction == 1.0);
    }
  }
}

TEST(Planner, NeedsABudget) {
  EXPECT_EQ(plan_for(train_chain(2, kChunk, 2), 0).status().code(), StatusCode::invalid_argument);
}

TEST(Planner, SamePlanForTheSameTrace) {
  const trace::Trace trace = train_chain(8, 3 * kChunk, 3);
  const Result<plan::Plan> a = plan_for(trace, 20 * kChunk), b = plan_for(trace, 20 * kChunk);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(plan::serialize(a.value()), plan::serialize(b.value()));
}

// Forward and backward through layers: each keeps an activation, and has a weight.
testing::TraceBuilder many_layers(size_t layers) {
  testing::TraceBuilder program;
  std::vector<uint64_t> weights;
  for (size_t i = 0; i < layers; ++i) weights.push_back(program.allocate(testing::kChunk * (1 + i % 3)));
  for (int step = 0; step < 4; ++step) {
    std::vector<uint64_t> kept;
    for (size_t i = 0; i < layers; ++i) {
      kept.push_back(program.allocate(testing::kChunk * 2));
      program.launch("forward", {testing::reads(weights[i]), testing::writes(kept[i])}, 200'000);
    }
    for (size_t i = layers; i-- > 0;) {
      program.launch("backward", {testing::reads(kept[i]), testing::updates(weights[i])}, 400'000);
      program.free(kept[i]);
    }
  }
  return program;
}

TEST(Planner, TheFirstPlanIsThereAtOnceAndTheOtherOneIsBetter) {
  testing::TraceBuilder program = many_layers(kFirstPlanOps / 2);
  PlanOptions options;
  options.budget_fraction = 0.6;
  const Result<Workload> workload = Planning(program.trace(), options).workload();
  ASSERT_TRUE(workload.ok()) << workload.status().message();
  ASSERT_GE(workload.value().graph.op_count, kFirstPlanOps);
  PlanSummary first_summary;
  const Result<plan::Plan> first = make_first_plan(workload.value(), options, &first_summary);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_TRUE(verify(first.value()).ok());
  EXPECT_LE(first_summary.candidates, 20u);
  EXPECT_EQ(plan::serialize(first.value()), plan::serialize(make_first_plan(workload.value(), options).value()));
  const Result<plan::Plan> better = make_plan(workload.value(), options);
  ASSERT_TRUE(better.ok()) << better.status().message();
  EXPECT_LE(better.value().predicted_ns, first.value().predicted_ns);
  EXPECT_EQ(better.value().iteration_hash, first.value().iteration_hash) << "of the same loop";
  EXPECT_EQ(plan::serialize(better.value()), plan::serialize(make_plan(workload.value(), options).value()));
}

// Some links and budgets lead to homes for all, which are searched for, others to few or none.
TEST(Planner, PlansTheSameOnOneProcessorAndOnFour) {
  testing::TraceBuilder program = many_layers(30);
  PlanOptions options;
  options.policy = "reprise";
  options.machine = machine_of(program.trace());
  options.machine->remap_ns_per_chunk = 80'000;
  for (const double rate : {5e9, 20e9}) {
    options.machine->h2d_bytes_per_s = options.machine->d2h_bytes_per_s = rate;
    for (const double fraction : {0.5, 0.8}) {
      options.budget_fraction = fraction;
      const Result<Workload> workload = Planning(program.trace(), options).workload();
      ASSERT_TRUE(workload.ok()) << workload.status().message();
      std::set<std::string> plans;
      for (const size_t processors : {1u, 4u}) {
        processors_wished = processors;
        const Result<plan::Plan> plan = make_plan(workload.value(), options);
        processors_wished = 0;
        ASSERT_TRUE(plan.ok()) << plan.status().message();
        plans.insert(plan::serialize(plan.value()));
      }
      EXPECT_EQ(plans.size(), 1u) << rate << " " << fraction;
    }
  }
}

}  // namespace
}  // namespace reprise::analyzer
