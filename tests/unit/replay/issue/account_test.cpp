// The account of one device's memory: what was held of it before memory is managed.
#include "replay/issue/account.h"

#include "tests/support/test.h"
#include "tests/unit/replay/fake_driver.h"

namespace reprise::replay {
namespace {

using testing::FakeDriver;
constexpr uint64_t kHeld = 512 << 10;

// A call gave half of what there was back, in a stream's order, and the driver has not taken it yet.
uint64_t peak_where_the_driver_still_has_it(uint64_t others) {
  FakeDriver driver;
  FakeDriver::current = reinterpret_cast<CUcontext>(uint64_t{1});
  Common common;
  BesideLedger& ledger = common.beside.of(0);
  ledger.made(BesideKind::pool, kHeld);
  ledger.saw_free(driver.capacity - kHeld);
  ledger.given_back(BesideKind::pool, kHeld / 2);
  driver.other_bytes = kHeld + others;
  Account account(common);
  account.open(Config{}, 0, kHeld);
  return account.peak_used(false);
}

TEST(Account, WhatWasHeldBeforeIsCountedOnceWhereTheDriverGivesItBackLate) {
  EXPECT_EQ(peak_where_the_driver_still_has_it(0), kHeld);
}

// What is free tells nothing of one program there.
TEST(Account, BesideOthersWhatCallsMadeIsCountedOnTopOfWhatTheDriverHasHeldBack) {
  EXPECT_EQ(peak_where_the_driver_still_has_it(1 << 20), kHeld + kHeld / 2);
}

}  // namespace
}  // namespace reprise::replay
