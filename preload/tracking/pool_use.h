// What stream-ordered pools of the program hold, of memory that the handler makes in the driver's place: the driver's
// pools stay empty then, and PyTorch's memory_allocated() and its peak come from their attributes. Callers: the map of
// allocations, which counts; hooks of allocations and of pool attributes.
#pragma once
#include <cstdint>

namespace reprise {

// The number, from 1, under which the pool with this handle is counted. 0: there are too many; that one is not counted.
uint8_t pool_number(uint64_t handle) noexcept;

// The pool of that number; 0: none.
uint64_t pool_handle(uint8_t number) noexcept;

// One allocation more or less; number 0 counts nothing.
void count_in_pool(uint8_t number, uint64_t size, bool add) noexcept;

struct PoolUse {
  uint64_t now = 0;
  uint64_t used_high = 0;
  uint64_t reserved_high = 0;
};
// Zeros for a pool that was never counted.
PoolUse pool_use(uint64_t handle) noexcept;

enum class PoolHigh : uint8_t { used, reserved };
// The mark goes back to what is used now.
void reset_pool_high(uint64_t handle, PoolHigh which) noexcept;

}  // namespace reprise
