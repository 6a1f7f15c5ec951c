

#include "tests/support/sample.h"
#include "tests/support/test.h"
#include "tools/report/compare/compare.h"
#include "tools/report/view/travels.h"

namespace reprise::report {
namespace {

constexpr uint64_t kMiB = tools::test::kMiB;

Json row_of(const Json& data, const std::string& label) {
  for (const Json& row : data.at("rows")) {
    if (row.at("label") == label) return row;
  }
  return nullptr;
}

// In A tensor 2 leaves and comes back; in B nothing does, until a test says otherwise.
class ComparePlans : public testing::Test {
 protected:
  void SetUp() override {
    std::erase_if(b_.vertices, [](const plan::Vertex& one) {
      return one.kind == plan::VertexKind::offload || one.kind == plan::VertexKind::reload;
    });
    b_.offload_bytes = b_.reload_bytes = 0;
    b_.budget_bytes = b_.peak_bytes;
    b_.chunk_count = 6;
    b_.predicted_ns = 600;
  }
  void move_in_b(uint32_t tensor, plan::VertexKind kind, bool clean = false) {
    plan::Vertex vertex;
    vertex.kind = kind;
    vertex.tensor = tensor;
    vertex.clean = clean;
    b_.vertices.push_back(vertex);
  }
  Json data(const trace::Trace* trace = nullptr) const {
    return compare_data({"a.plan", &a_, 360}, {"b.plan", &b_}, trace);
  }

