#include "replay/memory/safety/trusted.h"

namespace reprise::replay {

CUresult TrustedSafety::bring_in(Pager& pager, ResidentTensor& tensor) noexcept {
  std::vector<ChunkIndex> chunks;
  CUresult result = pager.take_chunks(tensor, &chunks);
  if (result != CUDA_SUCCESS) return result;
  LaneUses before;
  for (const ChunkIndex chunk : chunks) before.merge(memory_.chunks[chunk].uses);
  result = remap(pager, tensor, chunks);
  LaneUse copied;
  const bool reload = result == CUDA_SUCCESS && tensor.host_valid();
  if (reload) result = copy_in(memory_, tensor, chunks, before, &copied);
  if (result != CUDA_SUCCESS) {
    // A failed copy may still be writing to the chunks: their next occupant waits for it, and so does unmapping.
    if (reload) {
      before.add(copied.lane, copied.position);
      memory_.mappings.find(tensor.base)->uses.add(copied.lane, copied.position);
    }
    give_back(memory_.chunks, chunks, before);
    return result;
  }
  tensor.ready.clear();
  if (reload) {
    tensor.ready.add(copied.lane, copied.position);
  } else {
    tensor.ready = before;
  }
  tensor.uses = tensor.ready;
  tensor.settle_in();
  for (const ChunkIndex chunk : chunks) {
    memory_.chunks[chunk].occupant = &tensor;
    memory_.chunks[chunk].uses.clear();
  }
  return CUDA_SUCCESS;
}

CUresult TrustedSafety::remap(Pager& pager, const ResidentTensor& tensor,
                              const std::vector<ChunkIndex>& chunks) noexcept {
  Mappings& mappings = memory_.mappings;
  const Mapping* const mapping = mappings.find(tensor.base);
  if (mapping != nullptr && mapping->chunks == chunks) return CUDA_SUCCESS;
  CUresult result = mappings.make_room(tensor.base, tensor.chunk_count * memory_.chunks.chunk_bytes());
  if (result == CUDA_SUCCESS) result = mappings.unmap(tensor.base);
  return result == CUDA_SUCCESS ? pager.mappings.map(tensor.base, chunks) : result;
}

CUresult TrustedSafety::evict(Pager& pager, ResidentTensor& tensor) noexcept {
  LaneUses after = tensor.uses;
  if (tensor.needs_copy()) {
    if (!ensure_slot(memory_, tensor)) return pager.host_is_full(tensor);
    const CUresult result = copy_out(memory_, tensor, memory_.mappings.find(tensor.base)->chunks, after);
    if (result != CUDA_SUCCESS) return result;
    after.clear();
    after.add(tensor.host_ready().lane, tensor.host_ready().position);
  }
  pager.release_chunks(tensor, after);
  return CUDA_SUCCESS;
}

CUresult TrustedSafety::find_run(const ResidentTensor& tensor, const std::vector<ChunkIndex>&, uint64_t offset,
                                 CUdeviceptr* device, uint64_t*) noexcept {
  *device = tensor.base + offset;
  return CUDA_SUCCESS;
}

CUresult TrustedSafety::make_clean(ResidentTensor& tensor, const std::vector<ChunkIndex>& home) noexcept {
  return ensure_slot(memory_, tensor) ? copy_out(memory_, tensor, home, LaneUses{}) : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult TrustedSafety::begin_at_home(ResidentTensor& tensor, const std::vector<ChunkIndex>&) noexcept {
  tensor.settle_in();
  return CUDA_SUCCESS;
}

}  // namespace reprise::replay
