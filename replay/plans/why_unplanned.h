// Why memory is managed on demand: each reason once in the run log, and what the end of the run says of it. Caller:
// PlanSession, under the submission lock; the lines at the end.
#pragma once
#include <cstdint>
#include <string>

#include "replay/follow/plan_follower.h"
#include "replay/issue/shared.h"

namespace reprise::replay {

class WhyUnplanned {
 public:
  using Word = run_log::Word<run_log::on_demand::Tag>;

  // With what was said `before`, in a context that has ended.
  WhyUnplanned(Shared* shared, const WhyUnplanned* before) noexcept : shared_(*shared) {
    if (before != nullptr) said_ = before->said_;
  }

  // While there is no plan at all; the same reason once. false: it is not new.
  bool on_demand(const Word& cause, const std::string& reason) noexcept;
  // The planner has found no iteration yet.
  void not_yet(const std::string& message) noexcept;
  // Budget or room are too small: a plan takes `least_bytes`. Told at the end, when no call has been told that the
  // budget is too small for it.
  void too_little(const Word& cause, const std::string& reason, uint64_t least_bytes) noexcept;
  void forget() noexcept;
  void plan_taken() noexcept {
    ++said_.plans_taken;
    said_.too_little.clear();
  }
  uint64_t plans_taken() const noexcept { return said_.plans_taken; }  // in all contexts

  // At the end of a context: why each of the plans ruled nothing. `given`: the only one is the user's.
  void end(const PlanFollower& follower, uint32_t plans, bool given) noexcept;
  // The planner was asked `waited_ns` before the end, and did not come to an answer.
  void end_asked(uint64_t waited_ns) noexcept;
  // No plan was made, and the planner was not at work.
  void end_unplanned(uint64_t calls, bool recorded, bool looked_for) noexcept;

  // "" or what the program's last line has to say.
  const std::string& too_little() const noexcept { return said_.too_little; }
  const std::string& given_plan_idle() const noexcept { return said_.given_idle; }
  const std::string& how_it_gets_room() const noexcept { return said_.how_room; }

 private:
  std::string how_to_give_it_room() const noexcept;

  Shared& shared_;
  struct Reasons {
    std::string on_demand;  // as the run log says
    std::string too_little;
    std::string not_yet;         // what the planner lacked when it was asked last
    uint64_t not_yet_after = 0;  // iterations on demand that were over then
    std::string given_idle;      // the plan that the user gave ruled no iteration
    std::string how_room;        // ... which it lacked, but was of this program
    uint64_t plans_taken = 0;
  } said_;
};

}  // namespace reprise::replay
