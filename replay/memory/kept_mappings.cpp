#include "replay/memory/kept_mappings.h"

#include <algorithm>
#include <utility>

namespace reprise::replay {

// Where what mappings take of the device is short, those that are only kept for speed make room.
CUresult KeptMappings::map(CUdeviceptr base, const std::vector<ChunkIndex>& chunks) noexcept {
  CUresult result = trim(chunks.size(), limit);
  if (result == CUDA_SUCCESS) result = memory_.mappings.map(base, chunks);
  if (result != CUDA_ERROR_OUT_OF_MEMORY || trim(chunks.size(), 0) != CUDA_SUCCESS) return result;
  return memory_.mappings.map(base, chunks);
}

// Mappings of tensors that are evicted or freed are only kept for speed, and some systems allow few mappings.
CUresult KeptMappings::trim(uint64_t more, uint64_t most) noexcept {
  Mappings& mappings = memory_.mappings;
  if (mappings.mapped_chunks() + more <= most) return CUDA_SUCCESS;
  std::vector<std::pair<uint64_t, CUdeviceptr>> old;
  for (const auto& [base, mapping] : mappings.all()) {
    const bool slab = memory_.arena.slabs.contains(base);
    if (!slab && !memory_.arena.ranges.contains(base)) continue;
    const ResidentTensor* const tensor = slab ? memory_.blocks.find(base) : memory_.tensors.find(base);
    if (tensor == nullptr || !tensor->is_resident()) old.emplace_back(tensor == nullptr ? 0 : tensor->last_use, base);
  }
  std::sort(old.begin(), old.end());
  for (const auto& [last_use, base] : old) {
    if (mappings.mapped_chunks() + more <= most) break;
    const CUresult result = mappings.unmap(base);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace reprise::replay
