// The ledger of what the program holds beside managed memory: each kind now and at its most, by what the device had
// less behind a call, and more.
#include "preload/driver/beside.h"

#include "tests/support/test.h"

namespace reprise {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST(BesideLedger, HoldsTheMostOfEachKindAndNotTheSumOfAllThatEverWas) {
  BesideLedger ledger;
  for (int i = 0; i < 3; ++i) {
    ledger.made(BesideKind::physical, 8 * kMiB);
    ledger.given_back(BesideKind::physical, 8 * kMiB);
  }
  ledger.made(BesideKind::array, 2 * kMiB);
  EXPECT_EQ(ledger.figures(BesideKind::physical).count, 3u);
  EXPECT_EQ(ledger.figures(BesideKind::physical).most, 8 * kMiB);
  EXPECT_EQ(ledger.now(BesideKind::physical), 0u);
  EXPECT_EQ(ledger.now(), 2 * kMiB);
  EXPECT_EQ(ledger.most(), 8 * kMiB) << "they were never there at once";
}

TEST(BesideLedger, NeverHoldsLessThanNothing) {
  BesideLedger ledger;
  ledger.made(BesideKind::managed, kMiB);
  ledger.given_back(BesideKind::managed, 5 * kMiB);
  EXPECT_EQ(ledger.now(), 0u);
}

TEST(BesideLedgers, AreByDevice) {
  BesideLedgers ledgers;
  ledgers.of(0).made(BesideKind::physical, kMiB);
  ledgers.of(1000).made(BesideKind::physical, kMiB);
  EXPECT_EQ(ledgers.of(0).now(), kMiB);
  EXPECT_EQ(ledgers.of(1).now(), 0u);
}

TEST(BesideCall, MakesWhatTheDeviceHasLessWithoutOurChunks) {
  BesideCall call;
  call.bytes = 3 * kMiB;
  call.free = 100 * kMiB;
  call.ours = 40 * kMiB;
  EXPECT_EQ(made_by_call(call, 96 * kMiB, 40 * kMiB), 4 * kMiB) << "the driver rounds";
  EXPECT_EQ(made_by_call(call, 106 * kMiB, 30 * kMiB), 4 * kMiB) << "of ours 10 MiB have left meanwhile";
  EXPECT_EQ(made_by_call(call, 100 * kMiB, 40 * kMiB), 0u) << "it is not on the device";
  EXPECT_EQ(made_by_call(call, 20 * kMiB, 40 * kMiB), 4 * kMiB) << "more is not this call's doing";
  EXPECT_EQ(made_by_call(call, std::nullopt, 40 * kMiB), 3 * kMiB) << "nobody tells";
}

TEST(BesideCall, MakesAllOfAFullDevice) {
  BesideCall call;
  call.bytes = 4 * kMiB;
  call.free = 4 * kMiB;
  EXPECT_EQ(made_by_call(call, 0, 0), 4 * kMiB);
}

TEST(BesideCall, GivesBackWhatTheDeviceHasMore) {
  BesideCall call;
  call.free = 10 * kMiB;
  EXPECT_EQ(given_back_by_call(call, 34 * kMiB, 0), 24 * kMiB);
  EXPECT_EQ(given_back_by_call(call, 10 * kMiB, 0), 0u) << "a mapping keeps it";
  EXPECT_EQ(given_back_by_call(call, 8 * kMiB, 0), 0u);
  call.given_back = 6 * kMiB;
  EXPECT_EQ(given_back_by_call(call, 10 * kMiB, 0), 6 * kMiB) << "a pool keeps it for later";
}

}  // namespace
}  // namespace reprise
