// Ranges, slabs, host slots and the ring: no two live pieces overlap, and what was given back is handed out again.
#include <rapidcheck.h>

#include "replay/memory/addresses/ranges.h"
#include "replay/memory/tiers/slots.h"
#include "replay/queue/ring.h"
#include "tests/support/test.h"

namespace reprise::replay {
namespace {

constexpr uint64_t kUnit = 1024;

TEST(ArenaTest, ZonesAreDisjointAndAligned) {
  const Arena arena = cut_arena(1 << 20, (1 << 20) + 777, kUnit);
  EXPECT_EQ(arena.slabs.base, 1u << 20);
  EXPECT_LE(arena.slabs.base + arena.slabs.bytes, arena.plan.base);
  EXPECT_LE(arena.plan.base + arena.plan.bytes, arena.ranges.base);
  EXPECT_LE(arena.ranges.base + arena.ranges.bytes, (1u << 20) + (1u << 20) + 777u);
  for (const Zone& zone : {arena.slabs, arena.plan, arena.ranges}) EXPECT_EQ(zone.base % kUnit, 0u);
  EXPECT_FALSE(arena.slabs.contains(arena.slabs.base - 1));
  EXPECT_TRUE(arena.slabs.contains(arena.slabs.base));
  EXPECT_FALSE(arena.slabs.contains(arena.slabs.base + arena.slabs.bytes));
}

// A word of a small number and the upper half of an old address is no tensor's.
TEST(ArenaTest, NoTensorLiesWhereTheLowerHalfOfAnAddressIsSmall) {
  const Arena arena = cut_arena(uint64_t{0x6000} << 32, uint64_t{8} << 40, 2 << 20);
  for (const Zone& zone : {arena.slabs, arena.plan, arena.ranges}) {
    EXPECT_GE(zone.base & 0xffffffff, 1u << 30);
    EXPECT_EQ(zone.base % (2 << 20), 0u);
    EXPECT_GT(zone.bytes, uint64_t{512} << 30);
  }
}

TEST(RangesTest, LeavesAGuardBehindEveryRange) {
  Ranges ranges;
  ranges.reset({1 << 20, 64 * kUnit}, kUnit);
  const uint64_t first = ranges.allocate(kUnit), second = ranges.allocate(1);
  EXPECT_GE(second, first + 2 * kUnit);
}

TEST(RangesTest, GivesTheNewestRangeOfTheSameSizeBack) {
  Ranges ranges;
  ranges.reset({1 << 20, 64 * kUnit}, kUnit);
  const uint64_t first = ranges.allocate(3 * kUnit), second = ranges.allocate(3 * kUnit);
  ranges.release(first, 3 * kUnit);
  ranges.release(second, 3 * kUnit);
  EXPECT_EQ(ranges.allocate(3 * kUnit - 5), second);
  EXPECT_EQ(ranges.allocate(3 * kUnit), first);
}

TEST(RangesTest, JoinsNeighboursWhenTheZoneIsUsedUp) {
  Ranges ranges;
  ranges.reset({1 << 20, 8 * kUnit}, kUnit);
  const uint64_t first = ranges.allocate(kUnit), second = ranges.allocate(kUnit);
  ASSERT_NE(ranges.allocate(3 * kUnit), 0u);
  EXPECT_EQ(ranges.allocate(3 * kUnit), 0u);
  ranges.release(second, kUnit);
  ranges.release(first, kUnit);
  EXPECT_EQ(ranges.allocate(3 * kUnit), first);
}

TEST(RingTest, APieceThatEndsWithTheRingIsFollowedByOneAtItsStart) {
  Ring ring;
  ring.reset(4 * kUnit);
  uint64_t offset = 0;
  for (uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(ring.take(kUnit, &offset));
    EXPECT_EQ(offset, i * kUnit);
  }
  EXPECT_FALSE(ring.take(kUnit, &offset));
  ring.release_first();
  ASSERT_TRUE(ring.take(kUnit, &offset));
  EXPECT_EQ(offset, 0u);
}

TEST(RingTest, PiecesLieInTheRingAndOverlapNone) {
  EXPECT_TRUE(rc::check("pieces lie in the ring and overlap none", [] {
    struct Piece {
      uint64_t offset, bytes;
    };
    const uint64_t bytes = kUnit * *rc::gen::inRange<uint64_t>(1, 17);
    Ring ring;
    ring.reset(bytes);
    std::deque<Piece> live;
    for (int step = 0; step < 200; ++step) {
      if (!live.empty() && *rc::gen::arbitrary<bool>()) {
        ring.release_first();
        live.pop_front();
        continue;
      }
      const uint64_t wanted = kUnit / 2 * *rc::gen::inRange<uint64_t>(0, 10);
      uint64_t offset = 0;
      if (!ring.take(wanted, &offset)) {
        RC_ASSERT(wanted == 0 || wanted > bytes || !live.empty());
        continue;
      }
      RC_ASSERT(offset + wanted <= bytes);
      for (const Piece& other : live)
        RC_ASSERT(offset + wanted <= other.offset || other.offset + other.bytes <= offset);
      live.push_back({offset, wanted});
    }
  }));
}

struct Block {
  uint64_t address;
  uint64_t bytes;
};

bool disjoint(const std::map<uint64_t, uint64_t>& live) {
  uint64_t end = 0;
  for (const auto& [address, bytes] : live) {
    if (address < end) return false;
    end = address + bytes;
  }
  return true;
}

// Random allocate and release; `allocate(bytes)` answers 0 when full.
template <typename Allocate, typename Release>
void churn(uint64_t largest, Allocate allocate, Release release) {
  std::vector<Block> blocks;
  std::map<uint64_t, uint64_t> live;
  const auto steps = *rc::gen::container<std::vector<std::pair<bool, uint32_t>>>(
      rc::gen::pair(rc::gen::arbitrary<bool>(), rc::gen::arbitrary<uint32_t>()));
  for (const auto& [take, number] : steps) {
    if (take || blocks.empty()) {
      const uint64_t bytes = 1 + number % largest;
      const uint64_t address = allocate(bytes);
      if (address == 0) continue;
      blocks.push_back({address, bytes});
      live[address] = bytes;
      RC_ASSERT(disjoint(live));
    } else {
      const size_t index = number % blocks.size();
      release(blocks[index].address, blocks[index].bytes);
      live.erase(blocks[index].address);
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(index));
    }
  }
  for (const Block& block : blocks) release(block.address, block.bytes);
}

TEST(RangesTest, NeverOverlap) {
  EXPECT_TRUE(rc::check("ranges are disjoint and within the zone", [] {
    const Zone zone{1 << 20, 128 * kUnit};
    Ranges ranges;
    ranges.reset(zone, kUnit);
    churn(
        10 * kUnit,
        [&](uint64_t bytes) {
          const uint64_t address = ranges.allocate(bytes);
          if (address != 0) RC_ASSERT(zone.contains(address) && zone.contains(address + ranges.padded(bytes)));
          return address;
        },
        [&](uint64_t address, uint64_t bytes) { ranges.release(address, bytes); });
    // Everything is free again and can be had as one.
    RC_ASSERT(ranges.allocate(127 * kUnit) != 0);
  }));
}

// ... also in a zone that is used up again and again; and no two live ranges share a place.
TEST(RangesTest, AreAtHomeInPlacesOfTheirOwn) {
  EXPECT_TRUE(rc::check("live ranges and their homes are disjoint", [] {
    Ranges ranges;
    Homes homes;
    ranges.reset({1 << 20, 128 * kUnit}, kUnit);
    homes.reset(*rc::gen::inRange<uint64_t>(4, 200));
    std::map<uint64_t, uint64_t> live;
    uint64_t now = 0, peak = 0;
    churn(
        10 * kUnit,
        [&](uint64_t bytes) {
          const uint64_t address = ranges.allocate_at_home(bytes, homes);
          if (address == 0) return address;
          live[address] = ranges.padded(bytes) / kUnit;
          peak = std::max(peak, now += live[address]);
          std::set<Place> places;
          for (const auto& [base, count] : live) {
            RC_ASSERT(homes.of(base) != nullptr && homes.of(base)->size() == count);
            places.insert(homes.of(base)->begin(), homes.of(base)->end());
          }
          RC_ASSERT(places.size() == now && homes.taken() == now);
          RC_ASSERT(*places.rbegin() <= peak);
          return address;
        },
        [&](uint64_t address, uint64_t bytes) {
          now -= live[address];
          live.erase(address);
          ranges.release(address, bytes);
          homes.leave(address);
        });
  }));
}

TEST(SlotsTest, SplitsOverHolesRatherThanFail) {
  Slots slots;
  slots.reset(100);
  slots.add_slab(1000, 400);
  HostSlot a;
  HostSlot b;
  HostSlot c;
  ASSERT_TRUE(slots.allocate(100, &a));
  ASSERT_TRUE(slots.allocate(100, &b));
  ASSERT_TRUE(slots.allocate(200, &c));
  slots.release(&a);
  slots.release(&c);
  HostSlot d;
  ASSERT_TRUE(slots.allocate(300, &d));
  EXPECT_EQ(d.size(), 2u);
  EXPECT_EQ(slots.free_bytes(), 0u);
  HostSlot none;
  EXPECT_FALSE(slots.allocate(1, &none));
  EXPECT_TRUE(none.empty());
}

TEST(SlotsTest, NeverSpansTwoSlabs) {
  Slots slots;
  slots.reset(100);
  slots.add_slab(1000, 200);
  slots.add_slab(1200, 200);  // neighbours by chance: still two registrations
  HostSlot all;
  ASSERT_TRUE(slots.allocate(400, &all));
  slots.release(&all);
  HostSlot slot;
  ASSERT_TRUE(slots.allocate(300, &slot));
  ASSERT_EQ(slot.size(), 2u);
  for (const HostPiece& piece : slot) EXPECT_LE(piece.address % 200 + piece.bytes, 200u);
}

TEST(SlotsTest, AccountsForEveryByte) {
  EXPECT_TRUE(rc::check("slots are disjoint and come back", [] {
    Slots slots;
    slots.reset(64);
    slots.add_slab(1 << 20, 64 * 40);
    slots.add_slab(2 << 20, 64 * 24);
    std::map<uint64_t, HostSlot> owned;
    std::map<uint64_t, uint64_t> live;
    uint64_t id = 0;
    churn(
        64 * 20,
        [&](uint64_t bytes) -> uint64_t {
          HostSlot slot;
          const bool fits = slots.rounded(bytes) <= slots.free_bytes();
          RC_ASSERT(slots.allocate(bytes, &slot) == fits);
          if (!fits) return 0;
          uint64_t sum = 0;
          for (const HostPiece& piece : slot) {
            live[piece.address] = piece.bytes;
            sum += piece.bytes;
          }
          RC_ASSERT(sum == slots.rounded(bytes));
          RC_ASSERT(disjoint(live));
          id += 1 << 20;
          owned[id] = slot;
          return id;
        },
        [&](uint64_t name, uint64_t) {
          for (const HostPiece& piece : owned[name]) live.erase(piece.address);
          slots.release(&owned[name]);
        });
    RC_ASSERT(slots.free_bytes() == slots.capacity());
  }));
}

}  // namespace
}  // namespace reprise::replay
