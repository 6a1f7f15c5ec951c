// The command log: deep copies, order, blocking when full, waiting for entries that are done out of order.
#include "replay/queue/command_log.h"

#include "tests/support/test.h"

namespace reprise::replay {
namespace {

Command command_with(const std::string& payload, const std::vector<Access>& accesses) {
  Command command{};
  command.payload = payload.data();
  command.payload_bytes = static_cast<uint32_t>(payload.size());
  command.accesses = accesses.data();
  command.access_count = static_cast<uint32_t>(accesses.size());
  return command;
}

TEST(LogTest, CopiesWhatTheCommandPointsTo) {
  CommandLog log;
  ASSERT_TRUE(log.open(1 << 20));
  std::string payload = "the parameters";
  std::vector<Access> accesses = {{{1, 3, 4, 5, 6}, 2}, {{7, 9, 10, 11, 12}, 8}};
  LogEntry* const entry = log.append_op(command_with(payload, accesses));
  payload.assign(payload.size(), 'x');
  accesses.assign(2, Access{});
  EXPECT_EQ(std::string(static_cast<const char*>(entry->command.payload), entry->command.payload_bytes),
            "the parameters");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(entry->command.payload) % 16, 0u);
  EXPECT_EQ(entry->command.accesses[1].offset, 9u);
  EXPECT_EQ(log.tail(), 0u);
  log.publish(entry);
  EXPECT_EQ(log.tail(), 1u);
  EXPECT_EQ(log.at(0), entry);
}

TEST(LogTest, HeadPassesOnlyWhatIsDoneWithoutGap) {
  CommandLog log;
  ASSERT_TRUE(log.open(1 << 20));
  for (int i = 0; i < 3; ++i) log.publish(log.append(EntryKind::free));
  log.done(log.at(1));
  EXPECT_EQ(log.head(), 0u);
  EXPECT_FALSE(log.is_settled(1));
  log.done(log.at(0));
  EXPECT_EQ(log.head(), 2u);
  EXPECT_TRUE(log.is_settled(1));
  EXPECT_FALSE(log.is_settled(2));
}

// The thread of the first call sleeps in it: the others do not wait, its entry stays.
TEST(LogTest, WhatIsPassedHoldsNobodyUpAndIsKept) {
  CommandLog log;
  ASSERT_TRUE(log.open(1 << 20));
  for (int i = 0; i < 4; ++i) log.publish(log.append(EntryKind::free));
  log.done(log.at(1));
  EXPECT_FALSE(log.is_settled(1));
  log.pass(log.at(0));
  log.wait_settled(1);
  EXPECT_EQ(log.settled(), 2u);
  EXPECT_EQ(log.head(), 0u) << "the entry is still in use";
  log.pass(log.at(3));
  EXPECT_EQ(log.settled(), 2u);
  log.done(log.at(2));
  EXPECT_EQ(log.settled(), 4u);
  log.done(log.at(0));
  EXPECT_EQ(log.head(), 3u);
  log.done(log.at(3));
  EXPECT_EQ(log.head(), 4u);
}

TEST(LogTest, AFullLogBlocksUntilTheOldestIsDone) {
  CommandLog log;
  ASSERT_TRUE(log.open(64 * 1024));
  const std::string payload(3000, 'p');
  constexpr int kCount = 500;
  std::thread program([&] {
    for (int i = 0; i < kCount; ++i) {
      LogEntry* const entry = log.append_op(command_with(payload, {}));
      entry->flags = static_cast<unsigned>(i);
      log.publish(entry);
    }
  });
  while (log.blocked() == 0) std::this_thread::yield();
  EXPECT_LT(log.tail(), 64u * 1024 / 3000 + 1);
  for (unsigned i = 0; i < kCount; ++i) {
    while (log.tail() == i) log.wait_for_work(i, 1'000'000);
    LogEntry* const entry = log.at(i);
    EXPECT_EQ(entry->flags, i);
    EXPECT_EQ(std::memcmp(entry->command.payload, payload.data(), payload.size()), 0);
    log.done(entry);
  }
  program.join();
  EXPECT_EQ(log.head(), static_cast<uint64_t>(kCount));
}

TEST(LogTest, EntriesSurviveUntilTheyAreDoneThoughLaterOnesAre) {
  CommandLog log;
  ASSERT_TRUE(log.open(256 * 1024));
  const std::string first(1000, 'a');
  log.publish(log.append_op(command_with(first, {})));
  const std::string others(1000, 'b');
  for (uint64_t i = 1; i < 100; ++i) {
    log.publish(log.append_op(command_with(others, {})));
    log.done(log.at(i));
  }
  EXPECT_EQ(std::memcmp(log.at(0)->command.payload, first.data(), first.size()), 0);
  log.done(log.at(0));
  EXPECT_EQ(log.head(), 100u);
}

TEST(LogTest, WaitSettledReturnsWhenEverythingBeforeIsDone) {
  CommandLog log;
  ASSERT_TRUE(log.open(1 << 20));
  for (int i = 0; i < 4; ++i) log.publish(log.append(EntryKind::free));
  std::thread program([&] {
    log.wait_settled(3);
    EXPECT_EQ(log.settled(), 4u) << "the head moves after what waits is woken";
  });
  for (const uint64_t position : {2u, 0u, 3u, 1u}) {
    std::this_thread::yield();
    log.done(log.at(position));
  }
  program.join();
  EXPECT_EQ(log.head(), 4u);
}

TEST(WaiterTest, ServesALaterThreadWhenItsOwnHasEnded) {
  std::set<Waiter*> seen;
  for (int i = 0; i < 100; ++i) std::thread([&] { seen.insert(&Waiter::of_this_thread()); }).join();
  EXPECT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen.count(&Waiter::of_this_thread()), 1u);
  std::thread([&] { EXPECT_EQ(seen.count(&Waiter::of_this_thread()), 0u); }).join();
}

TEST(WaiterTest, TellsAGrantFromAnAnswer) {
  Waiter& waiter = Waiter::of_this_thread();
  waiter.arm();
  std::thread([&] { waiter.grant(); }).join();
  EXPECT_TRUE(waiter.wait());
  waiter.arm();
  std::thread([&] { waiter.done(CUDA_ERROR_INVALID_VALUE); }).join();
  EXPECT_FALSE(waiter.wait());
  EXPECT_EQ(waiter.result(), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace reprise::replay
