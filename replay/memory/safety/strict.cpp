#include "replay/memory/safety/strict.h"

#include <algorithm>
#include <utility>

namespace reprise::replay {
namespace {

void settle_in(ManagedMemory& memory, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks) noexcept {
  tensor.uses = tensor.ready;
  tensor.settle_in();
  tensor.wrote();
  for (const ChunkIndex chunk : chunks) {
    memory.chunks[chunk].occupant = &tensor;
    memory.chunks[chunk].uses.clear();
  }
}

// A range that the program has had before is still mapped. When nothing else has taken its chunks, the new tensor has
// them without a call to the driver.
bool adopt(ChunkPool& pool, HomeChunks* homes, const ResidentTensor& tensor, const Mapping& mapping,
           LaneUses* before) noexcept {
  const auto usable = [&](ChunkIndex chunk) { return pool.is_free(chunk); };
  if (!mapping.accessible || mapping.chunks.size() != tensor.chunk_count || pool.exceeds_limit() ||
      !std::all_of(mapping.chunks.begin(), mapping.chunks.end(), usable) ||
      (homes != nullptr && homes->is_free_elsewhere(tensor.base, mapping.chunks))) {
    return false;
  }
  for (const ChunkIndex chunk : mapping.chunks) {
    pool.take(chunk);
    before->merge(pool[chunk].uses);
  }
  return true;
}

// Nothing is mapped where the tensor is to be: not by an allocation that was there before, neither.
CUresult clear_range(ManagedMemory& memory, const ResidentTensor& tensor) noexcept {
  const CUresult result = memory.mappings.make_room(tensor.base, tensor.chunk_count * memory.chunks.chunk_bytes());
  return result == CUDA_SUCCESS ? memory.mappings.unmap(tensor.base) : result;
}

}  // namespace

// Copies find the chunks in the window. Mappings that are only kept for speed make room for those that it needs.
CUresult StrictSafety::show(Pager& pager, const std::vector<ChunkIndex>& chunks) noexcept {
  CUresult result = CUDA_SUCCESS;
  for (const ChunkIndex chunk : chunks) {
    CUdeviceptr address = 0;
    result = window_.show(chunk, &address);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && pager.mappings.trim(chunks.size(), 0) == CUDA_SUCCESS) {
      result = window_.show(chunk, &address);
    }
    if (result != CUDA_SUCCESS) break;
  }
  return result;
}

// The tensor has its chunks, and its bytes start to move; nothing is mapped yet.
CUresult StrictSafety::begin_arrival(Pager& pager, ResidentTensor& tensor, std::vector<ChunkIndex> chunks) noexcept {
  Arrival arrival{&tensor, std::move(chunks), {}};
  CUresult result = CUDA_SUCCESS;
  for (const ChunkIndex chunk : arrival.chunks) arrival.ready.merge(memory_.chunks[chunk].uses);
  if (tensor.host_valid()) {
    LaneUse copied;
    result = show(pager, arrival.chunks);
    if (result == CUDA_SUCCESS) result = copy_in(memory_, tensor, arrival.chunks, arrival.ready, &copied);
    // A failed copy may still be writing to the chunks: their next occupant waits for it.
    if (result == CUDA_SUCCESS) arrival.ready.clear();
    arrival.ready.add(copied.lane, copied.position);
  }
  if (result != CUDA_SUCCESS) {
    give_back(memory_.chunks, arrival.chunks, arrival.ready);
    return result;
  }
  tensor.begin_arrival();
  arrivals_.push_back(std::move(arrival));
  return CUDA_SUCCESS;
}

CUresult StrictSafety::bring_in(Pager& pager, ResidentTensor& tensor) noexcept {
  std::vector<ChunkIndex> chunks;
  CUresult result = clear_range(memory_, tensor);
  if (result == CUDA_SUCCESS) result = pager.take_chunks(tensor, &chunks);
  return result == CUDA_SUCCESS ? begin_arrival(pager, tensor, std::move(chunks)) : result;
}

