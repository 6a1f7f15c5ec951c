#include "preload/tracking/pool_use.h"

#include <atomic>

namespace reprise {
namespace {

// As drivers round what they take from a pool.
constexpr uint64_t kUnit = 512;
constexpr uint8_t kMostPools = 64;

struct Pool {
  std::atomic<uint64_t> handle{0};
  std::atomic<uint64_t> now{0};
  std::atomic<uint64_t> high[2] = {0, 0};  // of used, of reserved
};
constinit Pool pools[kMostPools];

void raise_to(std::atomic<uint64_t>& high, uint64_t value) {
  uint64_t seen = high.load(std::memory_order_relaxed);
  while (seen < value && !high.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

Pool* find_pool(uint64_t handle) {
  for (Pool& pool : pools) {
    const uint64_t known = pool.handle.load(std::memory_order_acquire);
    if (known == handle) return &pool;
    if (known == 0) return nullptr;
  }
  return nullptr;
}

}  // namespace

uint8_t pool_number(uint64_t handle) noexcept {
  if (handle == 0) return 0;
  for (uint8_t i = 0; i < kMostPools; ++i) {
    uint64_t known = pools[i].handle.load(std::memory_order_acquire);
    if (known == 0 && pools[i].handle.compare_exchange_strong(known, handle)) known = handle;
    if (known == handle) return static_cast<uint8_t>(i + 1);
  }
  return 0;
}

uint64_t pool_handle(uint8_t number) noexcept {
  return number == 0 ? 0 : pools[number - 1].handle.load(std::memory_order_relaxed);
}

void count_in_pool(uint8_t number, uint64_t size, bool add) noexcept {
  if (number == 0) return;
  Pool& pool = pools[number - 1];
  const uint64_t bytes = (size + kUnit - 1) / kUnit * kUnit;
  if (!add) {
    pool.now.fetch_sub(bytes, std::memory_order_relaxed);
    return;
  }
  const uint64_t now = pool.now.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  for (auto& high : pool.high) raise_to(high, now);
}

PoolUse pool_use(uint64_t handle) noexcept {
  const Pool* pool = handle == 0 ? nullptr : find_pool(handle);
  if (pool == nullptr) return {};
  return {pool->now.load(std::memory_order_relaxed), pool->high[0].load(std::memory_order_relaxed),
          pool->high[1].load(std::memory_order_relaxed)};
}

void reset_pool_high(uint64_t handle, PoolHigh which) noexcept {
  Pool* pool = handle == 0 ? nullptr : find_pool(handle);
  if (pool == nullptr) return;
  pool->high[static_cast<uint8_t>(which)].store(pool->now.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

}  // namespace reprise
