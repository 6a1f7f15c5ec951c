// When a plan comes back that the program has left, and of which of several.
#include "tests/unit/replay/follow/followed_program.h"

namespace reprise::replay {
namespace {

class PlanReturnTest : public FollowedProgram {};

TEST_F(PlanReturnTest, APlanThatTheProgramNeverGoesThroughIsTriedOnce) {
  use_plan();
  int begun = 0;
  for (int i = 0; i < 200; ++i) {
    begun += allocate().activate ? 1 : 0;
    kernel(6);
    free();
  }
  EXPECT_EQ(begun, 1);
  EXPECT_TRUE(follower_.known(0).never_lasts());
  EXPECT_FALSE(iteration()) << "now it does";
  EXPECT_FALSE(follower_.known(0).never_lasts());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(iteration());
}

// Each time it was gone through once the next iteration differs.
TEST_F(PlanReturnTest, APlanThatNeverLastsIsTriedEverLessButAlwaysAgain) {
  use_plan();
  std::vector<int> begun;
  for (int i = 0; i < 1000; ++i) {
    if (allocate().activate) begun.push_back(i);
    kernel(follower_.following() ? 6 : 5);
    free();
  }
  EXPECT_GE(begun.size(), 10u);
  EXPECT_LE(begun.size(), 25u);
  EXPECT_GE(begun.back(), 1000 - 65 - 1) << "64 iterations on demand lie between two at most";
  EXPECT_TRUE(follower_.known(0).never_lasts());
  for (int i = 0; i < 70; ++i) iteration();
  EXPECT_TRUE(follower_.following());
}

// Half of an iteration, as of an evaluation that makes the first calls of a step.
TEST_F(PlanReturnTest, WhatMakesTheFirstCallsOfAPlanCostsOneTry) {
  use_plan();
  for (const int halves : {1, 2, 5, 40}) {
    for (int i = 0; i < 3; ++i) iteration();
    EXPECT_TRUE(follower_.following());
    int begun = 0;
    for (int i = 0; i < halves; ++i) {
      begun += allocate().activate ? 1 : 0;
      free();
    }
    EXPECT_LE(begun, 1) << halves;
    EXPECT_EQ(iteration(), halves == 1) << "gone through without the plan: nothing told it from another half";
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(iteration()) << halves;
  }
}

// Of seven steps one differs, at any place: which is the first is found soon, also where no number of boundaries that
// is a power of two leads there.
TEST_F(PlanReturnTest, APlanOfSeveralStepsIsTriedAtEachOfThem) {
  constexpr uint64_t kSteps = 7;
  constexpr uint64_t kOdd = 2;
  plan::Plan many = plan();
  many.calls.clear();
  many.vertices.clear();
  many.order.clear();
  for (uint32_t i = 0; i < kSteps; ++i) {
    for (plan::Call call : plan().calls) {
      if (call.kind == CallKind::op) call.signature = i == kOdd ? 7 : 5;
      call.tensor = call.tensor == plan::kNone ? plan::kNone : 1 + i;
      if (call.kind == CallKind::op) call.accesses[1].tensor = 1 + i;
      if (call.vertex != plan::kNone) call.vertex = 2 * i + (call.kind == CallKind::op ? 0 : 1);
      many.calls.push_back(call);
    }
    if (i > 0) many.tensors.push_back(many.tensors[1]);
    many.tensors.back().allocate_call = 3 * i;
    many.tensors.back().free_call = 3 * i + 2;
    many.vertices.resize(2 * i + 2);
    many.vertices[2 * i].call = 3 * i + 1;
    many.vertices[2 * i + 1].kind = plan::VertexKind::release;
    many.vertices[2 * i + 1].call = 3 * i + 2;
    many.vertices[2 * i + 1].tensor = 1 + i;
    many.order.push_back(2 * i);
    many.order.push_back(2 * i + 1);
  }
  std::string why;
  ASSERT_TRUE(make_plan_index(many, shared_.arena.plan, kChunk, &index_, &why)) << why;
  follower_.use(&index_);
  uint64_t planned = 0;  // steps in a row
  uint64_t i = 1;
  for (; i < 10 * kSteps && planned < 2 * kSteps; ++i) {
    const bool first = allocate().planned;
    const bool op = kernel(i % kSteps == kOdd ? 7 : 5).planned;
    planned = free().planned && op && first ? planned + 1 : 0;
  }
  EXPECT_LE(i, 8 * kSteps) << "by the step that differs it is known after one round at most how far it is";
  EXPECT_EQ(planned, 2 * kSteps);
  EXPECT_FALSE(follower_.known(0).never_lasts());
}

// Two steps that begin alike. Some steps in a row do something else besides, so that the plan is left at either.
TEST_F(PlanReturnTest, APlanThatWasLeftInEachOfItsStepsComesBack) {
  plan::Plan two = plan();
  two.tensors.push_back(two.tensors[1]);
  for (plan::Call call : plan().calls) {
    if (call.kind == CallKind::op) call.signature = 7;
    if (call.kind == CallKind::op) call.accesses[1].tensor = 2;
    if (call.tensor != plan::kNone) call.tensor = 2;
    if (call.vertex != plan::kNone) call.vertex += 2;
    two.calls.push_back(call);
  }
  two.tensors[2].allocate_call = 3;
  two.tensors[2].free_call = 5;
  two.vertices.insert(two.vertices.end(), two.vertices.begin(), two.vertices.begin() + 2);
  two.vertices[2].call = 4;
  two.vertices[3].call = 5;
  two.vertices[3].tensor = 2;
  two.order = {0, 1, 2, 3};
  std::string why;
  ASSERT_TRUE(make_plan_index(two, shared_.arena.plan, kChunk, &index_, &why)) << why;
  for (uint64_t first = 1; first < 4; ++first) {
    for (uint64_t count = 1; count < 8; ++count) {
      std::destroy_at(&follower_);
      std::construct_at(&follower_, &shared_);
      follower_.live().open(kChunk, kChunk);
      live_.clear();
      weight_ = allocate().address;
      follower_.use(&index_);
      int planned = 0;
      for (uint64_t i = 0; i < 40; ++i) {
        const bool begun = allocate().planned;
        bool same = kernel(i % 2 == 0 ? 5 : 7).planned && begun;
        if (i >= first && i < first + count) same = kernel(99).planned && same;
        same = free().planned && same;
        planned += i >= 20 && same ? 1 : 0;
      }
      EXPECT_EQ(planned, 20) << first << "+" << count;
    }
  }
}

// Two weights of equal or other sizes, which were freed and have come back in another order.
TEST_F(PlanReturnTest, TensorsThatCameBackInAnotherOrderAreFoundByTheirUses) {
  for (const uint64_t size : {kSize, kOther}) {
    plan::Plan two = plan();
    two.tensors.insert(two.tensors.begin() + 1, two.tensors[0]);
    two.tensors[1].size = size;
    two.tensors[1].chunk_count = static_cast<uint32_t>(size / kChunk);
    for (plan::Call& call : two.calls) call.tensor = call.tensor == plan::kNone ? plan::kNone : 2;
    two.calls[1].accesses = {
        {0, trace::kAccessRead, 0, 0}, {1, trace::kAccessRead, 0, 0}, {2, trace::kAccessWrite, 0, 0}};
    two.vertices[1].tensor = 2;
    std::string why;
    index_ = {};
    ASSERT_TRUE(make_plan_index(two, shared_.arena.plan, kChunk, &index_, &why)) << why;
    std::destroy_at(&follower_);
    std::construct_at(&follower_, &shared_);
    follower_.live().open(kChunk, kChunk);
    live_.clear();
    CUdeviceptr first = allocate().address;
    CUdeviceptr second = allocate(size).address;
    follower_.use(&index_);
    const auto steps = [&](int count) {
      int planned = 0;
      for (int i = 0; i < count; ++i) {
        bool same = allocate().planned;
        same = kernel_on({first, second, live_.back().address}).planned && same;
        planned += free().planned && same ? 1 : 0;
      }
      return planned;
    };
    EXPECT_EQ(steps(4), 4);
    for (int round = 0; round < 3; ++round) {
      free();
      free();
      second = allocate(size).address;
      first = allocate().address;
      EXPECT_EQ(steps(10), size == kSize ? 8 : 9) << "equal sizes are mistaken for each other once";
      EXPECT_EQ(cast_, (std::vector<CUdeviceptr>{first, second}));
    }
  }
}

// The shorter plan rules its part of the longer one's iteration until that was gone through once.
TEST_F(PlanReturnTest, ALongerPlanTakesOverFromOneThatIsAPartOfIt) {
  use_plan();
  for (int i = 0; i < 4; ++i) iteration();
  plan::Plan longer = plan();
  longer.calls.push_back(longer.calls[0]);
  longer.calls.push_back(longer.calls[1]);
  longer.calls.push_back(longer.calls[2]);
  longer.tensors.push_back(longer.tensors[1]);
  longer.calls[3].tensor = longer.calls[5].tensor = 2;
  longer.calls[4].accesses[1].tensor = 2;
  longer.tensors[2].allocate_call = 3;
  longer.tensors[2].free_call = 5;
  longer.vertices.insert(longer.vertices.end(), longer.vertices.begin(), longer.vertices.begin() + 2);
  longer.calls[4].vertex = 2;
  longer.calls[5].vertex = 3;
  longer.vertices[2].call = 4;
  longer.vertices[3].call = 5;
  longer.vertices[3].tensor = 2;
  longer.order = {0, 1, 2, 3};
  use_beside(longer);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(iteration());
  const FollowedCall next = allocate();
  EXPECT_TRUE(next.activate && next.planned);
  EXPECT_EQ(next.plan, 1u);
  kernel();
  free();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(iteration());
  EXPECT_EQ(shared_.counters.divergences.load(), 0u);
}

}  // namespace
}  // namespace reprise::replay
