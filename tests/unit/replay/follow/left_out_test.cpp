// Parts of an iteration that the program leaves out, and what cannot be left out.
#include "replay/plan/left_out.h"

#include "tests/unit/replay/follow/followed_program.h"

namespace reprise::replay {
namespace {

constexpr uint64_t kParts = 4;
constexpr uint64_t kUpdate = 20;

// An iteration of four parts, each of "allocate x, a kernel on both, free x", and an update of the weight.
class LeftOut : public FollowedProgram {
 protected:
  LeftOut() {
    std::string why;
    EXPECT_TRUE(make_plan_index(four_parts(), shared_.arena.plan, kChunk, &index_, &why)) << why;
  }

  static plan::Plan four_parts() {
    plan::Plan plan;
    plan.chunk_bytes = kChunk;
    plan.tensors.resize(1 + kParts);
    for (plan::Tensor& tensor : plan.tensors) tensor = {.size = kSize, .chunk_count = 2};
    for (uint32_t part = 0; part <= kParts; ++part) {
      const bool is_update = part == kParts;
      const uint32_t x = is_update ? 0 : part + 1;
      if (!is_update) add(plan, CallKind::allocate, x);
      add(plan, CallKind::op, x);
      plan.calls.back().signature = is_update ? kUpdate : 10 + part;
      plan.calls.back().duration_ns = 1000;
      plan.calls.back().accesses = {{0, trace::kAccessRead, 0, 0}};
      if (is_update) break;
      plan.calls.back().accesses.push_back({x, trace::kAccessWrite, 0, 0});
      add(plan, CallKind::free, x);
    }
    plan.compute_ns = (kParts + 1) * 1000;
    return plan;
  }
  static void add(plan::Plan& plan, CallKind kind, uint32_t tensor) {
    const auto at = static_cast<uint32_t>(plan.calls.size());
    plan::Call call;
    call.kind = kind;
    call.tensor = kind == CallKind::op ? plan::kNone : tensor;
    if (kind == CallKind::allocate) {
      plan.tensors[tensor].allocate_call = at;
      call.signature = trace::allocate_signature(trace::Origin::alloc, kSize);
    }
    if (kind == CallKind::free) {
      plan.tensors[tensor].free_call = at;
      call.signature = trace::free_signature(trace::Origin::alloc, kSize);
    }
    if (kind != CallKind::allocate) {
      call.vertex = static_cast<uint32_t>(plan.vertices.size());
      plan.vertices.emplace_back();
      plan.vertices.back().kind = kind == CallKind::op ? plan::VertexKind::op : plan::VertexKind::release;
      plan.vertices.back().call = at;
      plan.vertices.back().tensor = call.tensor;
      plan.order.push_back(call.vertex);
    }
    plan.calls.push_back(call);
  }

  // True where its calls were the plan's; adds what was left out before them.
  bool part(uint64_t which) {
    const FollowedCall first = allocate();
    const FollowedCall second = kernel(10 + which);
    left_out_ += first.left_out != nullptr ? first.left_out->size() : 0;
    left_out_ += second.left_out != nullptr ? second.left_out->size() : 0;
    return free().planned && first.planned && second.planned;
  }
  bool update() {
    const FollowedCall last = kernel_on({weight_}, kUpdate);
    left_out_ += last.left_out != nullptr ? last.left_out->size() : 0;
    return last.planned;
  }
  bool parts(std::initializer_list<uint64_t> which) {
    bool planned = true;
    for (const uint64_t each : which) planned = part(each) && planned;
    return update() && planned;
  }

