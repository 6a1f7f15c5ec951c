// Makes room on demand: before a call is issued, the tensors that it touches become resident, and those that were not
// used for longest are evicted for them. Correct for any program whose pointers are visible. Only unmapping blocks the
// host; copies are ordered on the device. Caller: OnDemandExecutor and Activation, on the dispatcher thread.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "replay/memory/eviction.h"
#include "replay/memory/home_chunks.h"
#include "replay/memory/kept_mappings.h"
#include "replay/memory/memory.h"

namespace reprise::replay {

// Why a call could not be served, for the one line on stderr.
// All zero: no room was missing; the driver refused a call.
struct Shortage {
  uint64_t needed_bytes = 0;  // by the call; host_full: by the tensor that has to leave the device
  uint64_t limit_bytes = 0;   // of the device, as far as the budget and the driver let us; host_full: of the host tier
  bool host_full = false;
};

// What others know, each with the `user` it is called with; nullptr: nobody does.
struct PagerHooks {
  // The chunks that a call needs, before room is made, so that a budget that follows the program can rise.
  void (*before_fit)(void* user, uint64_t chunks) noexcept = nullptr;
  // Before chunks are destroyed: what is held around them may have grown since somebody looked, and never again is as
  // much there at once.
  void (*before_shrink)(void* user) noexcept = nullptr;
  void* user = nullptr;
  NextUse next_use;
  // Ends the calls that program threads are making. No lane knows of their work yet, so this comes before any choice
  // of tensors that leave.
  struct BeforeChoice {
    void (*end_calls)(void* user) noexcept = nullptr;
    void* user = nullptr;
  } before_choice;
  HomeChunks* homes = nullptr;  // the chunks that tensors have while everything fits
};

class Pager {
 public:
  explicit Pager(ManagedMemory* memory) noexcept : mappings(memory), memory_(*memory) {}

  // Makes all of `set` resident; work that touches a tensor of it must wait for the tensor's `ready`.
  // CUDA_ERROR_OUT_OF_MEMORY: does not fit (see shortage()); other codes: what the driver said. On any error the
  // tensors keep their bytes.
  CUresult make_resident(const std::vector<ResidentTensor*>& set) noexcept;
  // The same for as many of the live tensors as fit, newest use first. OUT_OF_MEMORY when not all fit.
  CUresult make_all_resident() noexcept;

  // The program's allocation was reached, on `lane`, where later work of that lane alone may use it (a stream-ordered
  // one), or for all (kNoLane). Strict safety maps it at once where no other tensor has to leave for it: then also work
  // that touches it unseen finds it. An error: its addresses still lead to what was there before.
  CUresult allocated(ResidentTensor& tensor, LaneIndex lane) noexcept {
    return memory_.safety->allocated(*this, tensor, lane);
  }
  // The program's free was reached: the tensor's chunks and host slot become free, its bytes are lost. `last` is the
  // work before the free; strict safety does not know which of it touched the tensor.
  void forget(ResidentTensor& tensor, const LaneUses& last = {}) noexcept;
  // Copies the tensor to the host if that is needed and frees its chunks.
  CUresult evict(ResidentTensor& tensor) noexcept { return memory_.safety->evict(*this, tensor); }
  // The same; host copies of others are given up for it where host memory is full.
  CUresult page_out(ResidentTensor& tensor) noexcept;
  // Gives so many bytes of the device back to the driver; tensors leave for that where no chunk is free: any, or those
  // that the last make_resident() was not for.
  CUresult give_up(uint64_t bytes, bool keep_last = false) noexcept;
  // Brings the device memory of ours down to what the limit says now; any tensor leaves for that.
  CUresult fit() noexcept;
  // The same as allocated() for a small tensor, whose block comes with the first one in it and goes with the last.
  CUresult allocated_small(ResidentTensor& tensor, LaneIndex lane) noexcept;
  // Gives up the block that begins there, if one does: nothing lives in it.
  void forget_block(CUdeviceptr base) noexcept;
  // Makes all blocks resident, which no call asks for. As make_resident().
  CUresult bring_blocks_in() noexcept;

  const Shortage& shortage() const noexcept { return shortage_; }
  // Chunks that the largest call so far needed at once.
  uint64_t largest_working_set() const noexcept { return largest_working_set_; }
  PagerHooks hooks;
  KeptMappings mappings;

  // What the ways of bringing in and evicting are made of (Safety).
  // Takes chunks for a tensor that is away; others leave for that.
  CUresult take_chunks(ResidentTensor& tensor, std::vector<ChunkIndex>* chunks) noexcept;
  // The chunks of a resident tensor that leaves are free, and their next occupant waits for `after`.
  void release_chunks(ResidentTensor& tensor, LaneUses after) noexcept;
  // The shortage is told: the error.
  CUresult host_is_full(const ResidentTensor& tensor) noexcept;

 private:
  // Brings the number of existing chunks down to the pool's limit; evicts no tensor of the call that is served.
  CUresult shrink_to_limit() noexcept;
  // What has to move for `set`, once each, pinned; their chunks in *chunks.
  std::vector<ResidentTensor*> pin(const std::vector<ResidentTensor*>& set, uint64_t* chunks) noexcept;
  CUresult bring(const std::vector<ResidentTensor*>& movers, uint64_t chunks) noexcept;
  CUresult take_home(const std::vector<ChunkIndex>& home, const std::vector<ResidentTensor*>& victims,
                     bool* taken) noexcept;
  std::vector<ResidentTensor*> candidates() noexcept {
    if (hooks.before_choice.end_calls != nullptr) hooks.before_choice.end_calls(hooks.before_choice.user);
    return eviction_order(memory_, tick_, hooks.next_use);
  }
  void leave(ResidentTensor& tensor, const LaneUses& last) noexcept;
  void forget_small(ResidentTensor& tensor, const LaneUses& last) noexcept;
  CUresult out_of_memory() noexcept;

  ManagedMemory& memory_;
  Shortage shortage_;
  uint64_t needed_chunks_ = 0;  // of the last call that was made resident
  uint64_t tick_ = 0;
  uint64_t largest_working_set_ = 0;
};

}  // namespace reprise::replay
