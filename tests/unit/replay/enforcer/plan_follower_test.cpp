// When a plan begins, when it ends, and what the enforcer is told about each call of a loop.
#include "replay/enforcer/plan_follower.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "preload/trace/signature.h"

namespace reprise::replay {
namespace {

using plan::CallKind;
constexpr uint64_t kChunk = 4096;
constexpr uint64_t kSize = 2 * kChunk;
constexpr uint64_t kOther = 3 * kChunk;

// A weight that lives, and an iteration of: allocate x, a kernel on both, free x.
class PlanFollowerTest : public ::testing::Test {
 protected:
  PlanFollowerTest() {
    shared_.arena_all = {uint64_t{1} << 40, 4096 * kChunk};
    shared_.arena = cut_arena(shared_.arena_all.base, shared_.arena_all.bytes, kChunk);
    shared_.chunk_bytes = kChunk;
    shared_.addresses.open(shared_.arena, kChunk);
    follower_.open(kChunk, kChunk);
    weight_ = allocate().address;
  }

  // Its x has this size.
  plan::Plan plan(uint64_t size = kSize) {
    plan::Plan plan;
    plan.chunk_bytes = kChunk;
    plan.tensors.resize(2);
    plan.tensors[0].size = kSize;
    plan.tensors[1].size = size;
    plan.tensors[0].chunk_count = 2;
    plan.tensors[1].chunk_count = static_cast<uint32_t>(size / kChunk);
    plan.tensors[1].allocate_call = 0;
    plan.tensors[1].free_call = 2;
    plan.calls.resize(3);
    plan.calls[0].kind = CallKind::allocate;
    plan.calls[0].tensor = plan.calls[2].tensor = 1;
    plan.calls[0].signature = trace::allocate_signature(trace::Origin::alloc, size);
    plan.calls[1].signature = 5;
    plan.calls[1].name = "a_kernel";
    plan.calls[1].accesses = {{0, trace::kAccessRead, 0, 0}, {1, trace::kAccessWrite, 0, 0}};
    plan.calls[2].kind = CallKind::free;
    plan.calls[2].signature = trace::free_signature(trace::Origin::alloc, size);
    plan.vertices.resize(2);
    plan.calls[1].vertex = 0;
    plan.calls[2].vertex = 1;
    plan.vertices[0].call = 1;
    plan.vertices[1].kind = plan::VertexKind::release;
    plan.vertices[1].call = 2;
    plan.vertices[1].tensor = 1;
    plan.order = {0, 1};
    return plan;
  }
  void use_plan() {
    std::string why;
    ASSERT_TRUE(make_plan_index(plan(), shared_.arena.plan, kChunk, &index_, &why)) << why;
    follower_.use(&index_);
  }
  // A second one, whose addresses lie behind those of the first.
  void use_beside(plan::Plan plan) {
    std::string why;
    const uint64_t at = index_.ranges.base + index_.ranges.bytes - shared_.arena.plan.base;
    ASSERT_TRUE(make_plan_index(std::move(plan), shared_.arena.plan, kChunk, &other_, &why, plan::Safety::trusted, at))
        << why;
    follower_.use(&other_);
  }

  FollowedCall allocate(uint64_t size = kSize) {
    AllocateCall call{};
    call.size = size;
    call.origin = trace::Origin::alloc;
    FollowedCall followed = follower_.allocate(call);
    if (!followed.planned) followed.address = shared_.addresses.allocate(size);
    live_.push_back({++ids_, followed.address, size});
    follower_.allocated(ids_, followed.address, size);
    return followed;
  }
  FollowedCall kernel(uint64_t signature = 5, bool blind = false) {
    std::vector<Access> accesses;
    for (const CUdeviceptr address : {weight_, live_.back().address}) {
      accesses.emplace_back();
      accesses.back().address = address;
    }
    Command command{};
    command.op = index_.plan.calls.empty() ? trace::OpKind::other : index_.plan.calls[1].op;
    command.signature = signature;
    command.accesses = accesses.data();
    command.access_count = 2;
    command.name = "some_kernel";
    command.blind = blind;
    return follower_.op(command);
  }
  FollowedCall free() {
    const Allocation gone = live_.back();
    live_.pop_back();
    FreeCall call{};
    call.address = gone.address;
    call.size = gone.size;
    call.origin = trace::Origin::alloc;
    const FollowedCall followed = follower_.free(call);
    follower_.freed(gone.id);
    if (!shared_.arena.plan.contains(gone.address)) shared_.addresses.release(gone.address, gone.size);
    return followed;
  }
  // True when all calls were the plan's.
  bool iteration() {
    bool planned = allocate().planned;
    planned = kernel().planned && planned;
    return free().planned && planned;
  }

