// The program's side of iterations: which allocations are alive, whether the stream of calls repeats, whether this call
// is the boundary where one of the plans may begin, whether each call follows the plan. Caller: the enforcer, once per
// call, under its submission lock.
#pragma once
#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "preload/calls/command.h"
#include "preload/footprint/footprint.h"
#include "replay/enforcer/detector.h"
#include "replay/enforcer/loop_counter.h"
#include "replay/issue/shared.h"
#include "replay/plan/matcher.h"
#include "replay/plan/rehearsal.h"

namespace reprise::replay {

// What the follower says about one call, and what the enforcer has to do for it.
struct FollowedCall {
  bool activate = false;     // append an `activate` entry for `plan` and match.iteration first
  bool planned = false;      // the call is the plan's: `match` says which
  bool ask_planner = false;  // two equal periods were seen
  bool holds = false;        // a plan would begin here, but from here on none does for a while
  bool look_first = false;   // not taken: it is blind, and no plan says what it touches
  uint32_t plan = 0;
  Match match;
  CUdeviceptr address = 0;  // of a planned allocation
};

// What is known of iterations when the context ends, in which all plans are.
struct CountedLoops {
  std::vector<LoopCounter> loops;
  uint64_t next_iteration = 0;  // its number
};

class PlanFollower {
 public:
  explicit PlanFollower(Shared* shared, CountedLoops before = {}) noexcept
      : shared_(*shared), loops_(std::move(before.loops)), next_iteration_(before.next_iteration) {}

  // Of loops that have, or had, plans: they are counted on in the program's next context.
  CountedLoops take_counted() noexcept;

  // To be asked for each call of the program, before the enforcer appends it.
  FollowedCall op(const Command& command) noexcept;
  FollowedCall allocate(const AllocateCall& call) noexcept;
  FollowedCall free(const FreeCall& call) noexcept;
  // To be told of each allocation and free that was appended.
  void allocated(uint64_t allocation, CUdeviceptr address, uint64_t size,
                 trace::Origin origin = trace::Origin::alloc) noexcept;
  void freed(uint64_t allocation) noexcept;
  // Chunks have this size from now on, and the driver's own allocations would have that, and nothing is alive.
  void open(uint64_t chunk_bytes, uint64_t granularity) noexcept {
    footprint_.open(granularity);
    if (chunk_bytes != granularity) in_chunks_.open(chunk_bytes);
  }

  // The program does something that no plan can hold (opaque work, a capture): the plan ends here.
  void interrupt(const char* what) noexcept;
  // One more plan is there: it may begin at the next boundary. Its number is how many there were before.
  void use(const PlanIndex* plan_index) noexcept;
  // Of a plan that was made of what this program did: it ended so soon behind it, or behind leaving it in the first
  // iteration, that its loop was over by then. Else empty.
  std::string why_too_late(uint32_t plan) const noexcept;
  // Call of the plan that is followed.
  const plan::Call& plan_call(const Match& match) const noexcept {
    return plans_[current_].index->plan.calls[match.call];
  }
  // What the plan knows that the call touches beside what it says itself (Matcher).
  const Matcher& matcher() const noexcept { return matcher_; }
  // Of a plan that the program never was at the beginning of: what differed when its first call came last. Else empty.
  std::string why_never_begun(uint32_t plan) const noexcept;
  // Of a plan that the program was at the beginning of: where it left that plan last. Else empty.
  std::string where_left(uint32_t plan) const noexcept;
  // Has it ruled an iteration from start to end, or a plan that was made of the same loop before or after it?
  bool has_ruled(uint32_t plan) const noexcept;
  // The program does not go through it any more: it was left within its first iteration, and then no iteration on
  // demand was the plan's, or all activations of late ended so.
  bool never_lasts(uint32_t plan) const noexcept;
  // What stands for the persistent tensors of the plan that begins with the last call: their addresses, in its order.
  const std::vector<CUdeviceptr>& cast() const noexcept { return cast_; }
  // Calls of the program, under plans and on demand.
  uint64_t calls_seen() const noexcept { return calls_in_all_; }
  // May be asked without the lock, too.
  bool following() const noexcept { return following_.load(std::memory_order_relaxed); }
  // Address ranges that were in handover when the plan ended; to be taken once after each call.
  std::vector<OpenHandover> take_open_handovers() noexcept { return std::exchange(open_handovers_, {}); }
  // Whether to look for repetition; the planner found no iteration in it.
  void watch(bool on) noexcept { watching_ = counts_ = on; }
  // ... for another loop than the one that is counted as it was.
  void watch_for_others() noexcept {
    watching_ = true;
    counts_ = false;
  }
  void planner_asked() noexcept { detector_.asked(); }
  void planner_said_no(bool soon) noexcept { detector_.rejected(soon); }
  // What was seen so far is settled; the next question is about what comes, in `quiet` calls at the earliest.
  void watch_anew(uint64_t quiet) noexcept { detector_.restart(quiet); }
  // Which loop ask_planner is about.
  uint64_t loop() const noexcept { return detector_.loop(); }
  // ... and how many calls it has at least, during a hold: shorter ones have plans.
  uint64_t least_calls() const noexcept { return held_calls_ > 0 ? detector_.period() - detector_.period() / 8 : 0; }
  void end_hold() noexcept { held_calls_ = shortest_period_ = 0; }
  // Have all plans since the last call of this ended behind whole iterations, with nothing in between?
  bool take_whole() noexcept { return std::exchange(whole_, true); }

