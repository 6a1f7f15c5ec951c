// Performs the entries of the log one after the other, in the program's order, with everything they touch made resident
// first. Always correct; what the dispatcher does when no plan is in force. Dispatcher thread only.
#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "replay/dispatch/extents.h"
#include "replay/dispatch/shared.h"
#include "replay/memory/memory.h"
#include "replay/memory/pager.h"

namespace reprise::replay {

// Device work of one entry, as the driver gets it. Shared with the planned dispatcher.
class Issuer {
 public:
  Issuer(Shared* shared, Memory* memory) noexcept : extents(shared), shared_(*shared), memory_(*memory) {}

  // Makes the context of the entry current for this thread.
  void enter_context(CUcontext context) noexcept;
  // The driver call of an op on its stream, bracketed for the activity source with `activity_id` (0: not wanted).
  // Not for entries that the program issues.
  CUresult issue(Entry& entry, uint64_t activity_id) noexcept;
  // After issue: staging memory is free when `use` is complete; the program is told or the fault kept.
  void conclude(Entry& entry, CUresult result, Use use) noexcept;
  // Events, stream ends.
  void issue_event_record(Entry& entry) noexcept;
  void issue_event_wait(Entry& entry) noexcept;
  void issue_stream_destroy(Entry& entry) noexcept;

  Extents extents;

 private:
  Shared& shared_;
  Memory& memory_;
  CUcontext current_ = nullptr;
};

class Passive {
 public:
  Passive(Shared* shared, Memory* memory, Residency* residency, Issuer* issuer) noexcept
      : shared_(*shared), memory_(*memory), residency_(*residency), issuer_(*issuer) {}

  // Performs one entry; it is done afterwards.
  void perform(Entry& entry) noexcept;
  // Gives slab blocks back whose last work is complete.
  void reclaim_slabs() noexcept;

 private:
  void perform_op(Entry& entry) noexcept;
  CUresult make_ready(Entry& entry, LaneIndex lane, bool* everything) noexcept;
  void complain(const Entry& entry) noexcept;
  bool in_plan_slab(const Access& access) const noexcept;
  void perform_allocate(Entry& entry) noexcept;
  void perform_free(Entry& entry) noexcept;
  void release_address(const Entry& entry) noexcept;
  void perform_ordered(Entry& entry) noexcept;

  struct SlabBlock {
    CUdeviceptr address;
    uint64_t bytes;
    Uses uses;
  };
  Shared& shared_;
  Memory& memory_;
  Residency& residency_;
  Issuer& issuer_;
  std::vector<Tensor*> set_;
  std::deque<SlabBlock> freed_slabs_;
  uint64_t complaints_ = 0;
};

// The tensor of an access, or nullptr when Reprise does not manage what it points to.
inline Tensor* tensor_of(Memory& memory, const Access& access) noexcept {
  return memory.tensors.find(access.address - access.offset);
}

}  // namespace reprise::replay
