// The blocks of the stitching allocator: which chunks each has, where it is mapped, which others share its chunks; and
// what happens to blocks: Split, Stitch, StitchFree, Alloc, and taking apart. Base of Stitcher, which says which block
// serves a request.
#pragma once
#include <algorithm>
#include <cstdint>

#include "preload/defragment/stitch/memory.h"
#include "preload/defragment/stitch/tables.h"

namespace reprise::stitch {

// The stream whose work used memory last, until that work is known to be over; the caller numbers its streams.
using Tag = uint32_t;
inline constexpr Tag kIdle = 0;                  // no work is pending
inline constexpr Tag kUnknownWork = 0xffffffff;  // only settle() ends it

struct Limits {
  uint64_t chunk_bytes = 0;
  uint32_t chunks = 0;  // that the device can have at most
  uint32_t stitched_from =
      1;  // fragmentation limit: smaller primitive blocks, in chunks, are neither split nor stitched
  uint32_t mapped_chunks = 0;    // mapped at once, the same chunk several times; stitched blocks go beyond (StitchFree)
  uint32_t stitched_blocks = 0;  // kept though not handed out
};

struct Stats {
  uint64_t live_bytes = 0;  // as asked for
  uint64_t live_chunks = 0;
  uint64_t reserved_chunks = 0;  // that exist
  uint64_t peak_live_bytes = 0;
  uint64_t peak_live_chunks = 0;
  uint64_t peak_reserved_chunks = 0;
  uint64_t states[5] = {};  // allocations by State
  uint64_t splits = 0;
  uint64_t stitches = 0;  // stitched blocks that were mapped
  uint64_t stitched_chunks = 0;
  uint64_t stitch_frees = 0;
  uint64_t recycled_primitives = 0;  // taken apart for their chunks
  uint64_t mapped_chunks = 0;
};

// Which freed memory may still be used by work. Frees are counted in epochs; a mark() begins the next one.
class PendingWork {
 public:
  uint32_t now() const noexcept { return epoch_; }
  uint32_t mark() noexcept { return epoch_++; }
  void settled(uint32_t mark) noexcept { settled_ = std::max(settled_, mark); }
  void freed(Tag tag) noexcept {
    if (tag != kIdle) last_pending_ = epoch_;
  }
  bool any() const noexcept { return last_pending_ > settled_; }
  // May memory that was freed then under `freed_by` be used by work of `tag` without waiting?
  bool ready(Tag freed_by, uint32_t epoch, Tag tag) const noexcept {
    const bool pending = freed_by != kIdle && epoch > settled_;
    return !pending || (freed_by == tag && tag != kUnknownWork);
  }

 private:
  uint32_t epoch_ = 1;
  uint32_t settled_ = 0;       // work freed under up to this epoch is over
  uint32_t last_pending_ = 0;  // epoch of the last free with a tag
};

struct StitchedChunk {
  uint64_t handle = 0;
  Index next = kNone;  // in its primitive block, or among the free chunks
};

// Chunks by number; those of no primitive block are in one list.
class StitchedChunks : public Table<StitchedChunk> {
 public:
  Index first_free() const noexcept { return free_; }
  uint32_t free_count() const noexcept { return count_; }
  // Adds a list of `count` chunks that are linked from `first` to `last`.
  void add_free(Index first, Index last, uint32_t count) noexcept {
    (*this)[last].next = free_;
    free_ = first;
    count_ += count;
  }
  // The first ones, up to `last`, which is the last of a list of its own now.
  void take_free(Index last, uint32_t count) noexcept {
    free_ = (*this)[last].next;
    (*this)[last].next = kNone;
    count_ -= count;
  }

 private:
  Index free_ = kNone;
  uint32_t count_ = 0;
};

class StitchBlocks {
 protected:
  // The range of addresses of one map(). A PrimitiveBlock lies in it at its own chunks; a StitchedBlock over neighbours
  // in one view needs no mapping of its own.
  struct View {
    uint64_t address = 0;
    uint32_t chunks = 0;
    uint32_t users = 0;  // PrimitiveBlocks and StitchedBlocks
  };
  struct PrimitiveBlock {
    Index view = kNone;
    uint32_t offset = 0;  // in the view, in chunks
    uint32_t size = 0;
    Index first_chunk = kNone;
    Index links = kNone;  // stitched blocks that it is part of
    Tag tag = kIdle;
    uint32_t epoch = 0;  // when it was freed: `tag` holds until that is settled
    bool busy = false;
  };
  struct StitchedBlock {
    Index view = kNone;
    uint32_t offset = 0;
    uint32_t size = 0;
    Index links = kNone;  // its primitive blocks in order
    uint32_t busy_primitives = 0;
    bool owns_view = false;  // its chunks were mapped for it alone
    bool live = false;       // handed out
  };
  struct Link {
    Index primitive = kNone;
    Index stitched = kNone;
    Index next_of_stitched = kNone;
    Index next_of_primitive = kNone;
    Index previous_of_primitive = kNone;
  };
  bool open_blocks(Memory* memory, const Limits& limits) noexcept;
  uint64_t address_of(Index view, uint32_t offset) const noexcept;
  // Which stitched blocks may be handed out follows.
  void set_busy(Index primitive, bool busy) noexcept;

  // Primitives of the paper. stitch() takes the first so many of gathered_.
  Index split(Index primitive, uint32_t size) noexcept;
  void insert_whole(Index first, Index second) noexcept;
  Result stitch(uint32_t primitives, uint32_t size, Index* stitched) noexcept;
  bool stitch_free() noexcept;
  Result grow(uint32_t size, uint32_t gathered, Index* primitive) noexcept;

  // Gives all idle memory back to the device; returns the chunks.
  uint64_t give_back_idle() noexcept;

  Limits limits_;
  Stats stats_;
  PendingWork pending_;
  StitchedChunks chunks_;
  Table<View> views_;
  Table<PrimitiveBlock> primitives_;
  Table<StitchedBlock> stitched_;
  Table<Link> links_;
  SizeIndex idle_primitives_;
  SizeIndex idle_stitched_;
  Lists unused_stitched_;  // one list: not handed out, the one that was used last first
  Array<Index> gathered_;

 private:
  void recycle(uint32_t size) noexcept;
  void drop_stitched(Index stitched) noexcept;
  void dissolve(Index primitive) noexcept;
  void leave_view(Index view) noexcept;
  void settle_first() noexcept;
  void destroy_free_chunks() noexcept;
  Result map(uint32_t count, Index* view) noexcept;
  void add_link(Index primitive, Index stitched, Index after) noexcept;

  Memory* memory_ = nullptr;
  Array<uint64_t> handles_;
};

}  // namespace reprise::stitch
