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
  Issuer(Shared* shared, ManagedMemory* memory) noexcept : extents(shared), shared_(*shared), memory_(*memory) {}

  // Makes the context of the entry current for this thread.
  void enter_context(CUcontext context) noexcept;
  // The driver call of an op on its stream, bracketed for the activity source with `activity_id` (0: not wanted).
  // Not for entries that the program issues.
  CUresult issue(LogEntry& entry, uint64_t activity_id) noexcept;
  // After issue: staging memory is free when `use` is complete; the program is told or the fault kept.
  void conclude(LogEntry& entry, CUresult result, LaneUse use) noexcept;
  // Events, stream ends.
  void issue_event_record(LogEntry& entry) noexcept;
  void issue_event_wait(LogEntry& entry) noexcept;
  void issue_stream_destroy(LogEntry& entry) noexcept;

  Extents extents;

 private:
  Shared& shared_;
  ManagedMemory& memory_;
  CUcontext current_ = nullptr;
};

class OnDemand {
 public:
  OnDemand(Shared* shared, ManagedMemory* memory, Pager* pager, Issuer* issuer) noexcept
      : shared_(*shared), memory_(*memory), pager_(*pager), issuer_(*issuer) {}

  // Performs one entry; it is done afterwards.
  void perform(LogEntry& entry) noexcept;
  // Gives slab blocks back whose last work is complete.
  void reclaim_slabs() noexcept;

 private:
  void perform_op(LogEntry& entry) noexcept;
  CUresult make_ready(LogEntry& entry, LaneIndex lane, bool* everything) noexcept;
  void complain(const LogEntry& entry) noexcept;
  bool in_plan_slab(const Access& access) const noexcept;
  void perform_allocate(LogEntry& entry) noexcept;
  void perform_free(LogEntry& entry) noexcept;
  void release_address(const LogEntry& entry) noexcept;
  void perform_ordered(LogEntry& entry) noexcept;

  struct SlabBlock {
    CUdeviceptr address;
    uint64_t bytes;
    LaneUses uses;
  };
  Shared& shared_;
  ManagedMemory& memory_;
  Pager& pager_;
  Issuer& issuer_;
  std::vector<ResidentTensor*> set_;
  std::deque<SlabBlock> freed_slabs_;
  uint64_t complaints_ = 0;
};

// The tensor of an access, or nullptr when Reprise does not manage what it points to.
inline ResidentTensor* tensor_of(ManagedMemory& memory, const Access& access) noexcept {
  return memory.tensors.find(access.address - access.offset);
}

}  // namespace reprise::replay
