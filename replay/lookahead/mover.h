// What moves as one, by a name that stays while it lives: an allocation by its id, a block of small tensors by where it
// begins. Callers: what looks ahead.
#pragma once
#include <cuda.h>

#include <cstdint>

namespace reprise::replay {

enum class Mover : uint64_t { none = 0 };

inline constexpr uint64_t kBlockBit = uint64_t{1} << 63;
inline Mover mover_of_allocation(uint64_t allocation) noexcept { return Mover{allocation}; }
inline Mover mover_of_block(CUdeviceptr base) noexcept { return Mover{kBlockBit | base}; }
inline bool is_block(Mover mover) noexcept { return (static_cast<uint64_t>(mover) & kBlockBit) != 0; }

}  // namespace reprise::replay
