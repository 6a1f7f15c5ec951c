// TMA descriptors: 128 opaque bytes that hold a device address. What a descriptor points to is remembered when the
// program has the driver encode it. Callers: the cuTensorMap* hooks, argument scanning.
#pragma once
#include <cuda.h>

#include <cstdint>

namespace reprise {

inline constexpr uint32_t kTensorMapBytes = 128;
static_assert(sizeof(CUtensorMap) == kTensorMapBytes);

void insert_tensor_map(const CUtensorMap& map, CUdeviceptr address) noexcept;

// One load: has any descriptor been encoded?
bool any_tensor_map() noexcept;

// The address in a descriptor; 0: these bytes are none that was seen. `bytes`: kTensorMapBytes of them, any alignment.
CUdeviceptr find_tensor_map(const uint8_t* bytes) noexcept;

// More descriptors were encoded than can be remembered: bytes that are not found may be one all the same.
bool tensor_maps_overflowed() noexcept;

}  // namespace reprise
