#include "tools/report/same_recording.h"

#include "analyzer/planner/planner.h"
#include "tests/support/sample.h"
#include "tests/support/test.h"
#include "tests/support/trace_builder.h"
#include "tools/export/redact.h"
#include "tools/report/log/redacted.h"

namespace reprise::tools {
namespace {

class SameRecording : public testing::Test {
 protected:
  void SetUp() override {
    trace_.info["program.hash"] = "00000000000000ab";
    trace_.info["time.start_ns"] = "1234";
    plan_.program_hash = 0xab;
    plan_.iteration_hash = 0x77;
    log_ = report::parse_run_log(
        "{\"kind\":\"start\",\"program_hash\":\"00000000000000ab\",\"recording\":1234}\n"
        "{\"kind\":\"plan\",\"index\":0,\"iteration_hash\":\"0000000000000077\"}\n");
  }
  void use_files_of_one_recording() {
    analyzer::testing::TraceBuilder program;
    const uint64_t kept = program.allocate(4 << 20), other = program.allocate(8 << 20);
    for (int step = 0; step < 5; ++step) {
      program.launch("read", {analyzer::testing::reads(kept), analyzer::testing::writes(other)});
      program.launch("update", {analyzer::testing::updates(other)});
    }
    trace_ = program.trace();
    analyzer::PlanOptions options;
    options.budget_fraction = 1;
    plan_ = analyzer::Planning(trace_, options).plan().value();
  }
  std::string refused(bool with_trace = true, bool with_plan = true) const {
    return check_same_recording(with_trace ? &trace_ : nullptr, with_plan ? &plan_ : nullptr, &log_).message();
  }

