// The map of live allocations: what a word points into.
#include "preload/tracking/allocations.h"

#include <rapidcheck/gtest.h>

#include "preload/tracking/interval_map.h"
#include "preload/tracking/pool_use.h"
#include "tests/support/test.h"

namespace reprise {
namespace {

Allocation make(uint64_t address, uint64_t size, trace::Origin origin = trace::Origin::alloc) {
  Allocation allocation;
  allocation.id = next_allocation_id();
  allocation.address = address;
  allocation.size = size;
  allocation.origin = origin;
  return allocation;
}

TEST(Allocations, CountInTheirPoolsUntilTheyAreForgotten) {
  const uint8_t number = pool_number(0xb001);
  ASSERT_NE(number, 0);
  EXPECT_EQ(pool_number(0xb001), number);
  EXPECT_NE(pool_number(0xb002), number);
  EXPECT_EQ(pool_number(0), 0);
  Allocation one = make(0x20000000, 100, trace::Origin::async), two = make(0x20001000, 513, trace::Origin::pool);
  one.pool = two.pool = number;
  ASSERT_TRUE(insert_allocation(one));
  ASSERT_TRUE(insert_allocation(two));
  ASSERT_TRUE(insert_allocation(make(0x20002000, 4096)));
  EXPECT_EQ(pool_use(0xb001).now, 512u + 1024);
  EXPECT_TRUE(forget_allocation(two.address, nullptr));
  EXPECT_EQ(pool_use(0xb001).now, 512u);
  EXPECT_EQ(pool_use(0xb001).used_high, 512u + 1024);
  reset_pool_high(0xb001, PoolHigh::used);
  EXPECT_EQ(pool_use(0xb001).used_high, 512u);
  EXPECT_EQ(pool_use(0xb001).reserved_high, 512u + 1024);
  // One that was freed without being seen makes room for the next one.
  Allocation next = make(one.address, 2048, trace::Origin::async);
  next.pool = pool_number(0xb002);
  ASSERT_TRUE(insert_allocation(next));
  EXPECT_EQ(pool_use(0xb001).now, 0u);
  EXPECT_EQ(pool_use(0xb002).now, 2048u);
  EXPECT_EQ(pool_use(0xb003).now, 0u);
  EXPECT_TRUE(forget_allocation(next.address, nullptr));
  EXPECT_TRUE(forget_allocation(0x20002000, nullptr));
}

TEST(Allocations, FindsEveryByteAndNotTheOneBehind) {
  const Allocation allocation = make(0x10000000, 100);
  ASSERT_TRUE(insert_allocation(allocation));
  Allocation found;
  for (const uint64_t address : {0x10000000ull, 0x10000001ull, 0x10000063ull}) {
    ASSERT_TRUE(find_allocation(address, &found)) << address;
    EXPECT_EQ(found.id, allocation.id);
    EXPECT_EQ(found.address, 0x10000000u);
    EXPECT_EQ(found.size, 100u);
  }
  EXPECT_FALSE(find_allocation(0x0fffffff, &found));
  EXPECT_FALSE(find_allocation(0x10000064, &found));
  EXPECT_TRUE(forget_allocation(0x10000000, nullptr));
  EXPECT_FALSE(find_allocation(0x10000000, &found));
}

TEST(Allocations, OnePastTheEndIsTheNeighbour) {
  const Allocation left = make(0x20000000, 0x1000), right = make(0x20001000, 0x1000);
  insert_allocation(left);
  insert_allocation(right);
  Allocation found;
  ASSERT_TRUE(find_allocation(0x20001000, &found));
  EXPECT_EQ(found.id, right.id);
  forget_allocation(0x20001000, nullptr);
  EXPECT_FALSE(find_allocation(0x20001000, &found));
  forget_allocation(0x20000000, nullptr);
}

TEST(Allocations, OnlyTheStartFrees) {
  insert_allocation(make(0x30000000, 64));
  EXPECT_FALSE(forget_allocation(0x30000008, nullptr));
  Allocation gone;
  EXPECT_TRUE(forget_allocation(0x30000000, &gone));
  EXPECT_EQ(gone.size, 64u);
  EXPECT_FALSE(forget_allocation(0x30000000, nullptr));
}

TEST(Allocations, AnAddressGivenAgainReplacesWhatWasThere) {
  insert_allocation(make(0x40000000, 0x1000));
  insert_allocation(make(0x40001000, 0x1000));
  const Allocation again = make(0x40000800, 0x1000);  // both frees went unseen
  insert_allocation(again);
  Allocation found;
  EXPECT_FALSE(find_allocation(0x40000000, &found));
  EXPECT_FALSE(find_allocation(0x40001900, &found));
  ASSERT_TRUE(find_allocation(0x40001000, &found));
  EXPECT_EQ(found.id, again.id);
  forget_allocation(0x40000800, nullptr);
}

TEST(Allocations, CountsDeviceMemoryAlone) {
  const LiveMemory before = live_device_memory();
  insert_allocation(make(0x50000000, 1000));
  insert_allocation(make(0x50010000, 10, trace::Origin::async));
  insert_allocation(make(0x7f0000000000, 5000, trace::Origin::host));
  insert_allocation(make(0x50020000, 300, trace::Origin::global));
  const LiveMemory now = live_device_memory();
  EXPECT_EQ(now.count - before.count, 2u);
  EXPECT_EQ(now.bytes - before.bytes, 1010u);
  for (const uint64_t address : {0x50000000ull, 0x50010000ull, 0x7f0000000000ull, 0x50020000ull}) {
    EXPECT_TRUE(forget_allocation(address, nullptr));
  }
  EXPECT_EQ(live_device_memory().bytes, before.bytes);
}

TEST(Allocations, MarksStayWithTheAllocation) {
  Allocation allocation = make(0x60000000, 4096, trace::Origin::pool);
  allocation.device = 3;
  insert_allocation(allocation);
  set_holds_pointers(0x60000000, true);
  set_hidden(0x60000000);
  Allocation found;
  ASSERT_TRUE(find_allocation(0x60000800, &found));
  EXPECT_TRUE(found.holds_pointers);
  EXPECT_TRUE(found.hidden);
  EXPECT_EQ(found.device, 3);
  EXPECT_EQ(found.origin, trace::Origin::pool);
  Allocation list[2];
  ASSERT_EQ(hidden_allocations(list, 2), 1u);
  EXPECT_EQ(list[0].id, allocation.id);
  set_holds_pointers(0x60000000, false);
  ASSERT_TRUE(find_allocation(0x60000000, &found));
  EXPECT_FALSE(found.holds_pointers);
  forget_allocation(0x60000000, nullptr);
  EXPECT_EQ(hidden_allocations(list, 2), 0u);
}

// Against std::map: a random sequence of insertions and removals, then every boundary is asked for.
RC_GTEST_PROP(IntervalMapProperty, BehavesLikeASortedMap, ()) {
  auto& map = *new IntervalMap;
  std::map<uint64_t, uint64_t> model;  // begin -> end
  const auto slots = *rc::gen::container<std::vector<uint16_t>>(rc::gen::inRange<uint16_t>(0, 600));
  uint64_t value = 1;
  for (const uint16_t slot : slots) {
    const uint64_t begin = 0x1000 + slot * 0x100ull;
    if (model.count(begin) != 0) {
      Interval gone;
      RC_ASSERT(map.erase(begin, &gone));
      RC_ASSERT(gone.end == model[begin]);
      model.erase(begin);
    } else {
      const uint64_t end = begin + 1 + slot % 0x100;
      RC_ASSERT(map.insert({begin, end, value++, 0}));
      model[begin] = end;
    }
  }
  for (uint64_t slot = 0; slot < 600; ++slot) {
    const uint64_t begin = 0x1000 + slot * 0x100;
    const bool there = model.count(begin) != 0;
    Interval found;
    RC_ASSERT(map.find(begin, &found) == there);
    if (!there) continue;
    RC_ASSERT(found.begin == begin);
    RC_ASSERT(map.find(model[begin] - 1, &found) && found.begin == begin);
    RC_ASSERT(!map.find(model[begin], &found) || found.begin != begin);
  }
}

// A reader never loses what is there while a writer moves everything around it.
TEST(Allocations, ReadersSeeWhatStaysWhileOthersComeAndGo) {
  constexpr uint64_t kBase = 0x100000000;
  constexpr uint64_t kStep = 0x1000;
  constexpr int kCount = 300;
  for (int i = 0; i < kCount; i += 2) insert_allocation(make(kBase + static_cast<uint64_t>(i) * kStep, kStep));
  std::atomic<bool> stop{false};
  std::atomic<int> lost{0};
  std::thread reader([&] {
    Allocation found;
    for (int i = 0; !stop.load(); i = (i + 2) % kCount) {
      const uint64_t address = kBase + static_cast<uint64_t>(i) * kStep + 8;
      if (!find_allocation(address, &found) || found.address != address - 8) lost.fetch_add(1);
    }
  });
  for (int round = 0; round < 20; ++round) {
    for (int i = 1; i < kCount; i += 2) insert_allocation(make(kBase + static_cast<uint64_t>(i) * kStep, kStep));
    for (int i = 1; i < kCount; i += 2) forget_allocation(kBase + static_cast<uint64_t>(i) * kStep, nullptr);
  }
  stop = true;
  reader.join();
  EXPECT_EQ(lost.load(), 0);
  for (int i = 0; i < kCount; i += 2) forget_allocation(kBase + static_cast<uint64_t>(i) * kStep, nullptr);
}

}  // namespace
}  // namespace reprise
