// When a plan begins, when it ends, and what the enforcer is told about each call of a loop.
#include "preload/base/causes.h"
#include "tests/unit/replay/follow/followed_program.h"

namespace reprise::replay {
namespace {

class PlanFollowerTest : public FollowedProgram {};

TEST_F(PlanFollowerTest, WithoutAPlanNothingIsPlanned) {
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(iteration());
  EXPECT_FALSE(follower_.following());
  EXPECT_EQ(follower_.live().bytes(), kSize);
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

TEST_F(PlanFollowerTest, ABetterPlanTakesTheFirstOnesPlaceBetweenIterations) {
  use_plan();
  EXPECT_TRUE(iteration());
  EXPECT_TRUE(allocate().planned);
  use_beside(plan(), 0);
  EXPECT_TRUE(kernel().planned) << "within an iteration the first one goes on";
  EXPECT_TRUE(free().planned);
  const FollowedCall next = allocate();
  EXPECT_TRUE(next.activate && next.planned);
  EXPECT_EQ(next.plan, 1u);
  EXPECT_EQ(next.match.iteration, 2u);
  EXPECT_EQ(next.address, other_.addresses[1]);
  EXPECT_TRUE(kernel().planned);
  EXPECT_TRUE(free().planned);
  EXPECT_FALSE(allocate().activate) << "the first one does not come back";
  EXPECT_FALSE(kernel(7).planned);
  free();
  shared_.plan_unusable[1] = true;
  const FollowedCall again = allocate();
  EXPECT_TRUE(again.activate && again.planned) << "but where the other one cannot be used";
  EXPECT_EQ(again.plan, 0u);
}

// Before there was a plan, and while it was not followed; the same whenever the plan came.
TEST_F(PlanFollowerTest, IterationsOnDemandAreThoseOfThePlansLoop) {
  const auto on_demand = [&] { return shared_.counters.loops_on_demand.load(); };
  const auto unfinished = [&] { return shared_.counters.loops_unfinished.load(); };
  follower_.repetition().watch(true);
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
  follower_.repetition().watch(true);
  for (int i = 0; i < 3; ++i) iteration();
  use_plan();
  use_beside(plan());
  EXPECT_EQ(shared_.counters.loops_on_demand.load(), 3u);
}

TEST_F(PlanFollowerTest, TheLoopIsCountedOnInTheNextContext) {
  follower_.repetition().watch(true);
  for (int i = 0; i < 3; ++i) iteration();
  use_plan();
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(iteration());
  allocate();  // what comes then is no rest of this iteration
  CountedLoops counted = follower_.repetition().take();
  const uint64_t next = counted.next_iteration;
  std::destroy_at(&follower_);
  std::construct_at(&follower_, &shared_, std::move(counted));
  follower_.live().open(kChunk, kChunk);
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
  EXPECT_EQ(follower_.known(0).why_too_late(follower_.calls_seen()), words<Cause::ended_before_next>("2 calls"));
  for (int i = 0; i < 4; ++i) kernel(6);
  EXPECT_EQ(follower_.known(0).why_too_late(follower_.calls_seen()), "") << "the loop would have come by its beginning";
  EXPECT_NE(follower_.known(0).why_never_begun(), "");
}

TEST_F(PlanFollowerTest, AFirstCallThatNeverCameIsNamedWithItsSize) {
  use_plan();
  allocate(kOther);
  EXPECT_EQ(follower_.known(0).why_never_begun(), words<Cause::first_call_never_came>("an allocation of 8.0 KiB"));
  EXPECT_EQ(follower_.known(0).where_left(), "");
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
  EXPECT_EQ(follower_.known(0).why_never_begun(), words<Cause::first_call_never_came_alike>("a_kernel"));
}

TEST_F(PlanFollowerTest, APlanThatWasLeftKnowsWhereAndForWhat) {
  use_plan();
  EXPECT_TRUE(allocate().planned);
  EXPECT_FALSE(kernel(6).planned);
  EXPECT_EQ(follower_.known(0).why_never_begun(), "");
  EXPECT_EQ(follower_.known(0).where_left(), words<Cause::left_at_call>(1, 3, "expected a_kernel, got some_kernel"));
}

TEST_F(PlanFollowerTest, APlanThatIsLeftOnceJustBeforeTheEndRuledTheLastIteration) {
  use_plan();
  EXPECT_TRUE(allocate().planned);
  EXPECT_EQ(follower_.known(0).why_too_late(follower_.calls_seen()), "") << "it is followed";
  EXPECT_FALSE(kernel(6).planned);
  EXPECT_EQ(follower_.known(0).why_too_late(follower_.calls_seen()), words<Cause::left_at_end>(1, 3, "1 call"));
  free();
  EXPECT_FALSE(iteration()) << "the program has to go through it first";
  EXPECT_TRUE(allocate().planned);
  EXPECT_FALSE(kernel(6).planned);
  EXPECT_EQ(follower_.known(0).why_too_late(follower_.calls_seen()), "") << "its iterations differ";
}

TEST_F(PlanFollowerTest, WhatNoPlanHoldsEndsIt) {
  use_plan();
  EXPECT_TRUE(allocate().planned);
  follower_.interrupt("a capture");
  EXPECT_FALSE(follower_.following());
  EXPECT_EQ(follower_.known(0).why_too_late(follower_.calls_seen()), "");
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

TEST_F(PlanFollowerTest, RepetitionIsAskedAboutWhileItIsWatchedFor) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(allocate().ask_planner);
    EXPECT_FALSE(kernel().ask_planner);
    EXPECT_FALSE(free().ask_planner);
  }
  follower_.repetition().watch(true);
  int asked = 0;
  for (int i = 0; i < 20; ++i) {
    asked += allocate().ask_planner ? 1 : 0;
    asked += kernel().ask_planner ? 1 : 0;
    asked += free().ask_planner ? 1 : 0;
    if (asked == 1) follower_.repetition().detector().rejected(true);
  }
  EXPECT_GE(asked, 1);
  EXPECT_LE(asked, 20);
}

TEST_F(PlanFollowerTest, APlanOfAnEarlierRunIsNoPlanUntilItIsInForce) {
  std::string why;
  ASSERT_TRUE(make_plan_index(plan(), shared_.arena.plan, kChunk, &index_, &why)) << why;
  index_.is_guess = true;
  follower_.use(&index_);
  EXPECT_FALSE(follower_.repetition().has_plans());
  EXPECT_TRUE(follower_.known(0).is_guess());
  EXPECT_TRUE(iteration());
  EXPECT_TRUE(follower_.repetition().has_plans());
  EXPECT_FALSE(follower_.known(0).is_guess());
}

TEST_F(PlanFollowerTest, IterationsOnDemandAreCounted) {
  follower_.repetition().watch(true);
  for (int i = 0; i < 12; ++i) iteration();
  follower_.repetition().watch(false);  // the period is known
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
  follower_.repetition().watch(true);
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
  follower_.repetition().watch(true);
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
  EXPECT_FALSE(iteration());
  EXPECT_TRUE(iteration());
  follower_.interrupt("a capture");
  EXPECT_FALSE(follower_.take_whole()) << "for something that is no call";
}

TEST_F(PlanFollowerTest, TheFootprintIsOfWhatIsAlive) {
  EXPECT_EQ(follower_.live().footprint(), kSize);
  allocate(kSize + 1);
  EXPECT_EQ(follower_.live().footprint(), kSize + 3 * kChunk);
  allocate(100);
  EXPECT_EQ(follower_.live().footprint(), kSize + 4 * kChunk);
  EXPECT_EQ(follower_.live().bytes(), 2 * kSize + 101);
  free();
  free();
  EXPECT_EQ(follower_.live().footprint(), kSize);
  follower_.live().remove(999);
  EXPECT_EQ(follower_.live().footprint(), kSize) << "one that is not known";
}

}  // namespace
}  // namespace reprise::replay
