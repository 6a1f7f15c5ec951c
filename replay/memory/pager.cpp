#include "replay/memory/pager.h"

#include <algorithm>

#include "preload/driver/results.h"
#include "preload/footprint/slab.h"

namespace reprise::replay {

CUresult Pager::out_of_memory() noexcept {
  const uint64_t chunk_bytes = memory_.chunks.chunk_bytes();
  shortage_ = {needed_chunks_ * chunk_bytes, memory_.chunks.limit() * chunk_bytes, false};
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult Pager::host_is_full(const ResidentTensor& tensor) noexcept {
  shortage_ = {tensor.chunk_count * memory_.chunks.chunk_bytes(), memory_.host.cap(), true};
  return CUDA_ERROR_OUT_OF_MEMORY;
}

std::vector<ResidentTensor*> Pager::pin(const std::vector<ResidentTensor*>& set, uint64_t* chunks) noexcept {
  ++tick_;
  *chunks = 0;
  std::vector<ResidentTensor*> movers;
  for (ResidentTensor* tensor : set) {
    ResidentTensor& mover = memory_.mover_of(*tensor);
    if (mover.pinned == tick_) continue;
    mover.pinned = tick_;
    mover.last_use = tick_;
    *chunks += mover.chunk_count;
    movers.push_back(&mover);
  }
  return movers;
}

CUresult Pager::make_resident(const std::vector<ResidentTensor*>& set) noexcept {
  uint64_t chunks = 0;
  const std::vector<ResidentTensor*> movers = pin(set, &chunks);
  largest_working_set_ = std::max(largest_working_set_, chunks);
  return bring(movers, chunks);
}

void Pager::forget_block(CUdeviceptr base) noexcept {
  SlabBlock* const block = memory_.blocks.find(base);
  if (block == nullptr) return;
  leave(*block, {});
  memory_.blocks.erase(*block);
}

CUresult Pager::bring_blocks_in() noexcept {
  std::vector<ResidentTensor*> blocks;
  memory_.blocks.for_each([&](SlabBlock& block) { blocks.push_back(&block); });
  uint64_t chunks = 0;
  const std::vector<ResidentTensor*> movers = pin(blocks, &chunks);
  return bring(movers, chunks);
}

CUresult Pager::bring(const std::vector<ResidentTensor*>& movers, uint64_t chunks) noexcept {
  needed_chunks_ = chunks;
  shortage_ = {};
  if (hooks.before_fit != nullptr) hooks.before_fit(hooks.user, chunks);
  if (chunks > memory_.chunks.limit()) return out_of_memory();
  if (memory_.chunks.exceeds_limit()) {
    const CUresult result = shrink_to_limit();
    if (result != CUDA_SUCCESS) return result;
  }
  CUresult result = CUDA_SUCCESS;
  for (ResidentTensor* tensor : movers) {
    if (tensor->is_lost()) {
      result = CUDA_ERROR_ILLEGAL_STATE;
    } else if (tensor->is_away()) {
      result = memory_.safety->bring_in(*this, *tensor);
    }
    if (result != CUDA_SUCCESS) break;
  }
  for (ResidentTensor* tensor : movers) {
    const CUresult finished = memory_.safety->finish_arrival(*this, *tensor);
    if (result == CUDA_SUCCESS) result = finished;
  }
  return result;
}

CUresult Pager::make_all_resident() noexcept {
  std::vector<ResidentTensor*> all;
  memory_.for_each_mover([&](ResidentTensor& tensor) { all.push_back(&tensor); });
  std::sort(all.begin(), all.end(),
            [](const ResidentTensor* a, const ResidentTensor* b) { return a->last_use > b->last_use; });
  const CUresult result = make_resident(all);
  if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
  const Shortage shortage = shortage_;
  std::vector<ResidentTensor*> some;
  uint64_t chunks = 0;
  for (ResidentTensor* tensor : all) {
    if (chunks + tensor->chunk_count > memory_.chunks.limit()) continue;
    chunks += tensor->chunk_count;
    some.push_back(tensor);
  }
  make_resident(some);
  shortage_ = shortage;
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// Chunks for one tensor: its home if the least recently used tensors are the ones that occupy it (no driver call is
// needed then), else any.
CUresult Pager::take_chunks(ResidentTensor& tensor, std::vector<ChunkIndex>* chunks) noexcept {
  ChunkPool& pool = memory_.chunks;
  const Mapping* const mapping = memory_.mappings.find(tensor.base);
  bool taken = false;
  for (int attempt = 0; attempt < 4; ++attempt) {
    std::vector<ResidentTensor*> victims;
    uint64_t room = pool.available();
    if (room < tensor.chunk_count) {
      for (ResidentTensor* victim : candidates()) {
        if (room >= tensor.chunk_count) break;
        room += victim->chunk_count;
        victims.push_back(victim);
      }
    }
    if (room < tensor.chunk_count && memory_.safety->arriving() > 0 && attempt == 0) {
      memory_.safety->finish_arrivals(*this);  // what came for later calls may leave again
      continue;
    }
    if (room < tensor.chunk_count) return out_of_memory();
    const bool at_home = mapping != nullptr && mapping->chunks.size() == tensor.chunk_count &&
                         (hooks.homes == nullptr || !hooks.homes->is_free_elsewhere(tensor.base, mapping->chunks));
    if (at_home) {
      const CUresult result = take_home(mapping->chunks, victims, &taken);
      if (result != CUDA_SUCCESS) return result;
      if (taken) {
        *chunks = mapping->chunks;
        return CUDA_SUCCESS;
      }
    }
    for (ResidentTensor* victim : victims) {
      const CUresult result = page_out(*victim);
      if (result != CUDA_SUCCESS) return result;
    }
    CUresult refused = CUDA_SUCCESS;
    if (take_free(pool, hooks.homes, tensor.base, tensor.chunk_count, chunks, &refused)) return CUDA_SUCCESS;
    if (is_sticky(refused)) return refused;
    // Refused twice, the device is fuller than the budget says: the chunks that exist have to do.
    if (attempt > 0) pool.set_limit(pool.existing());
  }
  return out_of_memory();
}

CUresult Pager::take_home(const std::vector<ChunkIndex>& home, const std::vector<ResidentTensor*>& victims,
                          bool* taken) noexcept {
  *taken = false;
  for (const ChunkIndex chunk : home) {
    const ResidentTensor* const occupant = memory_.chunks[chunk].occupant;
    if (memory_.chunks.is_free(chunk)) continue;
    if (occupant == nullptr || std::find(victims.begin(), victims.end(), occupant) == victims.end()) {
      return CUDA_SUCCESS;
    }
  }
  for (const ChunkIndex chunk : home) {
    if (memory_.chunks.is_free(chunk)) continue;
    const CUresult result = page_out(*memory_.chunks[chunk].occupant);
    if (result != CUDA_SUCCESS) return result;
  }
  for (const ChunkIndex chunk : home) memory_.chunks.take(chunk);
  *taken = true;
  return CUDA_SUCCESS;
}

// While a plan is entered no host copy is given up, because it counts on such copies.
CUresult Pager::page_out(ResidentTensor& tensor) noexcept {
  if (tensor.needs_copy()) ensure_slot_at_cost(memory_, tensor);
  return memory_.safety->evict(*this, tensor);
}

void Pager::release_chunks(ResidentTensor& tensor, LaneUses after) noexcept {  // by value: `after` may be tensor.uses
  tensor.left();
  tensor.ready.clear();
  tensor.uses.clear();
  Mapping* const mapping = memory_.mappings.find(tensor.base);
  if (mapping == nullptr) return;
  mapping->uses.merge(after);
  for (const ChunkIndex chunk : mapping->chunks) {
    if (memory_.chunks[chunk].occupant != &tensor) continue;
    memory_.chunks[chunk].uses = after;
    memory_.chunks.give_back(chunk);
  }
}

// Its chunks and its host slot are free for others.
void Pager::leave(ResidentTensor& tensor, const LaneUses& last) noexcept {
  memory_.safety->finish_arrival(*this, tensor);
  memory_.safety->freed(tensor, last);
  if (tensor.is_resident()) release_chunks(tensor, tensor.uses);
  for (ChunkIndex chunk = 0; tensor.is_lost() && chunk < memory_.chunks.size(); ++chunk) {
    if (memory_.chunks[chunk].occupant != &tensor) continue;  // of what was lost some may be mapped no more
    memory_.chunks[chunk].uses = tensor.uses;
    memory_.chunks.give_back(chunk);
  }
  drop_host_copy(memory_, tensor);
}

void Pager::forget(ResidentTensor& tensor, const LaneUses& last) noexcept {
  if (tensor.chunk_count == 0) return forget_small(tensor, last);
  leave(tensor, last);
  memory_.tensors.erase(tensor.base);
}

CUresult Pager::allocated_small(ResidentTensor& tensor, LaneIndex lane) noexcept {
  SlabBlock& block = memory_.blocks.at(tensor.base);
  const bool fresh = block.small_tensors++ == 0;
  tensor.ready = block.take_freed(tensor.base, tensor.base + footprint::Slab::padded(tensor.size));
  const CUresult result = memory_.safety->takes_place(tensor.ready, lane);
  return fresh && result == CUDA_SUCCESS ? memory_.safety->allocated(*this, block, lane) : result;
}

void Pager::forget_small(ResidentTensor& tensor, const LaneUses& last) noexcept {
  SlabBlock* const block = memory_.blocks.find(tensor.base);
  if (block != nullptr && block->small_tensors > 0 && --block->small_tensors == 0) {
    const SlabBlock& empty = *block;
    leave(*block, last);
    memory_.blocks.erase(empty);
  } else if (block != nullptr) {
    FreedPlace place{tensor.base, tensor.base + footprint::Slab::padded(tensor.size), tensor.uses};
    place.uses.merge(last);
    std::erase_if(block->freed, [this](const FreedPlace& old) { return memory_.lanes.complete(old.uses); });
    if (!memory_.lanes.complete(place.uses)) block->freed.push_back(place);
  }
  memory_.tensors.erase(tensor.base);
}

CUresult Pager::give_up(uint64_t bytes, bool keep_last) noexcept {
  const uint64_t chunk_bytes = memory_.chunks.chunk_bytes();
  const uint64_t chunks = (bytes + chunk_bytes - 1) / chunk_bytes;
  if (chunks > memory_.chunks.existing()) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!keep_last) ++tick_;
  memory_.chunks.set_limit(memory_.chunks.existing() - chunks);
  return shrink_to_limit();
}

CUresult Pager::fit() noexcept {
  ++tick_;
  needed_chunks_ = 0;
  shortage_ = {};
  if (hooks.before_fit != nullptr) hooks.before_fit(hooks.user, 0);
  return shrink_to_limit();
}

CUresult Pager::shrink_to_limit() noexcept {
  ChunkPool& pool = memory_.chunks;
  std::vector<ResidentTensor*> victims;
  if (pool.exceeds_limit()) memory_.safety->finish_arrivals(*this);
  if (hooks.before_shrink != nullptr && pool.exceeds_limit()) hooks.before_shrink(hooks.user);
  for (size_t next = 0; pool.exceeds_limit();) {
    ChunkIndex found = kNoChunk;
    for (ChunkIndex chunk = 0; chunk < pool.size() && found == kNoChunk; ++chunk) {
      if (pool.is_free(chunk)) found = chunk;
    }
    CUresult result = CUDA_SUCCESS;
    if (found != kNoChunk) {
      result = memory_.lanes.host_wait(pool[found].uses);
      if (result == CUDA_SUCCESS) result = memory_.mappings.unmap_chunk(found);  // the window's is one of them
      if (result == CUDA_SUCCESS) pool.destroy(found);
    } else {
      if (victims.empty()) victims = candidates();
      if (next == victims.size()) return out_of_memory();
      result = page_out(*victims[next++]);
    }
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace reprise::replay
