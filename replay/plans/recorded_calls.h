// What the recorder gets of the program's calls for the next plan: all while no plan is followed, in stretches that the
// planner is asked about. What was freed and allocated during a pause is recorded as of its end. Caller: PlanSession,
// under the submission lock.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "preload/record/recorder.h"
#include "replay/follow/plan_follower.h"
#include "replay/issue/shared.h"

namespace reprise::replay {

class RecordedCalls {
 public:
  RecordedCalls(Recorder* recorder, Shared* shared) noexcept : recorder_(recorder), shared_(*shared) {}

  void open() noexcept { records_ = may_record_ = recorder_ != nullptr; }
  // For each call, before it is appended: records, pauses or resumes as the follower follows a plan or not.
  void follow(PlanFollower* follower, uint64_t sequence) noexcept;
  // The next plan is for what is called from here on; the planner is not asked for `quiet` calls.
  void begin_stretch(PlanFollower* follower, uint64_t sequence, uint64_t quiet) noexcept;
  // ... from the next resumption on, if nothing is recorded now. true: something is.
  bool begin_with_next() noexcept;
  void begin_anew_when_resumed() noexcept { anew_ = true; }
  // Nothing is recorded from the next pause on, or again.
  void allow(bool on) noexcept { may_record_ = on; }
  void stop() noexcept;

  uint64_t from_call() const noexcept { return from_call_; }  // the first call of the stretch
  uint64_t calls() const noexcept { return calls_; }          // recorded in all
  bool may_record() const noexcept { return may_record_; }

 private:
  void resume(PlanFollower* follower, uint64_t sequence) noexcept;

  using Alive = std::pair<uint64_t, LiveAllocation>;  // by allocation id

  Recorder* const recorder_;
  Shared& shared_;
  bool records_ = false;    // calls go to the trace
  bool may_record_ = true;  // ... while no plan is followed
  bool anew_ = false;       // the next plan is for what is recorded from the next resumption on
  uint64_t from_call_ = 0;
  uint64_t calls_ = 0;
  uint64_t paused_after_ = 0;  // the last call before the pause
  bool paused_for_plan_ = false;
  std::vector<Alive> alive_at_pause_;
};

// Hands device times to the trace while something is recorded. Called where the program has just synchronised: behind
// the end of a recording that was the last of it, and the source stops. Any thread.
void collect_activity(Recorder* recorder, Common& common) noexcept;

}  // namespace reprise::replay