  struct LiveAllocation {
    CUdeviceptr address;
    uint64_t size;
    trace::Origin origin;
  };
  // By allocation id: in order of allocation.
  const std::map<uint64_t, LiveAllocation>& live() const noexcept { return live_; }
  uint64_t live_bytes() const noexcept { return live_bytes_; }
  const footprint::Footprint& footprint() const noexcept { return footprint_; }  // of what is live, without us
  // ... of chunks, if none is away.
  const footprint::Footprint& in_chunks() const noexcept { return in_chunks_.is_open() ? in_chunks_ : footprint_; }

 private:
  struct KnownPlan {
    KnownPlan(const PlanIndex* plan_index, uint32_t counter) noexcept : index(plan_index), loop(counter) {}
    const PlanIndex* index;
    uint32_t loop;                // in loops_; plans of the same loop have the same
    uint64_t early_failures = 0;  // activations in a row that did not last one iteration
    bool lacks_room = false;      // ... the last one because the device had no room for it
    uint64_t distance = 0;        // so many rehearsals before the next one
    // Iterations of the plan that the program goes through without it, from each call on that may be the first; what
    // stood for its persistent tensors in the last whole one, which was over with this call of the program; how many
    // were, since the plan was left.
    std::vector<Rehearsal> rehearsals;
    std::vector<uint64_t> roles;
    uint64_t rehearsed_at = 0;
    uint64_t rehearsed = 0;
    bool begun = false;
    uint64_t ruled = 0;                // iterations, from start to end
    uint64_t ready_at = 0;             // calls of the program by then
    uint64_t left_at = 0;              // ... when it last left the plan by another call, in its first iteration
    uint32_t left_call = 0;            // and the place in it
    std::string left_for;              // what was expected there, and what came
    uint64_t first_calls = 0;          // how often its first call came while it was not followed
    size_t alive_then = 0;             // allocations, the last time
    const char* difference = nullptr;  // and what else was not as in the recording
  };
  // `same`: is the call the one that the matcher, or a rehearsal, expects? And what differs of the matcher's.
  template <typename Same>
  FollowedCall step(plan::CallKind kind, uint64_t signature, const char* got, bool blind, Same same) noexcept;
  template <typename Same>
  void rehearse(plan::CallKind kind, uint64_t signature, Same same) noexcept;
  bool may_be_first(const KnownPlan& known, plan::CallKind kind, uint64_t signature) const noexcept;
  bool was_rehearsed(const KnownPlan& known) const noexcept;
  bool is_due(const KnownPlan& known) const noexcept;
  bool find_cast(KnownPlan* known) noexcept;
  bool cast_as_rehearsed(const KnownPlan& known) noexcept;
  bool cast_in_order(KnownPlan* known) noexcept;
  const char* why_not(const KnownPlan& known, size_t tensor, const LiveAllocation& live) const noexcept;
  bool goes_before(uint32_t plan, uint32_t other) const noexcept;
  template <typename Same>
  bool begins_here(uint32_t plan, plan::CallKind kind, uint64_t signature, Same same, FollowedCall* step) noexcept;
  size_t calls_of(const KnownPlan& known) const noexcept;
  bool is_part_of_another(plan::CallKind kind, uint64_t signature) noexcept;
  template <typename Same>
  void try_to_begin(plan::CallKind kind, uint64_t signature, Same same, FollowedCall* step) noexcept;
  void begin(uint32_t plan) noexcept;
  bool hold_now() noexcept;
  void end_plan() noexcept;
  void left_early(KnownPlan* known, uint64_t further, bool counts) noexcept;
  void leave_as_dispatcher() noexcept;
  void diverge(const char* got, const std::string& difference = {}) noexcept;
  bool detect(uint64_t word) noexcept;
  void on_demand_boundary() noexcept;
  void begin_to_count() noexcept;
  uint32_t counter_of(const PlanIndex& index) noexcept;
  void count_loops(uint64_t word) noexcept;
  void tell_loops() noexcept;

  Shared& shared_;
  Detector detector_;
  Matcher matcher_;
  std::vector<OpenHandover> open_handovers_;
  std::vector<KnownPlan> plans_;    // by number
  std::vector<CUdeviceptr> cast_;   // of the plan that was looked at last
  std::vector<LoopCounter> loops_;  // passed through without a plan
  uint32_t current_ = 0;            // the one that is followed, or was last
  std::atomic<bool> following_{false};
  bool whole_ = true;
  bool watching_ = false;
  bool counts_ = false;  // the iterations of a loop that repeats instead of the one before
  uint64_t divergences_seen_ = 0;
  uint64_t calls_in_all_ = 0;
  uint64_t this_call_ = 0;                   // its number among these
  uint64_t next_iteration_ = 0;              // number of the next iteration that begins, by a plan or on demand
  uint64_t began_iteration_ = 0;             // first of the current activation
  std::map<uint64_t, LiveAllocation> live_;  // by allocation id: in order of allocation
  uint64_t live_bytes_ = 0;
  footprint::Footprint footprint_;  // of these
  footprint::Footprint in_chunks_;  // open where chunks are larger than the driver's
  // Are the plans those of the program's iterations, or of parts of them?
  uint64_t activations_ = 0;         // since the last hold
  uint64_t planned_iterations_ = 0;  // in them
  uint64_t calls_ = 0;               // meanwhile, planned and on demand
  uint64_t holds_ = 0;
  uint64_t in_use_ = 0;           // the plans, a bit each
  uint64_t held_calls_ = 0;       // for so many calls no plan begins
  uint64_t shortest_period_ = 0;  // that is worth a question, meanwhile
  uint64_t period_ = 0;           // of the repetition that was found, to tell iterations on demand apart
  uint64_t calls_in_period_ = 0;
  uint64_t on_demand_began_ns_ = 0;
};

}  // namespace reprise::replay
