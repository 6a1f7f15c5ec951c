// What an address of a copy is: device memory, pinned or pageable host memory. Callers: copy hooks.
#pragma once
#include <cuda.h>

#include <cstdint>

#include "preload/hooks/submit.h"

namespace reprise {

enum class Place : uint8_t { device, pinned, pageable };

// By our own map first; an address that is not in it costs one driver query.
Place place_of(CUdeviceptr address) noexcept;

// Notes one side of a copy: `bytes` from `address` on, which lies at `place`. `dense`: every byte of the range is
// copied.
void touch_source(CommandBuilder& builder, CUdeviceptr address, uint64_t bytes, Place place) noexcept;
void touch_target(CommandBuilder& builder, CUdeviceptr address, uint64_t bytes, Place place, bool dense) noexcept;

// The kind that two places make, and whether the host side of it is pageable.
void classify(CommandBuilder& builder, Place from, Place to) noexcept;

// After the copy was accepted: pointer tables that it wrote or carried along (pointees.h).
void follow_pointers(CUdeviceptr to, Place to_place, CUdeviceptr from, Place from_place, uint64_t bytes) noexcept;

}  // namespace reprise
