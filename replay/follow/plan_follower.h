// The program's side of plans: whether this call is the boundary where one of the plans may begin, and whether each
// call follows the plan. Caller: PlanSession, once per call, under the submission lock.
#pragma once
#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "preload/calls/command.h"
#include "replay/follow/cast.h"
#include "replay/follow/growth.h"
#include "replay/follow/joins.h"
#include "replay/follow/known_plan.h"
#include "replay/follow/live_allocations.h"
#include "replay/follow/repetition.h"
#include "replay/follow/rounds.h"
#include "replay/issue/shared.h"
#include "replay/plan/matcher.h"

namespace reprise::replay {

// What the follower says about one call, and what the enforcer has to do for it.
struct FollowedCall {
  bool activate = false;             // append an `activate` entry for `plan` and match.iteration first
  bool planned = false;              // the call is the plan's: `match` says which
  bool ask_planner = false;          // two equal periods were seen
  bool holds = false;                // a plan would begin here, but from here on none does for a while
  bool look_first = false;           // not taken: it is blind, and no plan says what it touches
  const Growth* outgrown = nullptr;  // an iteration is over that was larger than its plan's, until the next call
  uint32_t plan = 0;
  const std::vector<CUdeviceptr>* cast = nullptr;  // its persistent tensors, in its order, until the next call
  Match match;
  CUdeviceptr address = 0;  // of a planned allocation
  // Calls of the plan that come first, which the program has left out; until the next call.
  const std::vector<Match>* left_out = nullptr;
};

class PlanFollower {
 public:
  explicit PlanFollower(Shared* shared, CountedLoops before = {}) noexcept
      : shared_(*shared), repetition_(shared, std::move(before)), joins_(&shared->run_log) {}

  // To be asked for each call of the program, before the enforcer appends it.
  FollowedCall op(const Command& command) noexcept;
  FollowedCall allocate(const AllocateCall& call) noexcept;
  FollowedCall free(const FreeCall& call) noexcept;
  // To be told of each allocation and free that was appended.
  LiveAllocations& live() noexcept { return live_; }

  // The program does something that no plan can hold (opaque work, a capture): the plan ends here.
  void interrupt(const char* what) noexcept;
  // One more plan is there: it may begin at the next boundary. Its number is how many there were before. `replaces`: a
  // plan of the same loop, which is left where an iteration ends, and goes on only where the new one does not last.
  void use(const PlanIndex* index, std::optional<uint32_t> replaces = {}) noexcept;
  const KnownPlan& known(uint32_t plan) const noexcept { return plans_[plan]; }
  // Has it ruled an iteration from start to end, or a plan that was made of the same loop before or after it?
  bool has_ruled(uint32_t plan) const noexcept;

  // The plan that is followed, and what it knows that a call touches beside what the call says itself.
  const Matcher& matcher() const noexcept { return matcher_; }
  // Address ranges that were in handover when the plan ended; to be taken once after each call.
  std::vector<OpenHandover> take_open_handovers() noexcept { return std::exchange(ended_.handovers, {}); }

  // Calls of the program, under plans and on demand.
  uint64_t calls_seen() const noexcept { return calls_; }
  // May be asked without the lock, too.
  bool following() const noexcept { return following_.load(std::memory_order_relaxed); }
  // Have all plans since the last call of this ended behind whole iterations, with nothing in between?
  bool take_whole() noexcept { return std::exchange(ended_.whole, true); }
  Repetition& repetition() noexcept { return repetition_; }
  Rounds& rounds() noexcept { return rounds_; }

 private:
  // `same`: is the call the one that the matcher, or a rehearsal, expects? And what differs of the matcher's.
  template <typename Same>
  FollowedCall step(const CalledAs& call, const char* got, bool blind, Same same) noexcept;
  template <typename Same>
  void rehearse(const CalledAs& call, Same same) noexcept;
  template <typename Same>
  bool begins_here(uint32_t plan, const CalledAs& call, Same same, FollowedCall* step) noexcept;
  std::optional<uint32_t> successor(const CalledAs& call) noexcept;
  template <typename Same>
  void try_to_begin(const CalledAs& call, Same same, FollowedCall* step) noexcept;
  void begin(uint32_t plan) noexcept;
  void end_plan() noexcept;
  void leave_as_dispatcher() noexcept;
  void diverge(const char* got, const std::string& difference = {}) noexcept;

  Shared& shared_;
  LiveAllocations live_;
  Repetition repetition_;
  Rounds rounds_;
  std::vector<KnownPlan> plans_;  // by number
  Cast cast_;                     // of the plan that was looked at last
  Matcher matcher_;
  struct Ended {
    bool whole = true;  // see take_whole()
    std::vector<OpenHandover> handovers;
  } ended_;  // plans, since it was asked
  Growth growth_;
  Joins joins_;
  uint32_t current_ = 0;  // the one that is followed, or was last
  std::atomic<bool> following_{false};
  struct Since {
    uint64_t divergences = 0;  // that the dispatcher had made then
    uint64_t iteration = 0;    // first of the current activation
  } began_;
  uint64_t calls_ = 0;
  uint64_t this_call_ = 0;  // its number among these
};

}  // namespace reprise::replay
