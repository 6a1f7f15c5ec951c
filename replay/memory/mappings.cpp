#include "replay/memory/mappings.h"

#include <utility>

#include "preload/driver/driver.h"

namespace reprise::replay {

void Mappings::open(ChunkPool* chunks, Lanes* lanes, CUdevice device) noexcept {
  chunks_ = chunks;
  lanes_ = lanes;
  access_ = {};
  access_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access_.location.id = device;
  access_.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

Mapping* Mappings::find(CUdeviceptr base) noexcept {
  const auto found = mappings_.find(base);
  return found == mappings_.end() ? nullptr : &found->second;
}

CUresult Mappings::map(CUdeviceptr base, std::vector<ChunkIndex> chunks) noexcept {
  const uint64_t chunk_bytes = chunks_->chunk_bytes();
  CUresult result = CUDA_SUCCESS;
  uint64_t mapped = 0;
  for (; mapped < chunks.size() && result == CUDA_SUCCESS; ++mapped) {
    ++driver_calls_;
    result = driver().cuMemMap(base + mapped * chunk_bytes, chunk_bytes, 0, (*chunks_)[chunks[mapped]].handle, 0);
    if (result != CUDA_SUCCESS) break;
  }
  if (result == CUDA_SUCCESS) result = set_access(base, chunks.size() * chunk_bytes);
  if (result != CUDA_SUCCESS) {
    if (mapped > 0) unmap_range(base, mapped);
    return result;
  }
  mapped_chunks_ += chunks.size();
  mappings_[base] = Mapping{std::move(chunks), {}};
  return CUDA_SUCCESS;
}

// The driver may answer NOT_READY while other threads queue work: then all queued work has to finish first.
CUresult Mappings::set_access(CUdeviceptr base, uint64_t bytes) noexcept {
  CUresult result = CUDA_ERROR_NOT_READY;
  for (int attempt = 0; attempt < 3 && result == CUDA_ERROR_NOT_READY; ++attempt) {
    if (attempt > 0) lanes_->synchronize();
    ++driver_calls_;
    result = driver().cuMemSetAccess(base, bytes, &access_, 1);
  }
  return result;
}

// One call for the whole range where the driver takes it, else one per chunk.
CUresult Mappings::unmap_range(CUdeviceptr base, uint64_t chunks) noexcept {
  const uint64_t chunk_bytes = chunks_->chunk_bytes();
  ++driver_calls_;
  CUresult result = driver().cuMemUnmap(base, chunks * chunk_bytes);
  if (result != CUDA_ERROR_INVALID_VALUE || chunks == 1) return result;
  for (uint64_t i = 0; i < chunks; ++i) {
    ++driver_calls_;
    result = driver().cuMemUnmap(base + i * chunk_bytes, chunk_bytes);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult Mappings::unmap(CUdeviceptr base) noexcept {
  const auto found = mappings_.find(base);
  if (found == mappings_.end()) return CUDA_SUCCESS;
  CUresult result = lanes_->host_wait(found->second.uses);
  if (result == CUDA_SUCCESS) result = unmap_range(base, found->second.chunks.size());
  if (result != CUDA_SUCCESS) return result;
  mapped_chunks_ -= found->second.chunks.size();
  mappings_.erase(found);
  return CUDA_SUCCESS;
}

CUresult Mappings::make_room(CUdeviceptr base, uint64_t bytes) noexcept {
  const uint64_t chunk_bytes = chunks_->chunk_bytes();
  auto mapping = mappings_.upper_bound(base);
  if (mapping != mappings_.begin()) --mapping;
  while (mapping != mappings_.end() && mapping->first < base + bytes) {
    const CUdeviceptr start = mapping->first;
    const uint64_t size = mapping->second.chunks.size() * chunk_bytes;
    ++mapping;
    if (start + size <= base || (start == base && size == bytes)) continue;
    const CUresult result = unmap(start);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult Mappings::unmap_chunk(ChunkIndex chunk) noexcept {
  for (auto mapping = mappings_.begin(); mapping != mappings_.end();) {
    const auto current = mapping++;
    for (const ChunkIndex mapped : current->second.chunks) {
      if (mapped != chunk) continue;
      const CUresult result = unmap(current->first);
      if (result != CUDA_SUCCESS) return result;
      break;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace reprise::replay
