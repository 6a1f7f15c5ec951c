#include "tools/report/same_recording.h"

#include <gtest/gtest.h>

#include "tests/support/sample.h"

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
  EXPECT_NE(refused(true, false).find("the run was of another program"), std::string::npos);
}

TEST_F(SameRecording, ARunUnderAnotherPlanIsRefused) {
  plan_.iteration_hash = 0x78;
  EXPECT_NE(refused(false, true).find("the run had another plan"), std::string::npos);
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
  other.tensors[2].recorded_allocation = 99;
  EXPECT_EQ(refused(other).find("the plans are of different iterations"), 0u) << "calls alike, tensors not";
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
  EXPECT_TRUE(check_same_iteration(trace_, 0x77, &plan_, nullptr).ok());
  for (plan::Call& call : plan_.calls) call.signature = 5;
  EXPECT_NE(check_same_iteration(trace_, 0x99, &plan_, nullptr).message().find("made of another recording"),
            std::string::npos);
  // Of another part of the trace: its ops are there, in this order.
  uint64_t next = 100;
  for (trace::Event& event : trace_.events) {
    if (auto* const op = std::get_if<trace::Op>(&event)) op->record.signature = next++;
  }
  next = 100;
  for (plan::Call& call : plan_.calls) call.signature = call.kind == plan::CallKind::op ? next++ : 0;
  EXPECT_TRUE(check_same_iteration(trace_, 0x99, &plan_, nullptr).ok());
}

TEST_F(SameRecording, AReplayOfAnotherIterationIsRefused) {
  log_.recording = 0;
  EXPECT_TRUE(check_same_iteration(trace_, 0x77, nullptr, &log_).ok());
  EXPECT_NE(check_same_iteration(trace_, 0x78, nullptr, &log_).message().find("then give the plan, too"),
            std::string::npos);
}

}  // namespace
}  // namespace reprise::tools
