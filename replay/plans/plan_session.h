// Which plan, when: asks the planner when the program repeats itself, keeps the plans that it makes, and says why there
// is none. One for a device and the context in which it is managed. Caller: the session, under the submission lock.
//
//                 repeats                    a plan, or none of this loop
//     watching ------------> (planner works) ---------------------------> watching
//       |   ^                       |
//       |   | takes more            | takes more than the budget,      another loop repeats,
//       v   |                       | or eight answers without a plan  or the budget has grown
//       fits                        +-------------------------------> left_out ----------> watching
//
//     any --> stopped: the user's plan, kMostPlans plans, too many calls, a plan that is impossible, the context's end
//
// Whether a plan is followed is the follower's (plan_follower.h), whether none begins for a while that of its rounds.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "preload/base/config.h"
#include "preload/record/recorder.h"
#include "replay/follow/plan_follower.h"
#include "replay/issue/shared.h"
#include "replay/plans/earlier_plans.h"
#include "replay/plans/planner_process.h"
#include "replay/plans/planner_questions.h"
#include "replay/plans/recorded_calls.h"
#include "replay/plans/why_unplanned.h"

namespace reprise::replay {

class PlanSession {
 public:
  // `before`: of a context of this device that has ended, and with it the addresses of its plans: from now on memory is
  // managed on demand, or by the plan that the user gave. Iterations are counted on. nullptr: this is the first.
  PlanSession(const Config& config, Recorder* recorder, Shared* shared, PlanSession* before) noexcept;

  // Memory begins to be managed. `fixed_budget`: in bytes, 0: a percentage.
  void open(uint64_t fixed_budget) noexcept;
  // The context has ended.
  void close() noexcept;

  PlanFollower& follower() noexcept { return follower_; }
  // For each call of the program, when the follower has said what it is and before it is appended. Cheap while nothing
  // changes.
  void after_step(const FollowedCall& step, uint64_t sequence) noexcept;
  // The call was appended.
  void allocated(const AllocateCall& call, CUdeviceptr address) noexcept;
  void freed(uint64_t allocation) noexcept;

  // At the end of the run, or of the first context: what has not been said where it was decided.
  void say_why_unplanned() noexcept;
  const WhyUnplanned& why() const noexcept { return why_; }

 private:
  enum class Phase : uint8_t { watching, fits, left_out, stopped };

  bool has_plans() noexcept { return follower_.repetition().has_plans(); }
  void load_given(uint64_t fixed_budget) noexcept;
  void look_at_planner(bool repeats, uint64_t sequence) noexcept;
  void take_answer(PlanState state, uint64_t sequence) noexcept;
  void ask(const Growth* outgrown) noexcept;
  void take_plan(uint64_t sequence) noexcept;
  void no_plan_of_it() noexcept;
  void plan_impossible() noexcept;
  bool raise_to_plan(uint64_t needed) noexcept;
  void no_room_for_plan(uint64_t needed) noexcept;
  void leave_out_loop(uint64_t loop) noexcept;
  void plan_again(uint64_t sequence) noexcept;
  void stop(bool keep_recording) noexcept;
  void grown() noexcept;
  void on_demand(const WhyUnplanned::Word& cause, const std::string& reason) noexcept;

  const Config& config_;
  Recorder* const recorder_;
  Shared& shared_;
  PlanFollower follower_;
  PlannerProcess planner_;
  RecordedCalls recording_;
  EarlierPlans earlier_;
  PlannerQuestions questions_;
  WhyUnplanned why_;
  Phase phase_ = Phase::watching;
  const bool is_first_;
  bool told_audited_ = false;
  uint32_t plan_count_ = 0;  // in this context
  struct Asked {
    uint64_t budget = 0;  // bytes, and as much of it as the device had room for
    uint64_t with_room = 0;
    uint64_t wanted = 0;  // that a plan takes, when the budget had less; else 0
    uint64_t at_ns = 0;
    std::string plan_path;
    std::optional<uint32_t> plan;        // that it has led to
    bool loosely = false;                // what repeats, but for the order of frees and sizes
    std::optional<uint32_t> instead_of;  // the plan that was left for other sizes
  } asked_;                              // the planner, last
};

}  // namespace reprise::replay
