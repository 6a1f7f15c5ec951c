// The stitching allocator's view of a device: chunks by cuMemCreate, ranges by cuMemAddressReserve and cuMemMap, one
// cuMemSetAccess a range. Caller: Defragmenter, under its lock.
#pragma once
#include <cuda.h>

#include <cstdint>

#include "preload/defragment/stitch/memory.h"

namespace reprise {

class DeviceMemory final : public stitch::Memory {
 public:
  // The smallest chunk that this device maps; 0: it cannot map memory.
  uint64_t open(CUdevice device, CUcontext context) noexcept;

  stitch::Result create(uint64_t* handle) noexcept override;
  void destroy(uint64_t handle) noexcept override;
  stitch::Result map(const uint64_t* handles, uint32_t count, uint64_t* address) noexcept override;
  void unmap(uint64_t address, uint32_t count) noexcept override;
  void unreserve(uint64_t address, uint32_t count) noexcept override;
  void settle() noexcept override;

  // What the driver said last, when a call answered `failed`.
  CUresult error() const noexcept { return error_; }
  // Calls of the driver so far, but for synchronisations.
  uint64_t driver_calls() const noexcept { return driver_calls_; }
  uint64_t chunk_bytes() const noexcept { return chunk_bytes_; }

 private:
  stitch::Result noted(CUresult result) noexcept;
  CUresult set_access(CUdeviceptr address, uint64_t bytes) noexcept;

  CUmemAllocationProp properties_{};
  CUmemAccessDesc access_{};
  CUcontext context_ = nullptr;
  uint64_t chunk_bytes_ = 0;
  CUresult error_ = CUDA_SUCCESS;
  uint64_t driver_calls_ = 0;
};

// Waits for all work of the context, whichever is current.
CUresult synchronize_context(CUcontext context) noexcept;

}  // namespace reprise