  struct Allocation {
    uint64_t id;
    CUdeviceptr address;
    uint64_t size;
  };
  Shared shared_;
  PlanFollower follower_{&shared_};
  PlanIndex index_;
  PlanIndex other_;
  std::vector<Allocation> live_;
  uint64_t ids_ = 0;
  CUdeviceptr weight_ = 0;
};

TEST_F(PlanFollowerTest, WithoutAPlanNothingIsPlanned) {
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(iteration());
  EXPECT_FALSE(follower_.following());
  EXPECT_EQ(follower_.live_bytes(), kSize);
}

TEST_F(PlanFollowerTest, APlanBeginsAtItsFirstCallAndGoesOn) {
  use_plan();
  FollowedCall first = allocate();
  EXPECT_TRUE(first.activate && first.planned);
  EXPECT_EQ(first.match.call, 0u);
  EXPECT_EQ(first.address, index_.addresses[1]);
  EXPECT_TRUE(follower_.following());
  const FollowedCall second = kernel();
  EXPECT_TRUE(second.planned);
  EXPECT_FALSE(second.activate) << "once";
  EXPECT_TRUE(free().planned);
  const FollowedCall next = allocate();
  EXPECT_TRUE(next.planned);
  EXPECT_FALSE(next.activate);
  EXPECT_EQ(next.match.iteration, first.match.iteration + 1);
}

// Before there was a plan, and while it was not followed; the same whenever the plan came.
TEST_F(PlanFollowerTest, IterationsOnDemandAreThoseOfThePlansLoop) {
  const auto on_demand = [&] { return shared_.counters.loops_on_demand.load(); };
  const auto unfinished = [&] { return shared_.counters.loops_unfinished.load(); };
  follower_.watch(true);
  for (int i = 0; i < 3; ++i) iteration();
  for (int i = 0; i < 5; ++i) kernel(7);  // another loop, which is none of the plan's
  use_plan();
  EXPECT_EQ(on_demand(), 3u);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(iteration());
  EXPECT_EQ(on_demand(), 3u) << "the others were planned";
  allocate();
  kernel();
  EXPECT_FALSE(allocate(kOther).planned) << "left when two of three calls were over";
  free();
  free();
  EXPECT_EQ(on_demand(), 3u);
  EXPECT_EQ(unfinished(), 1u);
  allocate();
  follower_.interrupt("something opaque");
  kernel();
  free();
  EXPECT_EQ(on_demand(), 4u) << "it was finished without the plan";
  EXPECT_EQ(unfinished(), 1u);
  kernel(7);
  allocate(kOther);
  use_beside(plan(kOther));
  free();
  EXPECT_EQ(on_demand(), 4u);
}

TEST_F(PlanFollowerTest, ALoopThatGetsAnotherPlanIsCountedOnce) {
  follower_.watch(true);
  for (int i = 0; i < 3; ++i) iteration();
  use_plan();
  use_beside(plan());
  EXPECT_EQ(shared_.counters.loops_on_demand.load(), 3u);
}

TEST_F(PlanFollowerTest, TheLoopIsCountedOnInTheNextContext) {
  follower_.watch(true);
  for (int i = 0; i < 3; ++i) iteration();
  use_plan();
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(iteration());
  allocate();  // what comes then is no rest of this iteration
  CountedLoops counted = follower_.take_counted();
  const uint64_t next = counted.next_iteration;
  std::destroy_at(&follower_);
  std::construct_at(&follower_, &shared_, std::move(counted));
  follower_.open(kChunk, kChunk);
  live_.clear();
  weight_ = allocate().address;
  for (int i = 0; i < 4; ++i) iteration();
  EXPECT_EQ(shared_.counters.loops_on_demand.load(), 3u + 4);
  use_beside(plan());
  EXPECT_EQ(shared_.counters.loops_on_demand.load(), 3u + 4);
  const FollowedCall first = allocate();
  EXPECT_TRUE(first.activate);
  EXPECT_EQ(first.match.iteration, next);
}

TEST_F(PlanFollowerTest, APlanWaitsForTheBoundary) {
  allocate();
  use_plan();
  EXPECT_FALSE(kernel().planned) << "in the middle of an iteration";
  EXPECT_FALSE(free().planned);
  EXPECT_TRUE(iteration());
}

TEST_F(PlanFollowerTest, APlanNeedsItsPersistentTensors) {
  use_plan();
  allocate(kSize + kChunk);
  EXPECT_FALSE(allocate().planned) << "one too many";
  free();
  free();
  EXPECT_TRUE(iteration());
  free();  // the weight
  weight_ = allocate(kSize + 1).address;
  EXPECT_FALSE(allocate().planned) << "of another size";
}

TEST_F(PlanFollowerTest, ADivergenceIsCountedAndThePlanBeginsAgain) {
  use_plan();
  EXPECT_TRUE(iteration());
  EXPECT_TRUE(allocate().planned);
  EXPECT_FALSE(kernel(6).planned);
  EXPECT_FALSE(follower_.following());
  EXPECT_EQ(shared_.counters.divergences.load(), 1u);
  EXPECT_FALSE(kernel().planned) << "the rest of the iteration is on demand";
  EXPECT_FALSE(free().planned);
  const FollowedCall again = allocate();
  EXPECT_TRUE(again.activate && again.planned);
  EXPECT_TRUE(kernel().planned);
}

TEST_F(PlanFollowerTest, TheEndOfALoopIsNoDivergence) {
  use_plan();
  EXPECT_TRUE(iteration());
  EXPECT_FALSE(allocate(3 * kChunk).planned);
  EXPECT_EQ(shared_.counters.divergences.load(), 0u);
  EXPECT_FALSE(follower_.following());
}

TEST_F(PlanFollowerTest, AProgramThatEndsSoonBehindItsPlanCameTooLate) {
  allocate();
  use_plan();
  kernel();
  free();
  EXPECT_EQ(follower_.why_too_late(0),
            "the program ended before another iteration began: the plan was ready 2 calls before the end");
  for (int i = 0; i < 4; ++i) kernel(6);
  EXPECT_EQ(follower_.why_too_late(0), "") << "the loop would have come by its beginning";
  EXPECT_NE(follower_.why_never_begun(0), "");
}

TEST_F(PlanFollowerTest, AFirstCallThatNeverCameIsNamedWithItsSize) {
  use_plan();
  allocate(kOther);
  EXPECT_EQ(follower_.why_never_begun(0),
            "no iteration began that the plan was made of: its first call, an allocation of 8.0 KiB, never came");
  EXPECT_EQ(follower_.where_left(0), "");
}

// As of a buffer that grew since: a kernel of that name comes in every iteration.
TEST_F(PlanFollowerTest, AFirstLaunchThatCameInOtherSizesIsNotSaidToHaveBeenMissing) {
  plan::Plan one = plan();
  one.tensors.resize(1);
  one.calls = {one.calls[1]};
  one.calls[0].kind = CallKind::op;
  one.calls[0].accesses.resize(1);
  one.vertices.resize(1);
  one.vertices[0].call = 0;
  one.order = {0};
  std::string why;
  ASSERT_TRUE(make_plan_index(std::move(one), shared_.arena.plan, kChunk, &index_, &why)) << why;
  follower_.use(&index_);
  EXPECT_EQ(
      follower_.why_never_begun(0),
      "no iteration began that the plan was made of: its first call, a_kernel, never came with the grid and sizes "
      "that were recorded");
}

TEST_F(PlanFollowerTest, APlanThatWasLeftKnowsWhereAndForWhat) {
  use_plan();
  EXPECT_TRUE(allocate().planned);
  EXPECT_FALSE(kernel(6).planned);
  EXPECT_EQ(follower_.why_never_begun(0), "");
  EXPECT_EQ(follower_.where_left(0),
            "the plan came in force, and the program left it at call 1 of 3: expected a_kernel, got "
            "some_kernel");
}

TEST_F(PlanFollowerTest, APlanThatIsLeftOnceJustBeforeTheEndRuledTheLastIteration) {
  use_plan();
  EXPECT_TRUE(allocate().planned);
  EXPECT_EQ(follower_.why_too_late(0), "") << "it is followed";
  EXPECT_FALSE(kernel(6).planned);
  EXPECT_EQ(follower_.why_too_late(0),
            "the plan came in force, and the loop was over before that iteration was: the program left it "
            "at call 1 of 3, 1 call before the end");
  free();
  EXPECT_TRUE(allocate().planned);
  EXPECT_FALSE(kernel(6).planned);
  EXPECT_EQ(follower_.why_too_late(0), "") << "its iterations differ";
}

TEST_F(PlanFollowerTest, WhatNoPlanHoldsEndsIt) {
  use_plan();
  EXPECT_TRUE(allocate().planned);
  follower_.interrupt("a capture");
  EXPECT_FALSE(follower_.following());
  EXPECT_EQ(follower_.why_too_late(0), "");
  EXPECT_EQ(shared_.counters.divergences.load(), 1u);
  follower_.interrupt("another");
  EXPECT_EQ(shared_.counters.divergences.load(), 1u) << "there is no plan to end";
}

TEST_F(PlanFollowerTest, ADispatcherThatDivergedIsFollowed) {
  use_plan();
  EXPECT_TRUE(iteration());
  EXPECT_TRUE(allocate().planned);
  shared_.dispatcher_divergences.fetch_add(1);
  EXPECT_FALSE(kernel().planned);
  EXPECT_EQ(shared_.counters.divergences.load(), 0u) << "the dispatcher has counted it";
  EXPECT_FALSE(free().planned);
  EXPECT_TRUE(iteration()) << "and tries again at the boundary";
  shared_.dispatcher_divergences.fetch_add(1);
  shared_.plan_unusable[0].store(true);
  EXPECT_FALSE(iteration());
  EXPECT_FALSE(iteration()) << "for good";
}

TEST_F(PlanFollowerTest, BoundariesAreSkippedWhenThePlanNeverLasts) {
  use_plan();
  int begun = 0;
  for (int i = 0; i < 200; ++i) {
    begun += allocate().activate ? 1 : 0;
    kernel(6);
    free();
  }
  EXPECT_GE(begun, 5);
  EXPECT_LE(begun, 14) << "ever fewer tries";
  EXPECT_TRUE(follower_.never_lasts(0));
}

TEST_F(PlanFollowerTest, ABlindCallIsThePlansOrNotTaken) {
  use_plan();
  EXPECT_TRUE(allocate().planned);
  EXPECT_TRUE(kernel(5, true).planned);
  EXPECT_TRUE(free().planned);
  EXPECT_TRUE(allocate().planned);
  const uint64_t calls = follower_.calls_seen();
  const FollowedCall left = kernel(6, true);
  EXPECT_TRUE(left.look_first);
  EXPECT_FALSE(left.planned);
  EXPECT_FALSE(follower_.following());
  EXPECT_EQ(follower_.calls_seen(), calls) << "it comes again";
  const FollowedCall again = kernel(6, false);
  EXPECT_FALSE(again.look_first || again.planned);
  EXPECT_EQ(follower_.calls_seen(), calls + 1);
  free();
  EXPECT_TRUE(allocate().planned);
  shared_.dispatcher_divergences.fetch_add(1);
  EXPECT_TRUE(kernel(5, true).look_first) << "the dispatcher has left the plan meanwhile";
}

// Of seven steps one differs, at any place: which is the first is found soon, also where no number of boundaries that
// is a power of two leads there.
TEST_F(PlanFollowerTest, APlanOfSeveralStepsIsTriedAtEachOfThem) {
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
  EXPECT_FALSE(follower_.never_lasts(0));
}

TEST_F(PlanFollowerTest, RepetitionIsAskedAboutWhileItIsWatchedFor) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(allocate().ask_planner);
    EXPECT_FALSE(kernel().ask_planner);
    EXPECT_FALSE(free().ask_planner);
  }
  follower_.watch(true);
  int asked = 0;
  for (int i = 0; i < 20; ++i) {
    asked += allocate().ask_planner ? 1 : 0;
    asked += kernel().ask_planner ? 1 : 0;
    asked += free().ask_planner ? 1 : 0;
    if (asked == 1) follower_.planner_said_no(true);
  }
  EXPECT_GE(asked, 1);
  EXPECT_LE(asked, 20);
}

