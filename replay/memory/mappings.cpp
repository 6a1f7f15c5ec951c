#include "replay/memory/mappings.h"

#include <algorithm>
#include <utility>

#include "preload/driver/driver.h"

namespace reprise::replay {

void Mappings::open(ChunkPool* chunks, Lanes* lanes, CUdevice device) noexcept {
  chunks_ = chunks;
  lanes_ = lanes;
  access_.assign(1, CUmemAccessDesc{{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_NONE});
}

CUresult Mappings::allow_peers(uint64_t devices) noexcept {
  access_.resize(1);
  for (int device = 0; device < 64; ++device) {
    const bool allowed = (devices >> device & 1) != 0 && device != access_[0].location.id;
    if (allowed) access_.push_back({{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_NONE});
  }
  CUresult result = CUDA_SUCCESS;
  for (const auto& [base, mapping] : mappings_) {
    if (result != CUDA_SUCCESS || mapping.granted == 0) continue;
    result = set_access(base, mapping.granted * chunks_->chunk_bytes(), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  }
  return result;
}

Mapping* Mappings::find(CUdeviceptr base) noexcept {
  const auto found = mappings_.find(base);
  return found == mappings_.end() ? nullptr : &found->second;
}

CUresult Mappings::map(CUdeviceptr base, std::vector<ChunkIndex> chunks) noexcept {
  const uint64_t count = chunks.size();
  CUresult result = begin(base, std::move(chunks));
  if (result == CUDA_SUCCESS) result = extend(base, count);
  return result == CUDA_SUCCESS ? grant(base) : result;
}

CUresult Mappings::begin(CUdeviceptr base, std::vector<ChunkIndex> chunks) noexcept {
  mappings_[base].chunks = std::move(chunks);
  return CUDA_SUCCESS;
}

CUresult Mappings::extend(CUdeviceptr base, uint64_t most) noexcept {
  const uint64_t chunk_bytes = chunks_->chunk_bytes();
  Mapping& mapping = mappings_[base];
  CUresult result = CUDA_SUCCESS;
  for (; most > 0 && mapping.mapped < mapping.chunks.size(); --most) {
    ++driver_calls_;
    const CUmemGenericAllocationHandle handle = (*chunks_)[mapping.chunks[mapping.mapped]].handle;
    result = driver().cuMemMap(base + mapping.mapped * chunk_bytes, chunk_bytes, 0, handle, 0);
    if (result != CUDA_SUCCESS) break;
    ++mapping.mapped;
    ++mapped_chunks_;
  }
  if (result != CUDA_SUCCESS) drop(base);
  return result;
}

CUresult Mappings::grant(CUdeviceptr base, uint64_t most) noexcept {
  const uint64_t chunk_bytes = chunks_->chunk_bytes();
  Mapping& mapping = mappings_[base];
  const uint64_t count = std::min(most, mapping.mapped - mapping.granted);
  const CUresult result =
      set_access(base + mapping.granted * chunk_bytes, count * chunk_bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  if (result != CUDA_SUCCESS) {
    drop(base);
    return result;
  }
  mapping.granted += count;
  mapping.accessible = mapping.granted == mapping.chunks.size();
  return CUDA_SUCCESS;
}

// Forgets the mapping and unmaps what was mapped of it.
CUresult Mappings::drop(CUdeviceptr base) noexcept {
  const auto found = mappings_.find(base);
  Mapping mapping = std::move(found->second);
  mappings_.erase(found);
  mapped_chunks_ -= mapping.mapped;
  mapping.chunks.resize(mapping.mapped);
  return mapping.chunks.empty() ? CUDA_SUCCESS : unmap_range(base, std::move(mapping));
}

// The driver may answer NOT_READY while other threads queue work: then all queued work has to finish first.
CUresult Mappings::set_access(CUdeviceptr base, uint64_t bytes, CUmemAccess_flags flags) noexcept {
  for (CUmemAccessDesc& access : access_) access.flags = flags;
  CUresult result = CUDA_ERROR_NOT_READY;
  for (int attempt = 0; attempt < 3 && result == CUDA_ERROR_NOT_READY; ++attempt) {
    if (attempt > 0) lanes_->synchronize();
    ++driver_calls_;
    result = driver().cuMemSetAccess(base, bytes, access_.data(), access_.size());
  }
  return result;
}

// One call for the whole range where the driver takes it, else one per chunk. What it refuses to unmap is a mapping of
// its own afterwards, at its own start, so that whoever wants these addresses unmaps it first (make_room).
CUresult Mappings::unmap_range(CUdeviceptr base, Mapping mapping) noexcept {
  const uint64_t chunk_bytes = chunks_->chunk_bytes();
  const uint64_t count = mapping.chunks.size();
  ++driver_calls_;
  CUresult result = driver().cuMemUnmap(base, count * chunk_bytes);
  uint64_t gone = result == CUDA_SUCCESS ? count : 0;
  if (result == CUDA_ERROR_INVALID_VALUE && count > 1) {
    for (result = CUDA_SUCCESS; gone < count; ++gone) {
      ++driver_calls_;
      result = driver().cuMemUnmap(base + gone * chunk_bytes, chunk_bytes);
      if (result != CUDA_SUCCESS) break;
    }
  }
  if (gone == count) return CUDA_SUCCESS;
  mapping.chunks.erase(mapping.chunks.begin(), mapping.chunks.begin() + static_cast<std::ptrdiff_t>(gone));
  mapping.mapped = mapping.chunks.size();
  mapping.granted -= std::min(mapping.granted, gone);
  mapped_chunks_ += mapping.mapped;
  mappings_[base + gone * chunk_bytes] = std::move(mapping);
  return result;
}

CUresult Mappings::unmap(CUdeviceptr base) noexcept {
  const auto found = mappings_.find(base);
  if (found == mappings_.end()) return CUDA_SUCCESS;
  if (const CUresult result = lanes_->host_wait(found->second.uses); result != CUDA_SUCCESS) return result;
  return drop(base);
}

CUresult Mappings::set_rights(CUdeviceptr base, Rights rights) noexcept {
  const auto found = mappings_.find(base);
  if (found == mappings_.end()) return CUDA_ERROR_INVALID_VALUE;
  if (rights_of(found->second) == rights) return CUDA_SUCCESS;
  CUresult result = lanes_->host_wait(found->second.uses);
  if (result != CUDA_SUCCESS) return result;
  const std::vector<ChunkIndex> chunks = found->second.chunks;
  if (rights == Rights::none) {
    result = drop(base);
  } else {
    result = extend(base, chunks.size());
    if (result == CUDA_SUCCESS && rights == Rights::write) result = grant(base);
    if (result == CUDA_SUCCESS && rights == Rights::read) {
      mappings_[base].granted = 0;
      mappings_[base].accessible = false;
      result = set_access(base, chunks.size() * chunks_->chunk_bytes(), CU_MEM_ACCESS_FLAGS_PROT_READ);
      if (result != CUDA_SUCCESS) drop(base);
    }
  }
  const bool gone = mappings_.find(base) == mappings_.end();
  if (gone) mappings_[base].chunks = chunks;
  return result;
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
