// The pager's strict safety: an address of a live tensor leads to the tensor's bytes or to nothing, so that work which
// touches it unseen finds the right bytes, or faults. Whatever is mapped may have been written by such work, so every
// tensor that leaves is copied, or its digest is that of its host copy.
#include <algorithm>
#include <utility>

#include "replay/memory/pager.h"

namespace reprise::replay {

void Pager::give_back(const std::vector<ChunkIndex>& chunks, const LaneUses& after) noexcept {
  for (const ChunkIndex chunk : chunks) {
    memory_.chunks[chunk].uses = after;
    memory_.chunks.give_back(chunk);
  }
}

// Nothing is mapped where the tensor is to be: not by an allocation that was there before, neither.
CUresult Pager::clear_range(const ResidentTensor& tensor) noexcept {
  const CUresult result = memory_.mappings.make_room(tensor.base, tensor.chunk_count * memory_.chunks.chunk_bytes());
  return result == CUDA_SUCCESS ? memory_.mappings.unmap(tensor.base) : result;
}

// Copies find the chunks in the window. Mappings that are only kept for speed make room for those that it needs.
CUresult Pager::show(const std::vector<ChunkIndex>& chunks) noexcept {
  CUresult result = CUDA_SUCCESS;
  for (const ChunkIndex chunk : chunks) {
    CUdeviceptr address = 0;
    result = memory_.window.show(chunk, &address);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && trim_mappings(chunks.size(), 0) == CUDA_SUCCESS) {
      result = memory_.window.show(chunk, &address);
    }
    if (result != CUDA_SUCCESS) break;
  }
  return result;
}

// The tensor has its chunks, and its bytes start to move; nothing is mapped yet.
CUresult Pager::begin_arrival(ResidentTensor& tensor, std::vector<ChunkIndex> chunks,
                              std::vector<Arrival>* arrivals) noexcept {
  Arrival arrival{&tensor, std::move(chunks), {}};
  CUresult result = CUDA_SUCCESS;
  for (const ChunkIndex chunk : arrival.chunks) arrival.ready.merge(memory_.chunks[chunk].uses);
  if (tensor.host_valid()) {
    LaneUse copied;
    result = show(arrival.chunks);
    if (result == CUDA_SUCCESS) result = copy_in(memory_, tensor, arrival.chunks, arrival.ready, &copied);
    // A failed copy may still be writing to the chunks: their next occupant waits for it.
    if (result == CUDA_SUCCESS) arrival.ready.clear();
    arrival.ready.add(copied.lane, copied.position);
  }
  if (result != CUDA_SUCCESS) {
    give_back(arrival.chunks, arrival.ready);
    return result;
  }
  tensor.begin_arrival();
  arrivals->push_back(std::move(arrival));
  return CUDA_SUCCESS;
}

CUresult Pager::start_in(ResidentTensor& tensor, std::vector<Arrival>* arrivals) noexcept {
  std::vector<ChunkIndex> chunks;
  CUresult result = clear_range(tensor);
  if (result == CUDA_SUCCESS) result = take_chunks(tensor, &chunks);
  return result == CUDA_SUCCESS ? begin_arrival(tensor, std::move(chunks), arrivals) : result;
}

// Only when all bytes are there does the range lead to them.
CUresult Pager::finish_arrival(const Arrival& arrival) noexcept {
  ResidentTensor& tensor = *arrival.tensor;
  CUresult result = memory_.lanes.host_wait(arrival.ready);
  if (result == CUDA_SUCCESS) result = trim_mappings(arrival.chunks.size(), mapping_limit);
  if (result == CUDA_SUCCESS) result = memory_.mappings.map(tensor.base, arrival.chunks);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && trim_mappings(arrival.chunks.size(), 0) == CUDA_SUCCESS) {
    result = memory_.mappings.map(tensor.base, arrival.chunks);
  }
  if (result != CUDA_SUCCESS) {
    tensor.turn_back();
    give_back(arrival.chunks, arrival.ready);
    return result;
  }
  tensor.ready.clear();
  settle_in(tensor, arrival.chunks);
  return CUDA_SUCCESS;
}

void Pager::settle_in(ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks) noexcept {
  tensor.uses = tensor.ready;
  tensor.settle_in();
  tensor.wrote();
  for (const ChunkIndex chunk : chunks) {
    memory_.chunks[chunk].occupant = &tensor;
    memory_.chunks[chunk].uses.clear();
  }
}