TEST_F(PlanFollowerTest, IterationsOnDemandAreCounted) {
  follower_.watch(true);
  for (int i = 0; i < 12; ++i) iteration();
  follower_.watch(false);  // the period is known
  const uint64_t before = shared_.counters.iterations_on_demand.load();
  for (int i = 0; i < 12; ++i) iteration();
  EXPECT_GE(shared_.counters.iterations_on_demand.load(), before + 11);
  EXPECT_LE(shared_.counters.iterations_on_demand.load(), before + 12);
}

// Another loop of the same program: allocate y, two kernels, free y. Its plan lies behind the first one's.
TEST_F(PlanFollowerTest, TwoPlansTakeTurns) {
  use_plan();
  use_beside(plan(kOther));
  EXPECT_TRUE(iteration());
  EXPECT_TRUE(iteration());
  const FollowedCall first = allocate(kOther);
  EXPECT_TRUE(first.activate && first.planned) << "behind a whole iteration the other plan begins at once";
  EXPECT_EQ(first.plan, 1u);
  EXPECT_EQ(first.address, other_.addresses[1]);
  EXPECT_FALSE(index_.ranges.contains(first.address));
  EXPECT_TRUE(kernel().planned);
  EXPECT_TRUE(free().planned);
  const FollowedCall back = allocate();
  EXPECT_TRUE(back.activate && back.planned);
  EXPECT_EQ(back.plan, 0u);
  EXPECT_EQ(shared_.counters.divergences.load(), 0u);
}

