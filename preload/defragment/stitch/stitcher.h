// GMLake's allocator: memory is cut into PrimitiveBlocks (pBlocks), each the only owner of its physical chunks; a
// StitchedBlock (sBlock) maps the chunks of several PrimitiveBlocks at one range of addresses, so that what lies
// apart serves one request. States S1 to S5 of its BestFit are `State`. No driver, no lock, no allocation after open():
// the caller serialises calls. Callers: preload/defragment, bench/defragment.
//
//                    view 0                        view 1        view 2, mapped by stitch()
//   PrimitiveBlocks  [ A, busy  ][ B, idle     ]   [ C, idle ]
//   chunks             0  1  2     3  4  5  6        7  8          3  4  5  6  7  8
//   StitchedBlocks   [ AB, as before the split ]                 [ BC, for one request]
//
// A chunk has one owner and may be mapped at several addresses. Handing out a StitchedBlock makes its PrimitiveBlocks
// busy, and a busy PrimitiveBlock keeps every StitchedBlock that has it from being handed out (here AB, by A).
#pragma once
#include <cstdint>

#include "preload/defragment/stitch/memory.h"
#include "preload/defragment/stitch/tables.h"

namespace reprise::stitch {

// The stream whose work used memory last, until that work is known to be over; the caller numbers its streams.
using Tag = uint32_t;
inline constexpr Tag kIdle = 0;                  // no work is pending
inline constexpr Tag kUnknownWork = 0xffffffff;  // only settle() ends it

enum class State : uint8_t {
  exact,         // S1: an idle block of this size
  single,        // S2: a larger primitive block, split
  multiple,      // S3: several primitive blocks, stitched
  insufficient,  // S4: all there is and new chunks, stitched; or new chunks alone
  out_of_memory  // S5
};

struct Limits {
  uint64_t chunk_bytes = 0;
  uint32_t chunks = 0;  // that the device can have at most
  uint32_t stitched_from =
      1;  // fragmentation limit: smaller primitive blocks, in chunks, are neither split nor stitched
  uint32_t mapped_chunks = 0;    // mapped at once, the same chunk several times; stitched blocks go beyond (StitchFree)
  uint32_t stitched_blocks = 0;  // kept though not handed out
};

struct Grant {
  static constexpr uint32_t kMaxWaits = 8;
  uint64_t address = 0;
  State state = State::out_of_memory;
  // Work that has to be over before the memory is used: of these tags, or (wait_for_all) of all streams.
  uint32_t wait_count = 0;
  Tag waits[kMaxWaits] = {};
  bool wait_for_all = false;
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

class Stitcher {
 public:
  // To be called once. false: no memory for the tables.
  bool open(Memory* memory, const Limits& limits) noexcept;

  // Memory for `bytes`, to be used by work of `tag` (kIdle: of any stream).
  Result allocate(uint64_t bytes, Tag tag, Grant* grant) noexcept;
  // What starts at `address` is free once the work of `tag` that was submitted so far is over. false: not of this
  // allocator.
  bool release(uint64_t address, Tag tag) noexcept;
  // For a caller that waits for work without its lock: it takes a mark() first, waits, and then says by settled(mark)
  // that all work submitted before the mark is over.
  uint32_t mark() noexcept { return epoch_++; }
  void settled(uint32_t mark) noexcept;
  // Gives all idle memory back to the device; returns the bytes.
  uint64_t trim() noexcept;

  const Stats& stats() const noexcept { return stats_; }
  uint64_t idle_bytes() const noexcept { return (stats_.reserved_chunks - stats_.live_chunks) * limits_.chunk_bytes; }

  // Every rule that the structures keep; for tests. nullptr: all hold, else the one that does not.
  const char* check() const noexcept;

 private:
  // The range of addresses of one map(). A PrimitiveBlock lies in it at its own chunks; a StitchedBlock over neighbours
  // in one view needs no mapping of its own.
  struct View {
    uint64_t address = 0;
    uint32_t chunks = 0;
    uint32_t users = 0;  // PrimitiveBlocks and StitchedBlocks
  };
  struct StitchedChunk {
    uint64_t handle = 0;
    Index next = kNone;  // in its primitive block, or among the free chunks
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
  struct Live {
    uint64_t address = 0;  // 0: empty
    uint64_t bytes = 0;
    Index block = kNone;
    bool is_stitched = false;
  };

  uint32_t chunks_of(uint64_t bytes) const noexcept;
  uint64_t address_of(Index view, uint32_t offset) const noexcept;

  // BestFit and what follows from it.
  bool take_exact(uint32_t size, Tag tag, Live* block) noexcept;
  bool take_larger(uint32_t size, Live* block) noexcept;
  Result take_several(uint32_t size, Live* block, State* state) noexcept;
  uint32_t gather(uint32_t size, uint32_t* primitives) noexcept;
  void scatter(uint32_t primitives) noexcept;
  template <typename Ready>
  Index pick(const SizeIndex& index, uint32_t size, Ready ready) const noexcept;
  bool ready(const PrimitiveBlock& primitive, Tag tag) const noexcept;
  bool ready_stitched(const StitchedBlock& stitched, Tag tag) const noexcept;

  // Primitives of the paper.
  Index split(Index primitive, uint32_t size) noexcept;
  void insert_whole(Index first, Index second) noexcept;
  Result stitch(uint32_t primitives, uint32_t size, Index* stitched) noexcept;
  bool stitch_free() noexcept;
  Result grow(uint32_t size, uint32_t gathered, Index* primitive) noexcept;
  void recycle(uint32_t size) noexcept;

  // Taking apart.
  void drop_stitched(Index stitched) noexcept;
  void dissolve(Index primitive) noexcept;
  void leave_view(Index view) noexcept;
  void settle_first() noexcept;
  void destroy_free_chunks() noexcept;
  Result map(uint32_t count, Index* view) noexcept;

  void add_link(Index primitive, Index stitched, Index after) noexcept;
  void set_busy(Index primitive, bool busy) noexcept;
  void hand_out(const Live& block, uint64_t bytes, Tag tag, Grant* grant) noexcept;
  void await(const PrimitiveBlock& primitive, Tag tag, Grant* grant) noexcept;
  void free_primitive(Index primitive, Tag tag) noexcept;

  struct Sums;
  const char* check_primitive(Index primitive, bool busy, Sums* sums) const noexcept;
  const char* check_stitched(Index stitched, bool live, Sums* sums) const noexcept;
  const char* check_live(Sums* sums) const noexcept;

  uint64_t slot_of(uint64_t address) const noexcept;
  void remember(const Live& live) noexcept;
  bool forget(uint64_t address, Live* live) noexcept;

  Memory* memory_ = nullptr;
  Limits limits_;
  Stats stats_;
  uint32_t epoch_ = 1;
  uint32_t settled_ = 0;       // work freed under up to this epoch is over
  uint32_t last_pending_ = 0;  // epoch of the last free with a tag
  Table<StitchedChunk> chunks_;
  Table<View> views_;
  Table<PrimitiveBlock> primitives_;
  Table<StitchedBlock> stitched_;
  Table<Link> links_;
  SizeIndex idle_primitives_;
  SizeIndex idle_stitched_;
  Lists unused_stitched_;  // one list: not handed out, the one that was used last first
  Index free_chunks_ = kNone;
  uint32_t free_chunk_count_ = 0;
  Array<Index> gathered_;
  Array<uint64_t> handles_;
  Array<Live> live_;  // by address, open addressing
  uint64_t live_mask_ = 0;
};

}  // namespace reprise::stitch