  plan::Plan a_ = tools::test::sample_plan();
  plan::Plan b_ = a_;
};

TEST_F(ComparePlans, AFasterPlanInMoreMemoryIsBetter) {
  const Json data = this->data();
  EXPECT_EQ(data.at("compared"), "plans");
  EXPECT_EQ(data.at("names"), (Json{"a.plan", "b.plan"}));
  EXPECT_EQ(data.at("verdict").at("tone"), "good");
  EXPECT_EQ(compare_summary(data),
            "By B an iteration is predicted to take 20.0 % less than by A (600 ns instead of 750 ns), in 4.0 MiB more "
            "memory. Tensors that travel, of 4: by A alone 1 (8.0 MiB out and back), by B alone none, by both 0.");
  EXPECT_EQ(row_of(data, "Device memory").at("change"), "+44.4 %");
  EXPECT_EQ(row_of(data, "Device memory").at("tone"), "bad");
  EXPECT_EQ(row_of(data, "Budget").at("tone"), "note");
  EXPECT_EQ(row_of(data, "Offloaded").at("before"), "4.0 MiB");
  EXPECT_EQ(row_of(data, "Offloaded").at("after"), "0 B");
  EXPECT_EQ(row_of(data, "Offloaded").at("tone"), "good") << "nothing is less than something";
  EXPECT_EQ(row_of(data, "Tensors that travel").at("before"), "1");
  const Json bound = row_of(data, "Bound: no plan for the budget is faster");
  EXPECT_EQ(bound.at("before"), "360 ns");
  EXPECT_EQ(bound.at("after"), "") << "not known";
  EXPECT_EQ(row_of(data, "Launches for that"), nullptr) << "neither recomputes";
}

// Only the link differs: that is no merit of B's.
TEST_F(ComparePlans, PlansForTwoSafetiesPromiseDifferentThings) {
  a_.safety = plan::Safety::strict;
  b_.safety = plan::Safety::trusted;
  const Json data = this->data();
  EXPECT_EQ(data.at("verdict").at("tone"), "note");
  EXPECT_EQ(compare_summary(data).rfind("The plans promise different things, A is for --safety strict, B for trusted. "
                                        "By B an iteration is predicted to take 20.0 % less",
                                        0),
            0u)
      << compare_summary(data);
  EXPECT_EQ(row_of(data, "Safety").at("before"), "strict");
  EXPECT_EQ(row_of(data, "Safety").at("after"), "trusted");
  EXPECT_TRUE(row_of(data, "Memory-mapping calls").is_null()) << "of a strict plan it is not known";
  a_.safety = plan::Safety::trusted;
  EXPECT_FALSE(row_of(this->data(), "Memory-mapping calls").is_null());
}

TEST_F(ComparePlans, PlansForTwoLinksAreNotJudgedByTheirTimes) {
  a_.link = {"", true, 24'000'000'000, 24'000'000'000, 10'000, 80'000};
  b_.link = {"", false, 45'000'000, 35'000'000, 3'000, 60'000};
  EXPECT_EQ(compare_summary(data()).find(
                "The plans are for different links, A for 24.0 GB/s each way (assumed), B for 45.0 MB/s to the device "
                "and 35.0 MB/s back (measured), so neither is better for its times. By B an iteration is predicted to "
                "take 20.0 % less than by A (600 ns instead of 750 ns), in 4.0 MiB more memory."),
            0u)
      << compare_summary(data());
  EXPECT_EQ(data().at("verdict").at("tone"), "note");
  EXPECT_EQ(row_of(data(), "Link that it is for").at("change"), "differs");
  for (const char* label : {"Time per iteration, predicted", "Waiting for transfers, predicted", "Offloaded",
                            "Reloaded", "Tensors that travel"}) {
    EXPECT_EQ(row_of(data(), label).at("tone"), "note") << label;
  }
  EXPECT_EQ(row_of(data(), "Device memory").at("tone"), "bad") << "which is none of the link's";
}

TEST_F(ComparePlans, OtherFiguresOfTheMachineAreNamed) {
  a_.link = {"a100", false, 25'000'000'000, 25'000'000'000, 10'000, 80'000};
  b_.link = {"m.json", false, 25'000'000'000, 25'000'000'000, 10'000, 400'000};
  EXPECT_EQ(compare_summary(data()).find(
                "The plans are for different links, A for 25.0 GB/s each way, 10.0 us a copy, 80.0 us to map a chunk "
                "(a100), B for 25.0 GB/s each way, 10.0 us a copy, 400 us to map a chunk (m.json), so neither"),
            0u)
      << compare_summary(data());
}

TEST_F(ComparePlans, OneLinkThatWasMeasuredTwiceIsOneLink) {
  a_.link = {"", false, 24'000'000'000, 23'000'000'000, 9'000, 80'000};
  b_.link = {"", false, 23'500'000'000, 23'400'000'000, 11'000, 70'000};
  EXPECT_EQ(data().at("verdict").at("tone"), "good");
  EXPECT_EQ(row_of(data(), "Time per iteration, predicted").at("tone"), "good");
}

// Kernels take other times in each recording, and no plan makes them faster.
TEST_F(ComparePlans, PlansOfTwoRecordingsAreNotJudgedByTheirKernels) {
  const auto op = std::find_if(b_.calls.begin(), b_.calls.end(),
                               [](const plan::Call& call) { return call.kind == plan::CallKind::op; });
  const uint64_t before_ns = op->duration_ns;
  const auto verdict = [&](uint64_t more_ns, uint64_t predicted_ns) {
    op->duration_ns = before_ns + more_ns;
    b_.compute_ns = a_.compute_ns + more_ns;
    b_.predicted_ns = predicted_ns;
    return data().at("verdict");
  };
  const std::string rests =
      "The plans rest on different kernel times, as those of two recordings: computing alone takes ";
  for (const uint64_t much : {200u, 3000u}) {
    const Json far = verdict(much, 900);
    const std::string text = far.at("text");
    EXPECT_EQ(far.at("tone"), "note") << far;
    EXPECT_EQ(text.find(rests + "350 ns by those of A, "), 0u) << far;
    EXPECT_TRUE(has(text, " by those of B, so neither is better for its times. By B an iteration"));
    EXPECT_EQ(row_of(data(), "Time per iteration, predicted").at("tone"), "note");
    EXPECT_EQ(row_of(data(), "Device memory").at("tone"), "bad");
  }
  EXPECT_EQ(verdict(20, 770).at("tone"), "note") << "all of that may be the kernels'";
  const Json near = verdict(20, 600);
  EXPECT_EQ(near.at("tone"), "good") << near;
  EXPECT_EQ(near.at("text").get<std::string>().find(rests + "350 ns by those of A, 370 ns by those of B. By B"), 0u);
  EXPECT_EQ(row_of(data(), "Time per iteration, predicted").at("tone"), "good");
  a_.link.assumed = true;
  a_.link.h2d_bytes_per_s = a_.link.d2h_bytes_per_s = 24'000'000'000;
  const std::string both = verdict(200, 900).at("text");
  EXPECT_EQ(both.find("The plans are for different links, "), 0u) << both;
  EXPECT_TRUE(has(both, rests));
}

TEST_F(ComparePlans, WhatMovesDifferentlyIsListedMostBytesFirst) {
  move_in_b(1, plan::VertexKind::offload);
  move_in_b(1, plan::VertexKind::reload);
  move_in_b(3, plan::VertexKind::offload);
  move_in_b(3, plan::VertexKind::offload, true);
  const Json moves = data().at("moves");
  const Json none = {0, 0, 0, 0};
  ASSERT_EQ(moves.at("rows").size(), 3u) << moves.dump(1);
  EXPECT_EQ(moves.at("rows").at(0), (Json{2, 4 * kMiB, {4 * kMiB, 4 * kMiB, 0, 0}, none, 0}));
  EXPECT_EQ(moves.at("rows").at(1), (Json{3, 4 * kMiB, none, {4 * kMiB, 0, 4 * kMiB, 0}, 0}));
  EXPECT_EQ(moves.at("rows").at(2), (Json{1, 1024, none, {1024, 1024, 0, 0}, 0}));
  EXPECT_TRUE(has(moves.at("text"), "by B alone 2 (4.0 MiB out"));
}

TEST_F(ComparePlans, TheTraceSaysWhoAllocatedThem) {
  const trace::Trace trace = tools::test::sample_trace();
  const Json moves = data(&trace).at("moves");
  ASSERT_EQ(moves.at("rows").size(), 1u);
  EXPECT_EQ(moves.at("rows").at(0).at(4), 1);
  EXPECT_EQ(moves.at("stacks").at(0), "make_buffer\nmain");
}

// Two lives and two parts are one tensor of the program's.
TEST_F(ComparePlans, LivesAndPartsCountWithTheirTensor) {
  plan::Tensor again = b_.tensors[2];
  again.recompute_of = 2;
  b_.tensors.push_back(again);
  plan::Call launch;
  launch.inserted = true;
  launch.recompute_of = 1;
  b_.calls.push_back(launch);
  b_.tensors[3].size = kMiB;
  b_.tensors[3].part_of = 3;
  plan::Tensor part = b_.tensors[3];
  part.size = 3 * kMiB;
  b_.tensors.push_back(part);
  move_in_b(5, plan::VertexKind::offload);
  const std::vector<Travel> travels = travels_of(b_);
  ASSERT_EQ(travels.size(), a_.tensors.size());
  EXPECT_EQ(travels[3].bytes, 4 * kMiB);
  EXPECT_EQ(travels[3].out_bytes, 3 * kMiB);
  const Json data = this->data();
  EXPECT_EQ(data.at("moves").at("rows").at(0).at(3), (Json{0, 0, 0, 4 * kMiB}));
  EXPECT_EQ(row_of(data, "Dropped and computed again").at("after"), "4.0 MiB");
  EXPECT_EQ(row_of(data, "Launches for that").at("after"), "1");
  EXPECT_EQ(row_of(data, "Launches for that").at("tone"), "note");
}

TEST_F(ComparePlans, PlansThatDoTheSameHaveNoRows) {
  b_ = a_;
  const Json data = this->data();
  EXPECT_TRUE(data.at("moves").at("rows").empty());
  EXPECT_EQ(data.at("verdict").at("tone"), "note");
}

}  // namespace
}  // namespace reprise::report