  trace::Trace trace_ = test::sample_trace();
  plan::Plan plan_ = test::sample_plan();
  report::RunLog log_;
};

TEST_F(SameRecording, WhatBelongsTogetherPasses) {
  EXPECT_EQ(refused(), "");
  log_.recording = 0;  // of a replay: it recorded nothing
  EXPECT_EQ(refused(), "");
}

TEST_F(SameRecording, ARunAndATraceOfDifferentRecordingsAreRefused) {
  trace_.info["time.start_ns"] = "5678";
  EXPECT_EQ(refused(true, false), "the run made another recording than this trace; give those that belong together");
}

TEST_F(SameRecording, ARunOfAnotherProgramIsRefused) {
  trace_.info["program.hash"] = "00000000000000cd";
  EXPECT_TRUE(has(refused(true, false), "the run was of another program"));
}

TEST_F(SameRecording, ARunUnderAnotherPlanIsRefused) {
  plan_.iteration_hash = 0x78;
  EXPECT_TRUE(has(refused(false, true), "the run had another plan"));
}

TEST_F(SameRecording, ARunUnderAnotherPlanOfThisIterationIsRefused) {
  plan_.policy = "lru";
  plan_.budget_bytes = 32 << 20;
  plan_.predicted_ns = 2000000;
  plan_.offload_bytes = plan_.reload_bytes = 3 << 20;
  log_ = report::parse_run_log(
      R"({"kind":"plan","index":0,"iteration_hash":"0000000000000077","policy":"lru","budget_bytes":33554432,)"
      R"("predicted_ns":2000000,"offload_bytes":3145728,"reload_bytes":3145728})");
  const auto not_its_plan = [this] { return check_plan_of_run(log_, plan_).message(); };
  EXPECT_EQ(not_its_plan(), "");
  plan_.policy = "reprise";
  EXPECT_EQ(not_its_plan(),
            "the run had another plan (policy lru, 32.0 MiB, 2.0 ms predicted, 3.0 MiB back) than this one (policy "
            "reprise, 32.0 MiB, 2.0 ms predicted, 3.0 MiB back); give those that belong together");
  plan_.policy = "lru";
  plan_.budget_bytes *= 2;
  EXPECT_NE(not_its_plan(), "");
  EXPECT_EQ(refused(), not_its_plan()) << "whoever reads the two, it is the same";
  plan_.budget_bytes /= 2;
  ++plan_.offload_bytes;
  EXPECT_NE(not_its_plan(), "");
}

TEST_F(SameRecording, WhereTwoCallsOfAProgramDifferIsNamed) {
  EXPECT_EQ(differing_arguments("--batch 11 --seed 1", "--batch 8 --seed 1"), " (--batch 11 and --batch 8)");
  EXPECT_EQ(differing_arguments("--seed 1 --fast", "--seed 1"), " (--fast and without)");
  EXPECT_EQ(differing_arguments("--seed 1", "--layers 2 --seed 1"), " (without and --layers 2)");
  EXPECT_EQ(differing_arguments("--batch 11 --layers 4 --seed 1", "--batch 8 --layers 6 --seed 1"),
            " (--batch 11 --layers 4 and --batch 8 --layers 6)");
  EXPECT_EQ(differing_arguments("a.txt", "b.txt"), " (a.txt and b.txt)");
  EXPECT_EQ(differing_arguments("--seed 1", "--seed 1"), "");
  EXPECT_EQ(differing_arguments("--seed 1", ""), "") << "not known, perhaps";
  EXPECT_EQ(differing_arguments("--x=1 --x=1", "--x=1"), " (--x=1 and without)");
}

TEST_F(SameRecording, PlansOfTwoRecordingsSayHowTheProgramsWereCalled) {
  plan::Plan other = plan_;
  plan_.program = "./train --batch 11 --seed 1";
  other.program = "/opt/train --batch 8 --seed 1";
  other.iteration_hash ^= 1;
  EXPECT_TRUE(has(check_same_plans(plan_, other).message(),
                  "two recordings, of a program called with different arguments (--batch 11 and --batch 8); give"));
}

// Of what was redacted the hashes alone are known, and they decide.
TEST_F(SameRecording, RedactedFilesAreOfWhatTheirHashesSay) {
  use_files_of_one_recording();
  trace_.info["program.hash"] = "00000000000000ab";
  trace_.info["time.start_ns"] = "1234";
  plan_.program_hash = 0xab;
  log_.iteration_hashes.clear();
  exports::Redactor redactor;
  trace::Trace hidden = trace_;
  redactor.redact(hidden);
  plan::Plan other = plan_;
  redactor.redact(other);
  const auto belong = [&](const report::RunLog& log, const trace::Trace& trace, const plan::Plan& plan) {
    return check_same_recording(&trace, &plan, &log).message() + check_same_plans(plan_, plan).message() +
           check_same_iteration(trace, plan.iteration_hash, &plan, &log).message();
  };
  EXPECT_EQ(belong(log_, hidden, plan_) + belong(log_, trace_, other), "");
  log_.program = report::kRedacted;
  EXPECT_EQ(belong(log_, hidden, other), "");
  log_.recording = 5678;
  EXPECT_EQ(belong(log_, hidden, other),
            "the run made another recording than this trace; give those that belong together");
  log_.program_hash = "00000000000000cd";
  EXPECT_EQ(belong(log_, hidden, other),
            "the run was of another program (redacted) than the trace was recorded of (redacted); give those that "
            "belong together");
  other.program_hash = 0xcd;
  EXPECT_EQ(check_same_plans(plan_, other).message(), "the plans are of different programs (" + plan_.program +
                                                          " and redacted); give those that belong together");
  EXPECT_EQ(differing_arguments(report::kRedacted, "--seed 1"), "");
  EXPECT_EQ(differing_arguments("--seed 1", report::kRedacted), "");
}

TEST_F(SameRecording, PlansAreOfOneIterationTensorForTensor) {
  const auto refused = [&](const plan::Plan& other) { return check_same_plans(plan_, other).message(); };
  plan::Plan other = plan_;
  other.budget_bytes *= 2;
  EXPECT_EQ(refused(other), "");
  other.program_hash = 0xcd;
  other.program = "trainer-2";
  EXPECT_EQ(refused(other),
            "the plans are of different programs (trainer --steps 3 and trainer-2); give those that belong together");
  other = plan_;
  other.iteration_hash = 0x78;
  EXPECT_EQ(refused(other).find("the plans are of different iterations"), 0u) << refused(other);
  other = plan_;
  for (plan::Tensor& tensor : other.tensors) tensor.recorded_allocation += 99;
  EXPECT_EQ(refused(other), "") << "the same loop, recorded once more";
  ++other.tensors[2].size;
  const char* const calls_alone = "the plans are of the same calls, but what else is allocated differs";
  EXPECT_EQ(refused(other).find(calls_alone), 0u) << refused(other);
  other = plan_;
  other.calls[1].accesses[0].tensor = 3;
  EXPECT_EQ(refused(other).find(calls_alone), 0u) << "tensors of one size in another order";
  other = plan_;
  other.tensors.pop_back();
  EXPECT_NE(refused(other), "");
}

TEST_F(SameRecording, OldLogsDoNotSayAndPass) {
  log_ = report::parse_run_log("{\"kind\":\"start\"}\n{\"kind\":\"plan\",\"path\":\"p\"}\n");
  trace_.info["time.start_ns"] = "5678";
  plan_.iteration_hash = 1;
  EXPECT_EQ(refused(), "");
}

TEST_F(SameRecording, APlanOfCallsThatTheTraceDoesNotHaveIsRefused) {
  use_files_of_one_recording();
  const auto refused = [this](uint64_t hash) { return check_same_iteration(trace_, hash, &plan_, nullptr).message(); };
  EXPECT_EQ(refused(plan_.iteration_hash), "");
  EXPECT_EQ(refused(0x99), "") << "of another part of the trace: its ops are there, in this order";
  plan_.tensors[1].recorded_allocation = 1;
  const char* const numbers =
      "the plan was made of another recording of this loop, in which allocations have other numbers; give those that "
      "belong together";
  EXPECT_EQ(refused(plan_.iteration_hash), numbers);
  EXPECT_EQ(refused(0x99), numbers);
  for (plan::Call& call : plan_.calls) call.signature = 5;
  EXPECT_TRUE(has(refused(0x99), "the trace does not have: it was made of another recording"));
}

TEST_F(SameRecording, AReplayOfAnotherIterationIsRefused) {
  log_.recording = 0;
  EXPECT_TRUE(check_same_iteration(trace_, 0x77, nullptr, &log_).ok());
  EXPECT_TRUE(has(check_same_iteration(trace_, 0x78, nullptr, &log_).message(), "then give the plan, too"));
}

}  // namespace
}  // namespace reprise::tools
