// Performs the entries of the log one after the other, in the program's order, after the pager has made resident what
// they touch. Correct for any program; what the dispatcher does while no plan is in force. Dispatcher thread only.
#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "replay/dispatch/extents.h"
#include "replay/dispatch/shared.h"
#include "replay/memory/memory.h"
#include "replay/memory/pager.h"

namespace reprise::replay {

// Makes the driver calls of one entry. Shared with the plan executor.
class Issuer {
 public:
  Issuer(Shared* shared, ManagedMemory* memory) noexcept : extents(shared), shared_(*shared), memory_(*memory) {}

  // Makes the context of the entry current for this thread.
  void enter_context(CUcontext context) noexcept;
  // The driver call of an op on its stream, bracketed for the activity source with `activity_id` (0: not wanted).
  // Not for entries that the program issues.
  CUresult issue(LogEntry& entry, uint64_t activity_id) noexcept;
  // After issue: staging memory becomes free when `use` is complete; the waiting thread gets the result, or else a
  // fault is kept for a later call.
  void conclude(LogEntry& entry, CUresult result, LaneUse use) noexcept;
  // Events, stream ends.
  void issue_event_record(LogEntry& entry) noexcept;
  void issue_event_wait(LogEntry& entry) noexcept;
  void issue_stream_destroy(LogEntry& entry) noexcept;

  Extents extents;

 private:
  Shared& shared_;
  ManagedMemory& memory_;
};

class OnDemandExecutor {
 public:
  OnDemandExecutor(Shared* shared, ManagedMemory* memory, Pager* pager, Issuer* issuer) noexcept
      : shared_(*shared), memory_(*memory), pager_(*pager), issuer_(*issuer) {}

  // Performs one entry and reports it as done.
  void perform(LogEntry& entry) noexcept;
  // Releases the slab blocks of freed tensors whose last work is complete.
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
    std::vector<LaneUse> uses;
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
