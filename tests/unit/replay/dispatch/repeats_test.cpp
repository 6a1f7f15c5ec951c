// A plan that recomputes, enforced on a fake driver: repeats have this iteration's parameters, what is not as it was is
// found before anything of it can be seen, and a departure in between loses nothing.
#include "analyzer/plan/enforced.h"
#include "tests/unit/replay/dispatch/planned_device.h"

namespace reprise::replay {
namespace {

const auto kAll = ::testing::Values(For::trusted, For::straying, For::straying_aliased);

TEST(RepeatedAcross, WhatMayStrayIsRefused) {
  plan::Plan plan = made_for(For::straying_aliased, PlanBuilder().single());
  EXPECT_TRUE(analyzer::verify(plan).ok());
  EXPECT_EQ(plan::why_not_enforced(plan, plan::Safety::audited), "");
  EXPECT_NE(plan::why_not_enforced(plan, plan::Safety::strict), "");
  for (plan::Call& call : plan.calls) {
    if (call.name == "work") call.audited = 0;
  }
  EXPECT_FALSE(analyzer::verify(plan).ok()) << "x is away then, and its range leads to t's bytes";
  EXPECT_NE(plan::why_not_enforced(plan, plan::Safety::audited), "");
}

class RepeatsTest : public PlannedDevice, public ::testing::WithParamInterface<For> {
 protected:
  RepeatsTest() : PlannedDevice(PlanBuilder().single(), GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(For, RepeatsTest, kAll);

TEST_P(RepeatsTest, HaveTheParametersOfTheirIteration) {
  for (uint64_t iteration = 0; iteration < 4; ++iteration) iterate(iteration);
  EXPECT_TRUE(executor_.active());
  EXPECT_EQ(repeats(), 4u);
  EXPECT_EQ(shown_, expected_);
  EXPECT_EQ(shown_.size(), 4u);
  EXPECT_EQ(error(), CUDA_SUCCESS);
}

// Each iteration has two streams of its own, and destroys the first one before its launch is made again.
TEST_P(RepeatsTest, GoElsewhereWhenTheirStreamIsGone) {
  for (uint64_t iteration = 0; iteration < 4; ++iteration) {
    iterate(iteration, 0, 6);
    LogEntry* const gone = shared_.command_log.append(EntryKind::stream_destroy);
    gone->command.stream = stream_;
    gone->command.context = device_.context;
    shared_.command_log.publish(gone);
    stream_ = device_.driver.stream();
    settle();
    iterate(iteration, 6);
  }
  EXPECT_TRUE(executor_.active());
  EXPECT_EQ(repeats(), 4u);
  EXPECT_EQ(shown_, expected_);
  EXPECT_EQ(error(), CUDA_SUCCESS);
}

// The first time the consumer waits for the verdict.
TEST_P(RepeatsTest, ConsumersWaitUntilOneWasRight) {
  for (uint64_t iteration = 0; iteration < 3; ++iteration) iterate(iteration);
  EXPECT_FALSE(was_busy("use 0 10"));
  EXPECT_TRUE(was_busy("use 1 10"));
  EXPECT_TRUE(was_busy("use 2 10"));
}

// ... in every single byte.
TEST_P(RepeatsTest, AFirstMismatchCostsThePlanAndNothingElse) {
  spoil_ = [this](const Parameters& parameters) { device_.driver.write(parameters.to + kBytes - 8, 1); };
  iterate(0);
  EXPECT_FALSE(executor_.active());
  EXPECT_TRUE(plan_is_given_up());
  perform_rest();
  EXPECT_EQ(shown_, expected_);
  EXPECT_EQ(error(), CUDA_SUCCESS);
}

TEST_P(RepeatsTest, ALaterMismatchNeverReachesTheHost) {
  iterate(0);
  iterate(1);
  spoil_ = [this](const Parameters& parameters) { device_.driver.write(parameters.to, 1); };
  iterate(2);
  EXPECT_FALSE(executor_.active());
  EXPECT_TRUE(plan_is_given_up());
  EXPECT_EQ(error(), CUDA_ERROR_LAUNCH_FAILED);
  ASSERT_EQ(shown_.size(), 2u) << "what the third iteration shows is wrong";
  EXPECT_TRUE(std::equal(shown_.begin(), shown_.end(), expected_.begin()));
}

// The repeat makes what it should, but writes what it only reads, as far as is known.
TEST_P(RepeatsTest, AnInputThatARepeatWritesIsFound) {
  iterate(0);
  spoil_ = [this](const Parameters& parameters) { device_.driver.write(parameters.from + 8, 1); };
  iterate(1);
  EXPECT_FALSE(executor_.active());
  EXPECT_EQ(error(), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(shown_.size(), 1u);
}

// What the repeat reads has changed since the first launch, though no call of the program has written it.
TEST_P(RepeatsTest, AnInputInAnotherVersionIsFound) {
  iterate(0);
  iterate(1, 0, 6);
  device_.driver.run_all();
  device_.driver.write(address(kW) + 16, 1);
  iterate(1, 6);
  EXPECT_FALSE(executor_.active());
  EXPECT_EQ(error(), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(shown_.size(), 1u);
}

class DepartureTest : public PlannedDevice, public ::testing::WithParamInterface<std::tuple<For, uint32_t>> {
 protected:
  DepartureTest() : PlannedDevice(PlanBuilder().single(), std::get<0>(GetParam())) {}
};

// Before any call the program does something else: what is away is made again, and its bytes are right.
TEST_P(DepartureTest, BringsEverythingBack) {
  iterate(0);
  const uint32_t calls = std::get<1>(GetParam());
  iterate(1, 0, calls);
  const uint64_t before = repeats();
  LogEntry* const entry = shared_.command_log.append(EntryKind::ordered);
  entry->all_resident = true;
  shared_.command_log.publish(entry);
  settle();
  ASSERT_FALSE(executor_.active());
  EXPECT_EQ(repeats(), before);
  ResidentTensor* const x = device_.memory.tensors.find(address(kX));
  ASSERT_NE(x, nullptr);
  EXPECT_FALSE(x->is_lost());
  EXPECT_EQ(pager_.make_resident({x}), CUDA_SUCCESS);
  device_.driver.run_all();
  for (uint64_t at = 0; calls > 1 && at < kBytes; at += 8) {
    ASSERT_EQ(device_.driver.read(x->base + at), model_[kX][at / 8]) << "at " << at;
  }
  EXPECT_EQ(error(), CUDA_SUCCESS);
}
INSTANTIATE_TEST_SUITE_P(BeforeEachCall, DepartureTest, ::testing::Combine(kAll, ::testing::Range(1u, 12u)));

// ... unless that does not make the same, which is told.
TEST_P(RepeatsTest, ADepartureThatMakesOtherBytesIsTold) {
  iterate(0);
  iterate(1, 0, 6);
  spoil_ = [this](const Parameters& parameters) { device_.driver.write(parameters.to, 1); };
  LogEntry* const entry = shared_.command_log.append(EntryKind::ordered);
  entry->all_resident = true;
  shared_.command_log.publish(entry);
  settle();
  ASSERT_FALSE(executor_.active());
  EXPECT_EQ(error(), CUDA_ERROR_LAUNCH_FAILED);
}

// Whichever call the driver refuses meanwhile: the bytes are right, or that they are not is told.
class RefusedDepartureTest : public PlannedDevice,
                             public ::testing::WithParamInterface<std::tuple<For, const char*, int>> {
 protected:
  RefusedDepartureTest() : PlannedDevice(PlanBuilder().single(), std::get<0>(GetParam())) {}
};

TEST_P(RefusedDepartureTest, HidesNoWrongBytes) {
  iterate(0);
  iterate(1, 0, 6);
  device_.driver.fail(std::get<1>(GetParam()), std::get<2>(GetParam()));
  LogEntry* const entry = shared_.command_log.append(EntryKind::ordered);
  entry->all_resident = true;
  shared_.command_log.publish(entry);
  settle();
  device_.driver.heal();
  ASSERT_FALSE(executor_.active());
  ResidentTensor* const x = device_.memory.tensors.find(address(kX));
  ASSERT_NE(x, nullptr);
  if (error() != CUDA_SUCCESS || pager_.make_resident({x}) != CUDA_SUCCESS) return;
  device_.driver.run_all();
  for (uint64_t at = 0; at < kBytes; at += 8) {
    ASSERT_EQ(device_.driver.read(x->base + at), model_[kX][at / 8]) << "at " << at;
  }
}
INSTANTIATE_TEST_SUITE_P(Calls, RefusedDepartureTest,
                         ::testing::Combine(kAll,
                                            ::testing::Values("cuLaunchKernel", "cuMemMap", "cuMemUnmap",
                                                              "cuMemSetAccess", "cuEventRecord", "cuStreamWaitEvent",
                                                              "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync",
                                                              "cuMemHostAlloc", "cuMemCreate"),
                                            ::testing::Range(1, 6)));

class ChainTest : public PlannedDevice, public ::testing::WithParamInterface<For> {
 protected:
  ChainTest() : PlannedDevice(PlanBuilder().chain(), GetParam()) {}
  // How many tensors were digested in an iteration.
  uint64_t digests(uint64_t iteration) {
    const uint64_t before = device_.driver.digests;
    iterate(iteration);
    return device_.driver.digests - before;
  }
};

INSTANTIATE_TEST_SUITE_P(For, ChainTest, kAll);

TEST_P(ChainTest, IsMadeAgainInItsOrder) {
  for (uint64_t iteration = 0; iteration < 4; ++iteration) iterate(iteration);
  EXPECT_TRUE(executor_.active());
  EXPECT_EQ(repeats(), 8u);
  EXPECT_EQ(shown_, expected_);
  EXPECT_EQ(error(), CUDA_SUCCESS);
}

// w before and after, x and y when they are dropped and made again; the first time also x before and after y is made.
TEST_P(ChainTest, WhatShowsItselfIsNotComparedOnceItWasRight) {
  EXPECT_EQ(digests(0), 8u);
  EXPECT_EQ(digests(1), 6u);
  EXPECT_EQ(digests(2), 6u);
}

// A copy, small as it may be, waits until the link is free, and what the program launches next on the stream with it.
TEST_P(ChainTest, DigestsReachTheHostWithoutACopy) {
  iterate(0);
  iterate(1);
  device_.driver.clear();
  EXPECT_EQ(digests(2), 6u);
  EXPECT_EQ(device_.driver.count("cuMemcpyDtoHAsync"), 0u);
}

// What makes y changes x whenever it runs, which it is thought not to do.
TEST_P(ChainTest, AnInputThatIsDroppedAndWrittenIsFound) {
  iterate(0);
  also_ = [this](const Parameters& parameters) {
    if (parameters.from == address(kX)) device_.driver.write(parameters.from + 8, 77 + parameters.salt);
  };
  iterate(1);
  EXPECT_FALSE(executor_.active());
  EXPECT_EQ(error(), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(shown_.size(), 1u);
}

// A repeat alone does: the first one is looked at more closely, and costs the plan.
TEST_P(ChainTest, ARepeatThatWritesWhatShowsItselfIsFoundAtFirst) {
  spoil_ = [this](const Parameters& parameters) {
    if (parameters.from == address(kX)) device_.driver.write(parameters.from + 8, 1);
  };
  iterate(0);
  EXPECT_FALSE(executor_.active());
  EXPECT_EQ(error(), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_TRUE(shown_.empty());
}

}  // namespace
}  // namespace reprise::replay
