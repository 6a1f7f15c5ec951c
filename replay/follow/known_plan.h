// One plan as the follower knows it: how its iterations went so far, by the plan and without it, and why it ruled none.
// A plan that was left in its first iteration waits until the program has gone through that iteration without it: to
// begin and to leave a plan costs more than an iteration on demand. Caller: the plan follower.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "preload/calls/command.h"
#include "replay/follow/live_allocations.h"
#include "replay/plan/plan_index.h"
#include "replay/plan/rehearsal.h"

namespace reprise::replay {

// A call of the program as it is compared with the first one of a plan.
struct CalledAs {
  plan::CallKind kind = plan::CallKind::op;
  uint64_t signature = 0;
  uint64_t structure = 0;  // what it is whatever its sizes
  uint64_t size = 0;       // of an allocation
};

class KnownPlan {
 public:
  // Loop `loop`, of which an iteration has `calls` calls; the plan is ready at call `now` of the program.
  KnownPlan(const PlanIndex* index, uint32_t loop, uint64_t now) noexcept;

  const PlanIndex& index() const noexcept { return *index_; }
  const plan::Plan& plan() const noexcept { return index_->plan; }
  uint32_t loop() const noexcept { return loop_; }  // plans of the same loop have the same
  size_t calls() const noexcept { return calls_; }  // of the program, in an iteration

  // Is it the plan's first call? Notes that it came, with so many allocations alive.
  bool first_call_came(const CalledAs& call, size_t alive) noexcept;
  // ... with all of the plan's persistent tensors, and nothing else?
  bool may_be_first(const CalledAs& call, size_t alive) const noexcept;
  void differs(const char* why) noexcept { start_.difference = why; }

  // Follows call `now`, which no plan or another one rules; `same(Rehearsal*)`: is it the one that is expected?
  template <typename Same>
  void rehearse(const CalledAs& call, const LiveAllocations& live, const Zone& arena, uint64_t now, Same same) noexcept;
  // The iteration that was over before call `now` was the plan's.
  bool was_rehearsed(uint64_t now) const noexcept { return done_.at != 0 && done_.at + 1 == now; }
  // Allocation ids that stood for its persistent tensors then, or Rehearsal::kUnknown.
  const std::vector<uint64_t>& roles() const noexcept { return done_.roles; }
  // May begin at call `now`, as far as its failures go.
  bool is_due(uint64_t now) const noexcept;
  uint64_t failures() const noexcept { return early_failures_; }

  // It is of an earlier run, and was never in force in this one.
  bool is_guess() const noexcept { return index_->is_guess && !begun_; }
  void begun() noexcept;
  void ruled(uint64_t iterations) noexcept { ruled_ += iterations; }
  uint64_t iterations() const noexcept { return ruled_; }
  // The plan of the same loop, by its number, that takes this one's place.
  std::optional<uint32_t> better;

  // Left within its first iteration. `lacked_room`: the device had no room for it. `counts`: it waits longer each time.
  void left_early(bool lacked_room, bool counts) noexcept;
  // ... at call `now` of the program, `call` of the plan's, for this.
  void diverged(bool early, uint32_t call, uint64_t now, std::string why) noexcept;
  // It was not the program's loop that ended.
  void interrupted() noexcept { left_.at = 0; }

  // The program does not go through it any more: it was left within its first iteration, and then no iteration on
  // demand was the plan's, or all activations of late ended so.
  bool never_lasts() const noexcept;
  // Each "" where it does not hold; `now`: calls of the program so far.
  std::string why_never_begun() const;
  std::string where_left() const;
  std::string why_too_late(uint64_t now) const;
  const std::string& left_for() const noexcept { return left_.why; }

 private:
  static constexpr size_t kMostRehearsals = 64;  // at once

  const PlanIndex* index_;
  uint32_t loop_;
  size_t calls_;
  uint64_t ready_at_;
  bool begun_ = false;
  uint64_t ruled_ = 0;           // iterations, from start to end
  uint64_t early_failures_ = 0;  // activations in a row that did not last one iteration
  bool lacks_room_ = false;      // the last one because the device had no room for it
  uint64_t distance_ = 0;        // so many rehearsals before the next one
  // Iterations of the plan that the program goes through without it, from each call on that may be the first.
  std::vector<Rehearsal> under_way_;
  struct Rehearsed {
    std::vector<uint64_t> roles;
    uint64_t at = 0;     // the call of the program with which the last one was over
    uint64_t count = 0;  // since the plan was left
  } done_;
  struct Left {
    uint64_t at = 0;  // calls of the program then, if it was in the first iteration
    uint32_t call = 0;
    std::string why;
  } left_;
  struct Start {
    uint64_t count = 0;  // how often the first call came while the plan was not followed
    size_t alive = 0;    // the last time
    const char* difference = nullptr;
  } start_;
};

template <typename Same>
void KnownPlan::rehearse(const CalledAs& call, const LiveAllocations& live, const Zone& arena, uint64_t now,
                         Same same) noexcept {
  if (may_be_first(call, live.count()) && under_way_.size() < kMostRehearsals) {
    under_way_.emplace_back(index_, arena);
  }
  const auto over = [&](Rehearsal& rehearsal) {
    if (!same(&rehearsal)) return true;
    if (!rehearsal.finished()) return false;
    done_ = {rehearsal.allocations(), now, done_.count + 1};
    return true;
  };
  std::erase_if(under_way_, over);
}

}  // namespace reprise::replay
