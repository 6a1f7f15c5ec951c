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

#include "preload/defragment/stitch/blocks.h"
#include "preload/defragment/stitch/live_table.h"
#include "preload/defragment/stitch/memory.h"
#include "preload/defragment/stitch/tables.h"

namespace reprise::stitch {

enum class State : uint8_t {
  exact,         // S1: an idle block of this size
  single,        // S2: a larger primitive block, split
  multiple,      // S3: several primitive blocks, stitched
  insufficient,  // S4: all there is and new chunks, stitched; or new chunks alone
  out_of_memory  // S5
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

class Stitcher : private StitchBlocks {
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
  uint32_t mark() noexcept { return pending_.mark(); }
  void settled(uint32_t mark) noexcept { pending_.settled(mark); }
  // Gives all idle memory back to the device; returns the bytes.
  uint64_t trim() noexcept { return give_back_idle() * limits_.chunk_bytes; }

  const Stats& stats() const noexcept { return stats_; }
  uint64_t idle_bytes() const noexcept { return (stats_.reserved_chunks - stats_.live_chunks) * limits_.chunk_bytes; }

  // Every rule that the structures keep; for tests. nullptr: all hold, else the one that does not.
  const char* check() const noexcept;

 private:
  uint32_t chunks_of(uint64_t bytes) const noexcept;

  // BestFit and what follows from it.
  bool take_exact(uint32_t size, Tag tag, Live* block) noexcept;
  bool take_larger(uint32_t size, Live* block) noexcept;
  Result take_several(uint32_t size, Live* block, State* state) noexcept;
  uint32_t gather(uint32_t size, uint32_t* primitives) noexcept;
  void scatter(uint32_t primitives) noexcept;
  template <typename Ready>
  Index pick(const SizeIndex& index, uint32_t size, Ready ready) const noexcept;
  bool ready(const PrimitiveBlock& primitive, Tag tag) const noexcept {
    return pending_.ready(primitive.tag, primitive.epoch, tag);
  }
  bool ready_stitched(const StitchedBlock& stitched, Tag tag) const noexcept;

  void hand_out(const Live& block, uint64_t bytes, Tag tag, Grant* grant) noexcept;
  void await(const PrimitiveBlock& primitive, Tag tag, Grant* grant) noexcept;
  void free_primitive(Index primitive, Tag tag) noexcept;

  class Check;  // of stitcher_check.cpp

  LiveTable live_;
};

}  // namespace reprise::stitch
