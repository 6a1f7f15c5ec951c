// Performs the entries of the log one after the other, in the program's order, after the pager has made resident what
// they touch. Correct for any program; what the dispatcher does while no plan is in force. Dispatcher thread only.
#pragma once
#include <cstdint>
#include <vector>

#include "replay/audit/auditor.h"
#include "replay/dispatch/program_calls.h"
#include "replay/examine/examiner.h"
#include "replay/issue/issuer.h"
#include "replay/issue/shared.h"
#include "replay/lookahead/look_ahead.h"
#include "replay/memory/memory.h"
#include "replay/memory/pager.h"

namespace reprise::replay {

class OnDemandExecutor {
 public:
  OnDemandExecutor(Shared* shared, ManagedMemory* memory, Pager* pager, Issuer* issuer) noexcept
      : auditor(memory, &shared->run_log),
        look_ahead(shared, memory, pager),
        shared_(*shared),
        memory_(*memory),
        pager_(*pager),
        issuer_(*issuer),
        home_chunks_(&memory->chunks, &shared->addresses) {
    pager->hooks.homes = &home_chunks_;
    pager->hooks.before_choice = {
        [](void* self) noexcept { static_cast<OnDemandExecutor*>(self)->program_calls.finish_granted(); }, this};
  }

  // Performs one entry and reports it as done; a call that its program thread makes itself is only taken in.
  void perform(LogEntry& entry) noexcept;
  // Moves ahead of the calls; the entry at `position` is performed next.
  void look(uint64_t position) noexcept {
    if (auditor.on()) return;
    look_ahead.begin(position);
    look_ahead.step(!program_calls.any_granted());
  }

  Examiner examiner;
  Auditor auditor;
  LookAhead look_ahead;
  ProgramCalls program_calls{this};

 private:
  friend class ProgramCalls;
  LaneUse record_use(LogEntry& entry, LaneIndex lane, const std::vector<ResidentTensor*>& set,
                     bool everything) noexcept;

  void perform_op(LogEntry& entry) noexcept;
  CUresult issue(LogEntry& entry, LaneIndex lane) noexcept;
  CUresult issue_counted(LogEntry& entry, LaneIndex lane) noexcept;
  CUresult issue_with_headroom(LogEntry& entry, LaneIndex lane) noexcept;
  bool give_more(uint64_t refusal, bool keep_last) noexcept;
  void conclude(LogEntry& entry, CUresult result, LaneUse use) noexcept;
  void refuse(LogEntry& entry) noexcept;
  CUresult make_ready(LogEntry& entry, LaneIndex lane, bool* everything) noexcept;
  RoomFigures room_now() noexcept;
  void complain(LogEntry& entry) noexcept;
  bool in_plan_region(const Access& access) const noexcept;
  void perform_allocate(LogEntry& entry) noexcept;
  void perform_free(LogEntry& entry) noexcept;
  void end_handover(const LogEntry& entry) noexcept;
  void perform_ordered(LogEntry& entry) noexcept;
  void close_memory() noexcept;
  void perform_errand(LogEntry& entry) noexcept;
  void perform_read_back(LogEntry& entry) noexcept;
  CUresult wait_for_outstanding(LaneIndex lane) noexcept;
  CUresult read_part(const ReadBackPart& part, LaneIndex lane, unsigned char* to) noexcept;

  Shared& shared_;
  ManagedMemory& memory_;
  Pager& pager_;
  Issuer& issuer_;
  HomeChunks home_chunks_;
  std::vector<ResidentTensor*> set_;
};

// The tensor of an access, or nullptr when Reprise does not manage what it points to. Small tensors of a plan's region
// share addresses over time, so there it is the block.
inline ResidentTensor* tensor_of(ManagedMemory& memory, const Access& access) noexcept {
  const CUdeviceptr base = access.address - access.offset;
  ResidentTensor* const tensor = memory.tensors.find(base);
  return tensor == nullptr && memory.arena.plan.contains(base) ? memory.blocks.find(base) : tensor;
}

}  // namespace reprise::replay
