// Which mappings stay when their tensors have left: they are only kept for speed, and go where a system allows few, or
// where what mappings take of the device is short. Callers: the pager's ways of bringing in, on the dispatcher thread.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <vector>

#include "replay/memory/memory.h"

namespace reprise::replay {

class KeptMappings {
 public:
  explicit KeptMappings(ManagedMemory* memory) noexcept : memory_(*memory) {}

  // Nothing may be mapped there.
  CUresult map(CUdeviceptr base, const std::vector<ChunkIndex>& chunks) noexcept;
  // Unmaps what is only kept for speed until `more` chunks can be mapped, `most` in all.
  CUresult trim(uint64_t more, uint64_t most) noexcept;
  uint64_t limit = UINT64_MAX;  // of mapped chunks

 private:
  ManagedMemory& memory_;
};

}  // namespace reprise::replay
