// Runs `reprise plan` as a child process and loads what it wrote. The program must not notice: the child sends no
// SIGCHLD, its wait() never sees it, and nothing is preloaded into it. Caller: the enforcer; the work is on a thread.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "preload/record/recorder.h"
#include "replay/plan/plan_index.h"

namespace reprise::replay {

struct PlanRequest {
  std::string planner;  // path of the `reprise` program
  std::string trace;
  std::string plan;  // where to write; empty: where nobody else finds it, and nothing is left of it
  std::string policy;
  std::string facts;  // the folder with what is known of kernels; empty: nothing is
  uint64_t budget_bytes = 0;
  uint64_t from_call = 0;      // of the trace, only what was called from this sequence number on
  uint64_t least_calls = 0;    // of the iteration
  uint32_t least_share = 0;    // of the recorded device time that it has to cover, in %
  bool best_start = false;     // it has to begin where least is alive
  bool first = false;          // where planning takes a while, there is a first answer at once, and a better one later
  uint32_t limit_seconds = 0;  // a planner that takes longer is killed
};

enum class PlanState : uint8_t { none, running, ready, not_yet, impossible };

// Where a plan's own addresses lie, as for make_plan_index().
struct PlanPlace {
  Zone zone;
  uint64_t ranges_at = 0;
  uint64_t chunk_bytes = 0;
};

class PlannerProcess {
 public:
  explicit PlannerProcess(plan::Safety safety) noexcept : safety_(safety) {}

  // Starts to plan in the background; `recorder` is flushed first.
  void ask(const PlanRequest& request, Recorder* recorder, const PlanPlace& place) noexcept;
  // Loads an existing plan on the calling thread.
  void load(const std::string& path, const PlanPlace& place) noexcept;

  PlanState state() const noexcept { return state_.load(std::memory_order_acquire); }
  // Until it is no more `running`.
  void wait() const noexcept { state_.wait(PlanState::running, std::memory_order_acquire); }
  // After `ready`: the plan, owned by the process for good. After `not_yet` or `impossible`: why, as one line.
  const PlanIndex* plan_index() const noexcept { return plan_index_; }
  const std::string& message() const noexcept { return message_; }
  // After `ready`: it is of the same loop as the one before, and better.
  bool is_better() const noexcept { return is_better_; }
  // After `not_yet`: there is an iteration, and it covers less than was asked for.
  bool is_part() const noexcept { return is_part_; }
  // ... of one that could not begin at its best place yet.
  bool is_early() const noexcept { return is_early_; }
  // How long the answer took: until the recording was written, and the planner's process.
  uint64_t recording_ns() const noexcept { return recording_ns_; }
  uint64_t planner_ns() const noexcept { return planner_ns_; }
  // After `impossible`: the budget that the message asks for, 0 when that is not the reason.
  uint64_t needed_bytes() const noexcept { return needed_bytes_; }
  // ... what it is made of, as a clause.
  const std::string& needed_because() const noexcept { return needed_because_; }
  // The enforcer has read the answer. ask() may be called again, unless the planner is `running` for a better one.
  void reset() noexcept { answer(searches_on_ ? PlanState::running : PlanState::none); }

 private:
  void run(const PlanRequest& request, Recorder* recorder, const PlanPlace& place) noexcept;
  void search_on(const PlanRequest& request, uint64_t until, const PlanPlace& place) noexcept;
  void take(Result<plan::Plan> plan, const PlanPlace& place) noexcept;
  void answer(PlanState state) noexcept {
    state_.store(state, std::memory_order_release);
    state_.notify_all();
  }

  const plan::Safety safety_;
  std::atomic<PlanState> state_{PlanState::none};
  const PlanIndex* plan_index_ = nullptr;
  std::string message_;
  bool is_better_ = false;
  bool searches_on_ = false;  // behind a first answer
  bool is_part_ = false;
  bool is_early_ = false;
  uint64_t recording_ns_ = 0;
  uint64_t planner_ns_ = 0;
  uint64_t needed_bytes_ = 0;
  std::string needed_because_;
};

// Starts `arguments` (a path and its arguments) with stdin, stdout and stderr on /dev/null and without LD_PRELOAD and
// REPRISE_* variables, and waits for it, `limit_seconds` at most. It does not outlive this process. -1: it could not be
// started, else a wait status. Exposed for tests.
int run_unseen(const std::vector<std::string>& arguments, uint32_t limit_seconds) noexcept;

}  // namespace reprise::replay
