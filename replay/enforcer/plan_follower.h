// The program's side of iterations: which allocations are alive, whether the stream of calls repeats, whether this call
// is the boundary where a plan may begin, whether each call follows the plan. Caller: the enforcer, once per call,
// under its submission lock.
#pragma once
#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "preload/calls/command.h"
#include "preload/footprint/footprint.h"
#include "replay/dispatch/shared.h"
#include "replay/enforcer/detector.h"
#include "replay/plan/matcher.h"

namespace reprise::replay {

// What the follower says about one call, and what the enforcer has to do for it.
struct FollowedCall {
  bool activate = false;     // append an `activate` entry for match.iteration first
  bool planned = false;      // the call is the plan's: `match` says which
  bool ask_planner = false;  // two equal periods were seen
  Match match;
  CUdeviceptr address = 0;  // of a planned allocation
};

class PlanFollower {
 public:
  explicit PlanFollower(Shared* shared) noexcept : shared_(*shared) {}

  // To be asked for each call of the program, before the enforcer appends it.
  FollowedCall op(const Command& command) noexcept;
  FollowedCall allocate(const AllocateCall& call) noexcept;
  FollowedCall free(const FreeCall& call) noexcept;
  // To be told of each allocation and free that was appended.
  void allocated(uint64_t allocation, CUdeviceptr address, uint64_t size) noexcept;
  void freed(uint64_t allocation) noexcept;
  // Chunks have this size from now on, and nothing is alive.
  void open(uint64_t chunk_bytes) noexcept { footprint_.open(chunk_bytes); }

  // The program does something that no plan can hold (opaque work, a capture): the plan ends here.
  void interrupt(const char* what) noexcept;
  // A plan is there: it may begin at the next boundary.
  void use(const PlanIndex* plan_index) noexcept { plan_index_ = plan_index; }
  const plan::Call& plan_call(const Match& match) const noexcept { return plan_index_->plan.calls[match.call]; }
  // May be asked without the lock, too.
  bool following() const noexcept { return following_.load(std::memory_order_relaxed); }
  // Address ranges that were in handover when the plan ended; to be taken once after each call.
  std::vector<OpenHandover> take_open_handovers() noexcept { return std::exchange(open_handovers_, {}); }
  // Whether to look for repetition; the planner found no iteration in it.
  void watch(bool on) noexcept { watching_ = on; }
  void planner_said_no() noexcept { detector_.rejected(); }

  template <typename Visit>
  void each_live(Visit visit) const {
    for (const auto& [allocation, live] : live_) visit(live.address);
  }
  uint64_t live_bytes() const noexcept { return live_bytes_; }
  const footprint::Footprint& footprint() const noexcept { return footprint_; }

 private:
  struct LiveAllocation {
    CUdeviceptr address;
    uint64_t size;
  };
  template <typename Try>
  FollowedCall step(plan::CallKind kind, uint64_t signature, const char* got, Try match) noexcept;
  bool may_begin(plan::CallKind kind, uint64_t signature) noexcept;
  void begin() noexcept;
  void diverge(const char* got) noexcept;
  bool detect(uint64_t signature) noexcept;
  void on_demand_boundary() noexcept;

  Shared& shared_;
  Detector detector_;
  Matcher matcher_;
  std::vector<OpenHandover> open_handovers_;
  const PlanIndex* plan_index_ = nullptr;
  std::atomic<bool> following_{false};
  bool watching_ = false;
  uint64_t divergences_seen_ = 0;
  uint64_t next_iteration_ = 0;              // number of the next iteration that begins, by a plan or on demand
  uint64_t began_iteration_ = 0;             // first of the current activation
  std::map<uint64_t, LiveAllocation> live_;  // by allocation id: in order of allocation
  uint64_t live_bytes_ = 0;
  footprint::Footprint footprint_;  // of these
  uint64_t early_failures_ = 0;     // activations in a row that did not last one iteration
  uint64_t skip_boundaries_ = 0;
  uint64_t period_ = 0;  // of the repetition that was found, to tell iterations on demand apart
  uint64_t calls_in_period_ = 0;
  uint64_t on_demand_began_ns_ = 0;
};

}  // namespace reprise::replay