  uint64_t left_out_ = 0;  // calls
};

TEST_F(LeftOut, TheLastPartsAndThePlanGoesOn) {
  follower_.use(&index_);
  EXPECT_TRUE(parts({0, 1, 2, 3}));
  EXPECT_TRUE(parts({0, 1, 2}));
  EXPECT_EQ(left_out_, 3u);
  EXPECT_TRUE(parts({0, 1}));
  EXPECT_EQ(left_out_, 9u);
  EXPECT_TRUE(parts({0, 1, 2, 3}));
  EXPECT_EQ(left_out_, 9u);
}

TEST_F(LeftOut, NotTheEndOfTheIteration) {
  follower_.use(&index_);
  EXPECT_TRUE(parts({0, 1, 2, 3}));
  for (uint64_t each = 0; each < kParts; ++each) EXPECT_TRUE(part(each));
  const FollowedCall first = allocate();
  EXPECT_EQ(first.left_out, nullptr);
  EXPECT_TRUE(first.activate) << "the plan begins anew";
}

TEST_F(LeftOut, NotMoreThanHalfOfIt) {
  follower_.use(&index_);
  EXPECT_TRUE(parts({0, 1, 2, 3}));
  EXPECT_FALSE(parts({0}));
  EXPECT_EQ(left_out_, 0u);
}

TEST_F(LeftOut, NotAPartThatHasBegun) {
  follower_.use(&index_);
  EXPECT_TRUE(parts({0, 1, 2, 3}));
  EXPECT_FALSE(parts({0, 2, 3})) << "the second part's allocation is like the third's";
  EXPECT_EQ(left_out_, 0u);
}

TEST_F(LeftOut, WhatWasJoinedInVainIsNotJoinedThereAgain) {
  follower_.use(&index_);
  for (const bool joins : {true, false}) {
    for (int i = 0; i < 3; ++i) parts({0, 1, 2, 3});
    part(0);
    part(1);
    EXPECT_EQ(kernel_on({weight_}, kUpdate).left_out != nullptr, joins);
    EXPECT_FALSE(kernel_on({weight_}, 99).planned);
  }
}

// Where sizes vary, the program's small tensor may be any of the plan's. What has been taken for the wrong one is known
// when it comes again.
TEST_F(LeftOut, WhereSizesVaryAnAllocationThatBeganNoPartIsDoubted) {
  std::vector<plan::Call>& calls = index_.plan.calls;
  calls[3 * 3 + 1].accesses.erase(calls[3 * 3 + 1].accesses.begin());  // the last part's kernel has x alone
  for (plan::Call& call : calls) {
    call.flags |= plan::kCallAnySize | plan::kCallAnyKernel;
    const auto operands = static_cast<uint32_t>(call.accesses.size());
    call.signature = call.kind == CallKind::allocate ? trace::allocate_structure(trace::Origin::alloc)
                     : call.kind == CallKind::free   ? trace::free_structure(trace::Origin::alloc)
                                                     : trace::op_structure(call.op, call.signature, operands);
  }
  const auto last_part = [&](uint64_t size) {
    const FollowedCall first = allocate(size);
    const bool kernel = kernel_on({live_.back().address}, 13).planned;
    return free().planned && first.planned && kernel && update();
  };
  follower_.use(&index_);
  for (const bool is_doubted : {false, true}) {
    for (int i = 0; i < 3; ++i) {
      for (const uint64_t each : {uint64_t{0}, uint64_t{1}, uint64_t{2}}) part(each);
      EXPECT_TRUE(last_part(kSize) || i < 2);
    }
    part(0);
    part(1);
    EXPECT_EQ(last_part(kChunk), is_doubted) << "the first time it is taken for the third part";
  }
}

TEST_F(LeftOut, ALoopOfItsOwnIsLeftToItself) {
  follower_.use(&index_);
  EXPECT_TRUE(parts({0, 1, 2, 3}));
  int planned = 0;
  for (int i = 0; i < 16; ++i) planned += parts({0, 1, 2}) ? 1 : 0;
  EXPECT_EQ(planned, 8);
}

// Its first writer is left out: what the tensor held was given up for that.
TEST_F(LeftOut, NotWhatBringsInATensorFromBefore) {
  PlanIndex index = index_;
  index.plan.vertices[index.plan.calls[10].vertex].acquires = {{0, 0}};
  LeftOutPart part(&index);
  EXPECT_TRUE(part.take(9));
  EXPECT_FALSE(part.take(10));
}

TEST_F(LeftOut, NothingWhereLaunchesAreRepeated) {
  PlanIndex index = index_;
  index.repeats.emplace_back();
  LeftOutPart part(&index);
  EXPECT_FALSE(part.take(9));
}

}  // namespace
}  // namespace reprise::replay
