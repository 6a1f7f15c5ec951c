#include "replay/memory/chunks.h"

#include <algorithm>

#include "preload/driver/driver.h"

namespace reprise::replay {
namespace {

// UINT64_MAX: none is known.
uint64_t next_claim(Chunk& chunk, uint64_t from) noexcept {
  chunk.claims.erase(chunk.claims.begin(), std::lower_bound(chunk.claims.begin(), chunk.claims.end(), from));
  return chunk.claims.empty() ? UINT64_MAX : chunk.claims.front();
}

}  // namespace

void ChunkPool::open(CUdevice device, uint64_t chunk_bytes) noexcept {
  properties_ = {};
  properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties_.location.id = device;
  chunk_bytes_ = chunk_bytes;
}

ChunkIndex ChunkPool::create(CUresult* error) noexcept {
  if (existing_ >= limit_) return kNoChunk;
  // It counts before it is there: whoever is about to take memory around us sees it, or we see what was promised.
  const uint64_t bytes = (existing_ + 1) * chunk_bytes_;
  changes_.fetch_add(1);
  bytes_.store(bytes);
  CUmemGenericAllocationHandle handle = 0;
  const bool room = around_ == nullptr || bytes + around_->bytes() <= shared_bytes_;
  const CUresult result = room ? driver().cuMemCreate(&handle, chunk_bytes_, &properties_, 0) : CUDA_SUCCESS;
  const bool made = room && result == CUDA_SUCCESS;
  if (!made) bytes_.store(existing_ * chunk_bytes_);
  changes_.fetch_add(1);
  if (!made) {
    if (room) *error = result;
    return kNoChunk;
  }
  ChunkIndex index;
  if (!dead_.empty()) {
    index = dead_.back();
    dead_.pop_back();
  } else {
    index = static_cast<ChunkIndex>(chunks_.size());
    chunks_.emplace_back();
  }
  chunks_[index] = Chunk{};
  chunks_[index].handle = handle;
  ++existing_;
  if (bytes > peak_bytes_.load(std::memory_order_relaxed)) peak_bytes_.store(bytes, std::memory_order_relaxed);
  if (watcher_.made != nullptr) watcher_.made(watcher_.user, with_around(bytes));
  return index;
}

void ChunkPool::destroy(ChunkIndex chunk) noexcept {
  if (chunks_[chunk].free) free_.erase({chunks_[chunk].freed, chunk});
  changes_.fetch_add(1);
  driver().cuMemRelease(chunks_[chunk].handle);
  chunks_[chunk] = Chunk{};
  dead_.push_back(chunk);
  --existing_;
  bytes_.store(existing_ * chunk_bytes_);
  changes_.fetch_add(1);
}

ChunkIndex ChunkPool::take_free(CUresult* error) noexcept {
  // The one that was given back longest ago: what was freed just now is often allocated again, and finds its range
  // still mapped where its chunks are free. While the limit is exceeded, the pager is about to destroy the free chunks:
  // none is handed out.
  if (free_.empty() || exceeds_limit()) return create(error);
  ChunkIndex best = kNoChunk;
  uint64_t latest = 0;
  for (auto next = free_.begin(); next != free_.end() && latest != UINT64_MAX; ++next) {
    const uint64_t claim = next_claim(chunks_[next->second], claims_from_);
    if (best != kNoChunk && claim <= latest) continue;
    best = next->second;
    latest = claim;
  }
  take(best);
  return best;
}

void ChunkPool::claim(ChunkIndex chunk, uint64_t position) noexcept {
  next_claim(chunks_[chunk], claims_from_);
  chunks_[chunk].claims.push_back(position);
}

void ChunkPool::take(ChunkIndex chunk) noexcept {
  chunks_[chunk].free = false;
  free_.erase({chunks_[chunk].freed, chunk});
}

void ChunkPool::give_back(ChunkIndex chunk) noexcept {
  chunks_[chunk].occupant = nullptr;
  chunks_[chunk].free = true;
  chunks_[chunk].freed = ++frees_;
  free_.emplace(frees_, chunk);
}

void ChunkPool::rebuild_free() noexcept {
  free_.clear();
  for (ChunkIndex index = 0; index < chunks_.size(); ++index) {
    Chunk& chunk = chunks_[index];
    chunk.free = chunk.handle != 0 && chunk.occupant == nullptr && !chunk.reserved;
    if (!chunk.free) continue;
    chunk.freed = ++frees_;
    free_.emplace(frees_, index);
  }
}

uint64_t ChunkPool::available() const noexcept {
  if (exceeds_limit()) return 0;
  return free_.size() + (limit_ - existing_);
}

void ChunkPool::close() noexcept {
  for (const Chunk& chunk : chunks_) {
    if (chunk.handle != 0) driver().cuMemRelease(chunk.handle);
  }
  chunks_.clear();
  free_.clear();
  dead_.clear();
  existing_ = 0;
  bytes_.store(0, std::memory_order_relaxed);
}

void give_back(ChunkPool& pool, const std::vector<ChunkIndex>& chunks, const LaneUses& after) noexcept {
  for (const ChunkIndex chunk : chunks) {
    pool[chunk].uses = after;
    pool.give_back(chunk);
  }
}

}  // namespace reprise::replay