CUresult StrictSafety::finish_arrivals(Pager& pager) noexcept {
  CUresult result = CUDA_SUCCESS;
  while (!arrivals_.empty()) {
    const CUresult finished = finish_arrival(pager, *arrivals_.front().tensor);
    if (result == CUDA_SUCCESS) result = finished;
  }
  return result;
}

CUresult StrictSafety::finish_arrival(Pager& pager, ResidentTensor& tensor) noexcept {
  const auto is_it = [&](const Arrival& arrival) { return arrival.tensor == &tensor; };
  const auto found = std::find_if(arrivals_.begin(), arrivals_.end(), is_it);
  if (found == arrivals_.end()) return CUDA_SUCCESS;
  const Arrival arrival = std::move(*found);
  arrivals_.erase(found);
  // Only when all bytes are there: work that was issued may touch them unseen.
  return land(pager, arrival, memory_.lanes.host_wait(arrival.ready), LaneUses{});
}

void StrictSafety::poll_arrivals(Pager& pager) noexcept {
  for (size_t i = 0; i < arrivals_.size();) {
    if (memory_.lanes.complete(arrivals_[i].ready)) {
      finish_arrival(pager, *arrivals_[i].tensor);
    } else {
      ++i;
    }
  }
}

bool StrictSafety::may_leave(const ResidentTensor& tensor) noexcept {
  const Mapping* const mapping = memory_.mappings.find(tensor.base);
  return memory_.lanes.complete(tensor.uses) && (mapping == nullptr || memory_.lanes.complete(mapping->uses));
}

// Its range leads to its chunks from here on, unless `result` is an error, for work that waits for `ready`.
CUresult StrictSafety::land(Pager& pager, const Arrival& arrival, CUresult result, const LaneUses& ready) noexcept {
  ResidentTensor& tensor = *arrival.tensor;
  if (result == CUDA_SUCCESS) result = pager.mappings.map(tensor.base, arrival.chunks);
  if (result != CUDA_SUCCESS) {
    tensor.turn_back();
    give_back(memory_.chunks, arrival.chunks, arrival.ready);
    return result;
  }
  tensor.ready = ready;
  settle_in(memory_, tensor, arrival.chunks);
  return CUDA_SUCCESS;
}

// First the range leads nowhere, then the bytes are copied: what is written to it unseen is in the copy, or faults.
CUresult StrictSafety::evict(Pager& pager, ResidentTensor& tensor) noexcept {
  if (!ensure_slot(memory_, tensor)) return pager.host_is_full(tensor);
  Mapping& mapping = *memory_.mappings.find(tensor.base);
  const std::vector<ChunkIndex> chunks = mapping.chunks;
  mapping.uses.merge(tensor.uses);
  CUresult result = show(pager, chunks);
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
      give_back(memory_.chunks, chunks, copying);
    }
    return result;
  }
  LaneUses after;
  after.add(Lanes::kToHost, memory_.lanes[Lanes::kToHost].issued);
  tensor.left();
  tensor.digest.left_before = true;
  tensor.ready.clear();
  give_back(memory_.chunks, chunks, after);
  return CUDA_SUCCESS;
}

CUresult StrictSafety::allocated(Pager& pager, ResidentTensor& tensor, LaneIndex lane) noexcept {
  LaneUses before;
  const Mapping* const mapping = memory_.mappings.find(tensor.base);
  if (mapping != nullptr && adopt(memory_.chunks, pager.hooks.homes, tensor, *mapping, &before)) {
    const std::vector<ChunkIndex> chunks = mapping->chunks;
    const CUresult waits = lane != kNoLane ? memory_.lanes.wait_on(lane, before) : CUDA_SUCCESS;
    if (waits == CUDA_SUCCESS) {
      if (lane == kNoLane) fence_.add(memory_.lanes, before);
      tensor.ready = before;
      settle_in(memory_, tensor, chunks);
      return CUDA_SUCCESS;
    }
    give_back(memory_.chunks, chunks, before);
  }
  CUresult result = memory_.lanes.host_wait(before_frees_away_);
  if (result == CUDA_SUCCESS) before_frees_away_.clear();
  if (result == CUDA_SUCCESS) result = clear_range(memory_, tensor);
  if (result == CUDA_SUCCESS) map_ahead(pager, tensor);
  return result;
}

