#include <gtest/gtest.h>

#include "tests/support/sample.h"
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
  EXPECT_NE(moves.at("text").get<std::string>().find("by B alone 2 (4.0 MiB out"), std::string::npos)
      << moves.at("text");
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
