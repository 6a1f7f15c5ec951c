// Physical memory: one handle per chunk, created when needed and never more than the budget allows. Knows which tensor
// occupies each chunk and what work must be complete before the chunk is used again. Dispatcher thread only.
#pragma once
#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "replay/memory/around.h"
#include "replay/memory/lanes/uses.h"

namespace reprise::replay {

using ChunkIndex = uint32_t;
inline constexpr ChunkIndex kNoChunk = 0xffffffff;

struct ResidentTensor;

struct Chunk {
  CUmemGenericAllocationHandle handle = 0;
  ResidentTensor* occupant = nullptr;  // the tensor whose bytes are here, nullptr: none
  bool free = false;                   // has no occupant and waits to be taken
  bool reserved = false;               // of a block while a plan is in force: not for the plan
  uint64_t freed = 0;                  // since when it is free: a count
  std::vector<uint64_t> claims;        // by allocations ahead, ascending
  LaneUses uses;                       // of former occupants
};

class ChunkPool {
 public:
  void open(CUdevice device, uint64_t chunk_bytes) noexcept;

  // Who is told of each new chunk: the bytes of all, with what is held around them as far as that is known.
  struct Watcher {
    void (*made)(void* user, uint64_t at_once) noexcept = nullptr;
    void* user = nullptr;
  };
  // Chunks and what is held around them are to be no more than `bytes`, whatever the limit says: other threads take
  // more at any time.
  void share(uint64_t bytes, const Around* around, const Watcher& watcher) noexcept {
    shared_bytes_ = bytes;
    around_ = around;
    watcher_ = watcher;
  }
  // Upper bound of how many chunks may exist; chunks that exist already stay until they are
  // destroyed (Pager::shrink_to_limit).
  void set_limit(uint64_t chunks) noexcept { limit_ = chunks; }
  uint64_t limit() const noexcept { return limit_; }
  uint64_t chunk_bytes() const noexcept { return chunk_bytes_; }

  // Takes a free chunk: an existing one, one that is not claimed, or latest, before others; else a new one within the
  // limit, else kNoChunk. `error` is set when the driver refused to create one.
  ChunkIndex take_free(CUresult* error) noexcept;
  // Creates a chunk within the limit and takes it; kNoChunk as above.
  ChunkIndex create(CUresult* error) noexcept;
  // Takes this chunk, which is free.
  void take(ChunkIndex chunk) noexcept;
  void give_back(ChunkIndex chunk) noexcept;
  // The allocation at this position of the log will be where a range still leads to the chunk: it costs no mapping
  // where the chunk is free then. Positions of claims ascend.
  void claim(ChunkIndex chunk, uint64_t position) noexcept;
  // Claims below this position are over.
  void end_claims(uint64_t position) noexcept { claims_from_ = position; }
  // How many take_free() would give, unless the driver refuses.
  uint64_t available() const noexcept;
  bool is_free(ChunkIndex chunk) const noexcept { return chunks_[chunk].free; }
  // The one that was given back longest ago; kNoChunk: none is free.
  ChunkIndex oldest_free() const noexcept { return free_.empty() ? kNoChunk : free_.begin()->second; }
  bool exceeds_limit() const noexcept { return existing_ > limit_; }
  // After a plan has decided which tensor sits where: the free chunks are those without an occupant that are not
  // reserved.
  void rebuild_free() noexcept;
  // Releases a free chunk's handle. No mapping may name the chunk any more.
  void destroy(ChunkIndex chunk) noexcept;

  Chunk& operator[](ChunkIndex chunk) noexcept { return chunks_[chunk]; }
  size_t size() const noexcept { return chunks_.size(); }
  uint64_t existing() const noexcept { return existing_; }
  // Bytes of device memory that exist now and at most; readable from any thread.
  uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  uint64_t peak_bytes() const noexcept { return peak_bytes_.load(std::memory_order_relaxed); }
  // Odd while the driver creates or releases a chunk: then bytes() are not what there is. From any thread.
  uint32_t changes() const noexcept { return changes_.load(); }

  // Releases all handles. Nothing may be mapped any more.
  void close() noexcept;

 private:
  CUmemAllocationProp properties_{};
  uint64_t with_around(uint64_t bytes) const noexcept { return around_ == nullptr ? bytes : bytes + around_->held(); }
  uint64_t shared_bytes_ = 0;
  const Around* around_ = nullptr;  // none: chunks are all that counts
  Watcher watcher_;
  uint64_t chunk_bytes_ = 0;
  uint64_t limit_ = 0;
  uint64_t existing_ = 0;
  std::vector<Chunk> chunks_;
  std::set<std::pair<uint64_t, ChunkIndex>> free_;  // by `freed`
  uint64_t frees_ = 0;
  uint64_t claims_from_ = 0;
  std::vector<ChunkIndex> dead_;  // indices without a handle
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> peak_bytes_{0};
  std::atomic<uint32_t> changes_{0};
};

// These are free, and their next occupant waits for `after`.
void give_back(ChunkPool& pool, const std::vector<ChunkIndex>& chunks, const LaneUses& after) noexcept;

}  // namespace reprise::replay