TEST_F(PlanFollowerTest, WhatOnePlanHasAllocatedMayLiveOnUnderAnother) {
  use_plan();
  EXPECT_TRUE(allocate().planned);
  EXPECT_FALSE(allocate().planned) << "a divergence: the first one lives on";
  free();
  plan::Plan two_weights = plan(kOther);
  two_weights.tensors.insert(two_weights.tensors.begin(), two_weights.tensors[0]);
  for (plan::Call& call : two_weights.calls) call.tensor = 2;
  two_weights.calls[1].accesses = {{0, trace::kAccessRead, 0, 0}, {2, trace::kAccessWrite, 0, 0}};
  two_weights.vertices[1].tensor = 2;
  use_beside(std::move(two_weights));
  const FollowedCall first = allocate(kOther);
  EXPECT_TRUE(first.planned);
  EXPECT_EQ(first.plan, 1u);
  EXPECT_TRUE(kernel().planned);
  EXPECT_TRUE(free().planned);
  EXPECT_FALSE(allocate().planned) << "the address is the first plan's own: that one may not begin";
}

TEST_F(PlanFollowerTest, OfTwoPlansForOneBeginTheOneThatLastsIsTaken) {
  use_plan();
  plan::Plan longer = plan();
  longer.calls.insert(longer.calls.begin() + 1, longer.calls[1]);
  longer.calls[1].signature = 6;
  longer.tensors[1].free_call = 3;
  longer.vertices[0].call = 2;
  longer.vertices[1].call = 3;
  use_beside(std::move(longer));
  EXPECT_EQ(allocate().plan, 1u) << "the newer one";
  for (int i = 0; i < 5; ++i) {
    kernel();
    free();
    allocate();
  }
  EXPECT_TRUE(follower_.following());
  EXPECT_TRUE(kernel().planned);
  EXPECT_TRUE(free().planned);
  EXPECT_EQ(allocate().plan, 0u) << "the older one, for the newer one has failed";
}

