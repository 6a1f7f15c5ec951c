#include "replay/plans/planner_questions.h"

#include <algorithm>

#include "analyzer/plan/least_share.h"

namespace reprise::replay {
namespace {

// The first plan is of what covers this much of the recorded device time, in % ...
constexpr uint32_t kLeastShareFirst = 50;
// ... until so many times the calls have been recorded by which there was only less. Then, and for the plans behind the
// first, of whatever is an iteration: the same kernel a few times in a row is no loop of the program.
constexpr uint64_t kPatience = 8;
// What begins where much is alive is planned when it has been recorded so many times more and still does.
constexpr uint32_t kMostEarlyAnswers = 3;

}  // namespace

bool PlannerQuestions::may_ask(uint64_t loop, uint64_t calls) noexcept {
  if (calls >= ask_all_again_at_) {
    asked_about_.clear();
    ask_all_again_at_ = 2 * calls;
  }
  if (std::count(asked_about_.begin(), asked_about_.end(), loop) >= kMostAboutOneLoop) return false;
  asked_about_.push_back(loop);
  return true;
}

void PlannerQuestions::answered_part(uint64_t calls) noexcept {
  if (part_since_ == 0) part_since_ = calls;
}

void PlannerQuestions::answered_plan() noexcept {
  fruitless_ = 0;
  forget_loops();  // the plan may be of what came before the loop that was asked about
}

// While there is no plan at all, that the loop may become an iteration is all that matters.
bool PlannerQuestions::answered_none(bool has_plans) noexcept {
  if (!has_plans) {
    forget_loops();
    return false;
  }
  if (++fruitless_ < kMostFruitless) return false;
  fruitless_ = 0;
  return true;
}

uint32_t PlannerQuestions::least_share(bool has_plans, uint64_t calls) const noexcept {
  const bool wait = !has_plans && (part_since_ == 0 || calls < kPatience * part_since_);
  return wait ? kLeastShareFirst : plan::kLeastShare;
}

bool PlannerQuestions::best_start(bool has_plans) const noexcept {
  return !has_plans && early_answers_ < kMostEarlyAnswers;
}

void PlannerQuestions::leave_out(uint64_t loop, uint64_t calls) noexcept {
  left_out_ = loop;
  look_again_at_ = 2 * calls;
}

bool PlannerQuestions::is_another(uint64_t loop, uint64_t calls) const noexcept {
  return left_out_ != 0 && calls >= look_again_at_ && loop != left_out_;
}

}  // namespace reprise::replay
