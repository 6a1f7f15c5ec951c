// The map from handles to words that hooks read without locks.
#include "preload/tracking/handle_map.h"

#include <malloc.h>

#include "tests/support/test.h"

namespace reprise {
namespace {

TEST(HandleMap, FindsWhatWasSetThroughGrowthAndErasure) {
  auto& map = *new HandleMap;
  EXPECT_EQ(map.find(0x10), 0u);
  std::map<uint64_t, uint64_t> model;
  for (uint64_t i = 1; i <= 5000; ++i) {
    const uint64_t key = i * 0x40;  // like handles: aligned
    ASSERT_TRUE(map.set(key, i));
    model[key] = i;
    if (i % 3 == 0) {
      map.erase(key - 0x40);
      model.erase(key - 0x40);
    }
    if (i % 7 == 0) {
      map.set(key, i + 1);
      model[key] = i + 1;
    }
  }
  for (uint64_t i = 1; i <= 5000; ++i) {
    const auto known = model.find(i * 0x40);
    ASSERT_EQ(map.find(i * 0x40), known != model.end() ? known->second : 0u) << i;
  }
  size_t visited = 0;
  map.each([&](uint64_t key, uint64_t value) {
    ++visited;
    EXPECT_EQ(model[key], value);
  });
  EXPECT_EQ(visited, model.size());
}

TEST(HandleMap, ComingAndGoingDoesNotGrowIt) {
  auto& map = *new HandleMap;
  for (uint64_t i = 1; i <= 100000; ++i) {
    map.set(i * 8, i);
    map.erase(i * 8);
  }
  EXPECT_LT(map.used(), 64u);
}

// A stream or a graph for each step of a program that runs for weeks. Sanitizers' malloc counts nothing here.
TEST(HandleMap, ComingAndGoingTakesNoMemory) {
  auto& map = *new HandleMap;
  for (uint64_t i = 1; i <= 1000; ++i) map.set(i * 8, i);
  const size_t before = mallinfo2().uordblks;
  for (uint64_t i = 1001; i <= 1000000; ++i) {
    map.set(i * 8, i);
    map.erase((i - 1000) * 8);
  }
  EXPECT_LT(mallinfo2().uordblks - before, 1u << 18);
}

TEST(HandleMap, ReadersFindWhatIsThereWhileTablesAreUsedAgain) {
  auto& map = *new HandleMap;
  for (uint64_t key = 1; key <= 8; ++key) map.set(key, key);
  std::atomic<bool> stop{false};
  std::atomic<int> lost{0};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    for (uint64_t key = 1; !stop; key = key % 8 + 1) lost += map.find(key) != key ? 1 : 0;
  });
  std::thread visitor([&] {
    while (!stop) map.each([&](uint64_t key, uint64_t value) { wrong += key != value ? 1 : 0; });
  });
  for (uint64_t key = 1000; key < 1000000; ++key) {
    map.set(key, key);
    map.erase(key);
  }
  stop = true;
  reader.join();
  visitor.join();
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(wrong, 0);
}

TEST(HandleMap, ZeroIsNoKey) {
  auto& map = *new HandleMap;
  EXPECT_FALSE(map.set(0, 1));
  EXPECT_EQ(map.find(0), 0u);
}

TEST(HandleMap, ReadersFindWhatIsThereWhileItGrows) {
  auto& map = *new HandleMap;
  for (uint64_t key = 1; key <= 30; ++key) map.set(key, key);
  std::atomic<bool> stop{false};
  std::atomic<int> lost{0};
  std::thread reader([&] {
    for (uint64_t key = 1; !stop; key = key % 30 + 1) lost += map.find(key) != key ? 1 : 0;
  });
  for (uint64_t key = 1000; key < 20000; ++key) map.set(key, key);
  stop = true;
  reader.join();
  EXPECT_EQ(lost, 0);
}

}  // namespace
}  // namespace reprise