TEST_F(PlanFollowerTest, PartsOfARoundAreHeldBack) {
  use_plan();
  follower_.watch(true);
  int held = 0;
  int planned = 0;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 3; ++i) {
      const FollowedCall first = allocate();
      held += first.holds ? 1 : 0;
      planned += first.planned ? 1 : 0;
      kernel();
      free();
    }
    kernel(77);  // an update
  }
  EXPECT_EQ(held, 1) << "the second is due much later";
  EXPECT_GE(planned, 3 * 40 - 16) << "for four rounds";
  EXPECT_LE(planned, 3 * 40 - 12);
}

TEST_F(PlanFollowerTest, ALongLoopIsNotHeldBack) {
  use_plan();
  follower_.watch(true);
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 30; ++i) EXPECT_TRUE(iteration());
    kernel(77);
  }
}

TEST_F(PlanFollowerTest, WholeIterationsAreToldFromOthers) {
  use_plan();
  follower_.take_whole();
  EXPECT_TRUE(iteration());
  kernel(77);
  EXPECT_TRUE(follower_.take_whole());
  EXPECT_TRUE(allocate().planned);
  kernel(77);
  EXPECT_FALSE(follower_.take_whole()) << "in the middle of one";
  free();
  EXPECT_TRUE(iteration());
  follower_.interrupt("a capture");
  EXPECT_FALSE(follower_.take_whole()) << "for something that is no call";
}

TEST_F(PlanFollowerTest, TheFootprintIsOfWhatIsAlive) {
  EXPECT_EQ(follower_.footprint().bytes(), kSize);
  allocate(kSize + 1);
  EXPECT_EQ(follower_.footprint().bytes(), kSize + 3 * kChunk);
  allocate(100);
  EXPECT_EQ(follower_.footprint().bytes(), kSize + 4 * kChunk);
  EXPECT_EQ(follower_.live_bytes(), 2 * kSize + 101);
  free();
  free();
  EXPECT_EQ(follower_.footprint().bytes(), kSize);
  follower_.freed(999);
  EXPECT_EQ(follower_.footprint().bytes(), kSize) << "one that is not known";
}

}  // namespace
}  // namespace reprise::replay
