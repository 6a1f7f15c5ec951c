// Compares the program's live calls with the plan's, one by one. Caller: the enforcer under its submission lock.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <string>
#include <vector>

#include "preload/calls/command.h"
#include "replay/plan/call_cursor.h"

namespace reprise::replay {

// The address range of a tensor in handover: freed by the program, and the allocation that the plan expects to take it
// over has not come.
struct OpenHandover {
  CUdeviceptr address = 0;
  uint64_t size = 0;
};

class Matcher {
 public:
  // A new activation: `persistent` are the addresses of the plan's persistent tensors, in its order. The plan's first
  // call is expected next, of iteration `first`. Pointers outside `managed` are not compared.
  void begin(const PlanIndex* plan_index, const std::vector<CUdeviceptr>& persistent, Zone managed,
             uint64_t first) noexcept;

  // Is it the expected call? Then the next one is expected from here on, *match says which call it was, and *address
  // is what the plan gives an allocation.
  bool op(const Command& command, Match* match) noexcept;
  bool allocate(const AllocateCall& call, Match* match, CUdeviceptr* address) noexcept;
  bool free(const FreeCall& call, Match* match) noexcept;
  // The call is not the expected one. Is it one further on in the iteration, and may the program leave out what is
  // before it? Then `same()`, which compares the call, has returned true, and *calls has what is left out. What lacks
  // its end is no iteration: so loops end.
  template <typename Same>
  bool leave_out(Same same, std::vector<Match>* calls) noexcept;

  // Does the plan know of tensors that the matched call reaches through addresses in memory? Adds those that are not
  // among `accesses`: while a plan is in force nothing is looked into, so the call itself does not say.
  bool knows_pointees(const Match& match) const noexcept;
  void add_pointees(const Match& match, std::vector<Access>* accesses, uint64_t* operand_bytes) const;

  // The plan is over. Returns the ranges of the handovers whose allocation has not come.
  std::vector<OpenHandover> end() noexcept;

  uint32_t next() const noexcept { return cursor_.next(); }
  uint64_t iteration() const noexcept { return cursor_.iteration(); }
  // Frees of iterations that are over have not come.
  bool lacks_frees() const noexcept { return cursor_.any_passed(); }
  // What the plan expects next, and in words for the run log.
  const plan::Call& expected_call() const noexcept {
    return cursor_.overdue() != nullptr ? *cursor_.overdue() : cursor_.expected();
  }
  std::string expected() const;
  const plan::Plan& plan() const noexcept { return plan_index_->plan; }
  const PlanIndex& index() const noexcept { return *plan_index_; }
  const CallCursor& cursor() const noexcept { return cursor_; }
  // Does the free give the address to a later allocation?
  bool hands_over(const plan::Call& free) const noexcept {
    return free.kind == plan::CallKind::free_handover && !plan_index_->moves_in_handover(free.tensor);
  }
  CUdeviceptr address_of(uint32_t tensor) const noexcept { return addresses_[tensor]; }
  bool manages(CUdeviceptr address) const noexcept { return managed_.contains(address); }

 private:
  bool is_same_part(const plan::Call& call, const plan::OpAccess& expected, const Access& access) const noexcept;
  bool has_pointee(const plan::Call& call, CUdeviceptr base) const noexcept;

  const PlanIndex* plan_index_ = nullptr;
  Zone managed_;
  std::vector<CUdeviceptr> addresses_;  // by plan tensor
  std::vector<uint64_t> sizes_;         // likewise, of what stands for it
  std::vector<uint32_t> handovers_;     // plan tensors in handover
  CallCursor cursor_;
};

template <typename Same>
bool Matcher::leave_out(Same same, std::vector<Match>* calls) noexcept {
  calls->clear();
  if (cursor_.next() == 0) return false;
  const CallCursor before = cursor_;
  LeftOutPart part(plan_index_);
  while (cursor_.leave_out(&part, calls)) {
    if (cursor_.next() == 0) break;
    if (part.is_whole() && same()) return true;
  }
  cursor_ = before;
  calls->clear();
  return false;
}

}  // namespace reprise::replay