// First the range leads nowhere, then the bytes are copied: what is written to it unseen is in the copy, or faults.
CUresult Pager::depart(ResidentTensor& tensor) noexcept {
  if (!ensure_slot(memory_, tensor)) {
    shortage_ = {tensor.chunk_count * memory_.chunks.chunk_bytes(), memory_.host.cap(), true};
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Mapping& mapping = *memory_.mappings.find(tensor.base);
  const std::vector<ChunkIndex> chunks = mapping.chunks;
  mapping.uses.merge(tensor.uses);
  CUresult result = show(chunks);
  if (result != CUDA_SUCCESS) return result;
  result = memory_.mappings.unmap(tensor.base);
  if (result != CUDA_SUCCESS) {
    // What the driver refused midway cannot be put together again: the tensor has no addresses any more.
    const Mapping* const left = memory_.mappings.find(tensor.base);
    if (left == nullptr || left->chunks.size() != chunks.size()) tensor.lose();
    return result;
  }
  tensor.begin_departure();
  tensor.uses.clear();
  // A tensor that leaves for the second time may do so again.
  const bool again = tensor.digest.left_before;
  DigestCheck comparison = begin_comparison(memory_, tensor, chunks, LaneUses{});
  bool same = false;
  if (comparison.cell != kNoDigest) {
    LaneUses computed;
    computed.add(comparison.computed.lane, comparison.computed.position);
    same = memory_.lanes.host_wait(computed) == CUDA_SUCCESS && end_comparison(memory_, tensor, comparison);
  }
  if (!same) result = copy_out_compared(memory_, tensor, chunks, LaneUses{}, &comparison, again);
  if (result != CUDA_SUCCESS) {
    // It stays, if its range can be mapped again. A copy that failed halfway only reads.
    const LaneUses copying = tensor.uses;
    if (memory_.mappings.map(tensor.base, chunks) == CUDA_SUCCESS) {
      tensor.stay();
    } else {
      tensor.lose();
      give_back(chunks, copying);
    }
    return result;
  }
  LaneUses after;
  after.add(Lanes::kToHost, memory_.lanes[Lanes::kToHost].issued);
  tensor.left();
  tensor.digest.left_before = true;
  tensor.ready.clear();
  give_back(chunks, after);
  return CUDA_SUCCESS;
}

// A range that the program has had before is still mapped. When nothing else has taken its chunks, the new tensor has
// them without a call to the driver.
bool Pager::adopt(ResidentTensor& tensor, const Mapping& mapping, LaneUses* before) noexcept {
  ChunkPool& pool = memory_.chunks;
  const auto usable = [&](ChunkIndex chunk) { return pool.is_free(chunk); };
  if (!mapping.accessible || mapping.chunks.size() != tensor.chunk_count || pool.exceeds_limit() ||
      !std::all_of(mapping.chunks.begin(), mapping.chunks.end(), usable)) {
    return false;
  }
  for (const ChunkIndex chunk : mapping.chunks) {
    pool.take(chunk);
    before->merge(pool[chunk].uses);
  }
  return true;
}

CUresult Pager::allocated(ResidentTensor& tensor, LaneIndex lane) noexcept {
  if (!memory_.strict() || tensor.chunk_count == 0) return CUDA_SUCCESS;
  LaneUses before;
  const Mapping* const mapping = memory_.mappings.find(tensor.base);
  if (mapping != nullptr && adopt(tensor, *mapping, &before)) {
    const std::vector<ChunkIndex> chunks = mapping->chunks;
    const CUresult waits = lane != kNoLane ? memory_.lanes.wait_on(lane, before) : memory_.lanes.host_wait(before);
    if (waits == CUDA_SUCCESS) {
      if (lane != kNoLane) tensor.ready = before;
      settle_in(tensor, chunks);
      return CUDA_SUCCESS;
    }
    give_back(chunks, before);
  }
  CUresult result = memory_.lanes.host_wait(memory_.before_frees_away);
  if (result == CUDA_SUCCESS) memory_.before_frees_away.clear();
  if (result == CUDA_SUCCESS) result = clear_range(tensor);
  if (result == CUDA_SUCCESS) map_ahead(tensor);
  return result;
}

// Work that touches the tensor before any that is known to do so finds it, where there is room; else it faults.
void Pager::map_ahead(ResidentTensor& tensor) noexcept {
  if (memory_.chunks.available() < tensor.chunk_count) return;
  std::vector<ChunkIndex> chunks;
  CUresult refused = CUDA_SUCCESS;
  while (chunks.size() < tensor.chunk_count) {
    const ChunkIndex chunk = memory_.chunks.take_free(&refused);
    if (chunk == kNoChunk) break;
    chunks.push_back(chunk);
  }
  std::vector<Arrival> arrivals;
  if (chunks.size() < tensor.chunk_count) {
    for (const ChunkIndex taken : chunks) memory_.chunks.give_back(taken);
  } else if (begin_arrival(tensor, std::move(chunks), &arrivals) == CUDA_SUCCESS) {
    finish_arrival(arrivals.front());
  }
}

}  // namespace reprise::replay