// Work that touches the tensor before any that is known to do so finds it, where there is room; else it faults.
void StrictSafety::map_ahead(Pager& pager, ResidentTensor& tensor) noexcept {
  if (memory_.chunks.available() < tensor.chunk_count) return;
  std::vector<ChunkIndex> chunks;
  CUresult refused = CUDA_SUCCESS;
  if (!take_free(memory_.chunks, pager.hooks.homes, tensor.base, tensor.chunk_count, &chunks, &refused)) return;
  if (begin_arrival(pager, tensor, std::move(chunks)) == CUDA_SUCCESS) {
    const Arrival arrival = std::move(arrivals_.back());
    arrivals_.pop_back();
    if (land(pager, arrival, CUDA_SUCCESS, arrival.ready) == CUDA_SUCCESS) fence_.add(memory_.lanes, arrival.ready);
  }
}

// Work that touches the tensor unseen is not ordered behind its `ready`.
CUresult StrictSafety::takes_place(const LaneUses& before, LaneIndex lane) noexcept {
  if (lane != kNoLane) return memory_.lanes.wait_on(lane, before);
  fence_.add(memory_.lanes, before);
  return CUDA_SUCCESS;
}

// Before a free that is ordered on a stream the program has brought all such work to that stream; any other waits for
// the device.
LaneUses StrictSafety::work_before_free(bool stream_ordered, CUstream stream, CUcontext context) noexcept {
  LaneUses uses;
  if (stream_ordered) {
    const LaneIndex lane = memory_.lanes.lane_of(stream, context);
    uses.add(lane, memory_.lanes[lane].issued);
    return uses;
  }
  memory_.lanes.poll();
  for (const LaneUse& use : memory_.lanes.outstanding()) {
    if (!Lanes::is_ours(use.lane)) uses.add(use.lane, use.position);
  }
  return uses;
}

void StrictSafety::freed(ResidentTensor& tensor, const LaneUses& work_before) noexcept {
  (tensor.is_resident() ? tensor.uses : before_frees_away_).merge(work_before);
}

// So that it is known how far the lane has come, should a kernel fault.
void StrictSafety::issued(LaneIndex lane) noexcept {
  memory_.lanes.mark(lane);
  memory_.lanes.poll();
}

CUresult StrictSafety::find_run(const ResidentTensor&, const std::vector<ChunkIndex>& chunks, uint64_t offset,
                                CUdeviceptr* device, uint64_t* bytes) noexcept {
  const uint64_t chunk_bytes = memory_.chunks.chunk_bytes();
  const uint64_t first = offset / chunk_bytes;
  const uint64_t inside = offset % chunk_bytes;
  CUresult result = window_.show(chunks[first], device);
  *device += inside;
  uint64_t end = chunk_bytes;  // of what lies together, counted from the first chunk's start
  for (uint64_t i = 1; result == CUDA_SUCCESS && end < inside + *bytes && chunks[first + i] == chunks[first] + i; ++i) {
    CUdeviceptr next = 0;
    result = window_.show(chunks[first + i], &next);
    end += chunk_bytes;
  }
  *bytes = std::min(*bytes, end - inside);
  return result;
}

CUresult StrictSafety::begin_at_home(ResidentTensor& tensor, const std::vector<ChunkIndex>& home) noexcept {
  const Mapping* const mapping = memory_.mappings.find(tensor.base);
  const bool in_place = mapping != nullptr && mapping->chunks == home;
  const CUresult result = in_place ? CUDA_SUCCESS : memory_.mappings.map(tensor.base, home);
  if (result != CUDA_SUCCESS) return result;
  tensor.settle_in();
  tensor.wrote();
  return CUDA_SUCCESS;
}

bool StrictSafety::clear_for_next(CUdeviceptr base, const LaneUses& uses, CUresult* result) noexcept {
  if (uses.everything()) *result = memory_.lanes.synchronize();
  if (!uses.everything() && !memory_.lanes.complete(uses)) return false;
  if (*result != CUDA_SUCCESS) return false;
  *result = memory_.mappings.unmap(base);
  return *result == CUDA_SUCCESS;
}

}  // namespace reprise::replay
