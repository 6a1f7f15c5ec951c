// Which vertices of a plan may be issued: counts predecessors over the iterations that overlap, keeps the ready ones in
// priority order. Pure bookkeeping over a PlanIndex; the plan executor issues them and reports back. Dispatcher thread
// only.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "replay/memory/lanes/uses.h"
#include "replay/plan/plan_index.h"
#include "replay/queue/command_log.h"

namespace reprise::replay {

// One vertex of one iteration.
struct Instance {
  uint64_t iteration = 0;
  uint32_t vertex = 0;
};

class Progress {
 public:
  // Iterations overlap by at most this many.
  static constexpr uint64_t kSlots = 3;

  // Begins with iteration `first`; no vertex waits for an earlier iteration.
  void begin(const PlanIndex* plan_index, uint64_t first) noexcept;

  // From here on the transfers of `iteration` may be issued. False while the iteration two before it is unfinished.
  bool open(uint64_t iteration) noexcept;
  bool is_open(uint64_t iteration) const noexcept { return iteration < next_open_; }
  uint64_t next_open() const noexcept { return next_open_; }
  uint64_t first() const noexcept { return first_; }

  // The program has made this call.
  void submitted(Instance instance, LogEntry* entry) noexcept;
  LogEntry* entry(Instance instance) const noexcept { return slot(instance.iteration).entries[instance.vertex]; }

  // Calls `visit(Instance)` for ready vertices of one lane kind, oldest iteration first, then by priority, until it
  // returns true. Returns whether it did.
  template <typename Visit>
  bool find_ready(LaneKind kind, Visit visit) noexcept {
    const uint64_t oldest = next_open_ > first_ + 2 ? next_open_ - 2 : first_;
    for (uint64_t iteration = oldest; iteration < next_open_; ++iteration) {
      if (scan(iteration, kind, visit)) return true;
    }
    return false;
  }

  // The vertex was handed to the driver (or, a release, performed). It is not ready any more; its successors may be.
  void issued(Instance instance, LaneUse use) noexcept;
  // A program thread is about to issue the vertex: it is not ready any more, but not issued yet.
  void taken(Instance instance) noexcept { set_ready(instance, false); }

  // Has every predecessor been issued, and the program made the call? Of a submitted call that is not issued.
  bool is_ready(Instance instance) const noexcept {
    return is_open(instance.iteration) && slot(instance.iteration).missing[instance.vertex] == 0;
  }

  // Where the vertex was issued last in that iteration.
  LaneUse use(Instance instance) const noexcept { return slot(instance.iteration).uses[instance.vertex]; }
  bool finished(uint64_t iteration) const noexcept {
    return iteration < next_open_ && slot(iteration).iteration == iteration && slot(iteration).left == 0;
  }
  uint64_t unissued_submitted() const noexcept { return unissued_submitted_; }
  bool has_submitted(uint64_t iteration) const noexcept { return slot(iteration).submitted > 0; }

 private:
  struct IterationSlot {
    uint64_t iteration = 0;
    uint64_t left = 0;               // vertices not issued
    uint64_t submitted = 0;          // calls that the program has made
    std::vector<uint32_t> missing;   // predecessors not issued, by vertex
    std::vector<LogEntry*> entries;  // submitted calls, by vertex
    std::vector<LaneUse> uses;
    std::array<std::vector<uint64_t>, kLaneKinds + 1> ready;  // bits by rank; the last: releases
  };
  IterationSlot& slot(uint64_t iteration) noexcept { return slots_[iteration % kSlots]; }
  const IterationSlot& slot(uint64_t iteration) const noexcept { return slots_[iteration % kSlots]; }
  void prepare(uint64_t iteration) noexcept;
  void consider(Instance instance) noexcept;
  void set_ready(Instance instance, bool ready) noexcept;

  template <typename Visit>
  bool scan(uint64_t iteration, LaneKind kind, Visit& visit) noexcept {
    // The bits may change under the visit: words are read again.
    auto& bits = slot(iteration).ready[static_cast<size_t>(kind)];
    for (size_t word = 0; word < bits.size(); ++word) {
      uint64_t seen = 0;
      while ((bits[word] & ~seen) != 0) {
        const auto bit = static_cast<unsigned>(__builtin_ctzll(bits[word] & ~seen));
        seen |= uint64_t{1} << bit;
        if (visit(Instance{iteration, plan_index_->plan.order[word * 64 + bit]})) return true;
      }
    }
    return false;
  }

  const PlanIndex* plan_index_ = nullptr;
  std::array<IterationSlot, kSlots> slots_;
  uint64_t first_ = 0;
  uint64_t next_open_ = 0;
  uint64_t unissued_submitted_ = 0;
};

}  // namespace reprise::replay
