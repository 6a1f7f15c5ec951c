// Runs `reprise plan` as a child process and loads what it wrote. The program must not notice: the child sends no
// SIGCHLD, its wait() never sees it, and nothing is preloaded into it. Caller: the enforcer; the work is on a thread.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "preload/record/recorder.h"
#include "replay/plan/plan_index.h"
#include "replay/plans/kept_plans.h"

namespace reprise::replay {

struct PlanRequest {
  std::string planner;  // path of the `reprise` program
  std::string trace;
  std::string plan;  // where to write; empty: where nobody else finds it, and nothing is left of it
  std::string policy;
  std::string facts;     // the folder with what is known of kernels; empty: nothing is
  std::string nvdisasm;  // by which it reads kernels' code; empty: it is looked for
  uint64_t budget_bytes = 0;
  uint64_t from_call = 0;                            // of the trace, only what was called from this sequence number on
  uint64_t least_calls = 0;                          // of the iteration
  std::vector<std::pair<uint64_t, uint64_t>> sizes;  // of an iteration whose sizes vary: by allocation, bytes at least
  uint32_t least_share = 0;                          // of the recorded device time that it has to cover, in %
  bool best_start = false;                           // it has to begin where least is alive
  bool first = false;  // where planning takes a while, there is a first answer at once, and a better one later
  std::shared_ptr<KeptPlans> kept;  // what is made is kept for the next run; nullptr: it is not
  uint32_t limit_seconds = 0;       // a planner that takes longer is killed
};

enum class PlanState : uint8_t { none, running, ready, not_yet, impossible };

// Where a plan's own addresses lie, as for make_plan_index().
struct PlanPlace {
  Zone zone;
  uint64_t ranges_at = 0;
  uint64_t chunk_bytes = 0;
};

// What came of a question. The thread that asks has it, too, and may outlive whoever asked.
struct PlannerAnswer {
  std::atomic<PlanState> state{PlanState::none};
  const PlanIndex* plan_index = nullptr;  // after `ready`: the plan, owned by the process for good
  std::string message;                    // after `not_yet` or `impossible`: why, as one line
  bool is_better = false;                 // after `ready`: it is of the same loop as the one before, and better
  bool searches_on = false;               // ... and the planner is at work on a better one
  bool is_part = false;   // after `not_yet`: there is an iteration, and it covers less than was asked for
  bool is_early = false;  // ... of one that could not begin at its best place yet
  // How long it took: until the recording was written, and the planner's process.
  uint64_t recording_ns = 0;
  uint64_t planner_ns = 0;
  uint64_t needed_bytes = 0;   // after `impossible`: the budget that the message asks for, 0: that is not the reason
  std::string needed_because;  // ... what it is made of, as a clause
};

class PlannerProcess {
 public:
  explicit PlannerProcess(plan::Safety safety) noexcept : safety_(safety) {}

  // Starts to plan in the background; `recorder` is flushed first.
  void ask(const PlanRequest& request, Recorder* recorder, const PlanPlace& place) noexcept;
  // Loads an existing plan on the calling thread.
  void load(const std::string& path, const PlanPlace& place) noexcept;

  PlanState state() const noexcept { return answer_->state.load(std::memory_order_acquire); }
  // Until it is no more `running`.
  void wait() const noexcept { answer_->state.wait(PlanState::running, std::memory_order_acquire); }
  // While it is not `running`.
  const PlannerAnswer& answer() const noexcept { return *answer_; }
  // The answer has been read. ask() may be called again, unless the planner is `running` for a better one.
  void reset() noexcept {
    answer_->state.store(answer_->searches_on ? PlanState::running : PlanState::none, std::memory_order_release);
    answer_->state.notify_all();
  }

 private:
  const plan::Safety safety_;
  std::shared_ptr<PlannerAnswer> answer_ = std::make_shared<PlannerAnswer>();
};

// Starts `arguments` (a path and its arguments) with stdin, stdout and stderr on /dev/null and without LD_PRELOAD and
// REPRISE_* variables, and waits for it, `limit_seconds` at most. It does not outlive this process. -1: it could not be
// started, else a wait status. Exposed for tests.
int run_unseen(const std::vector<std::string>& arguments, uint32_t limit_seconds) noexcept;

}  // namespace reprise::replay
