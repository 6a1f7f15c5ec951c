#include "replay/plan/call_cursor.h"

namespace reprise::replay {

void CallCursor::begin(const PlanIndex* plan_index, uint64_t iteration) noexcept {
  index_ = plan_index;
  passed_.clear();
  passed_.reserve(plan_index->early_frees.size());  // each is passed at most once at a time
  early_.assign(plan_index->plan.calls.size(), 0);
  next_ = 0;
  iteration_ = iteration;
  overdue_ = plan::kNone;
}

void CallCursor::advance() noexcept {
  if (next_ == index_->last_call) ++iteration_;
  next_ = index_->next_call[next_];
}

// What is expected has not come.
void CallCursor::skip_early() noexcept {
  while (early_[next_] == iteration_ + 1) advance();
}

void CallCursor::consume(Match* match) noexcept {
  *match = {next_, iteration_};
  advance();
  skip_early();
}

bool CallCursor::leave_out(LeftOutPart* part, std::vector<Match>* calls) noexcept {
  if (is_free(expected()) && !part->has(expected().tensor)) return pass_one();
  if (!part->take(next_)) return false;
  calls->emplace_back();
  consume(&calls->back());
  return true;
}

// Does what is expected need the place of a tensor whose free was passed?
bool CallCursor::is_due(const Match& passed) const noexcept {
  return (iteration_ - passed.iteration) * index_->plan.calls.size() + next_ >= index_->windows[passed.call].until;
}

// false: the free that is expected may not come later.
bool CallCursor::pass_one() noexcept {
  if (index_->windows[next_].until == 0) return false;
  passed_.push_back({next_, iteration_});
  advance();
  skip_early();
  return true;
}

bool CallCursor::pass_frees() noexcept {
  before_ = {next_, iteration_, passed_.size()};
  while (is_free(expected()) && pass_one()) {
  }
  const auto due = std::find_if(passed_.begin(), passed_.end(), [&](const Match& passed) { return is_due(passed); });
  overdue_ = due == passed_.end() ? plan::kNone : due->call;
  return overdue_ == plan::kNone;
}

const plan::Call* CallCursor::overdue() const noexcept {
  return overdue_ == plan::kNone ? nullptr : &index_->plan.calls[overdue_];
}

void CallCursor::go_back() noexcept {
  next_ = before_.next;
  iteration_ = before_.iteration;
  passed_.resize(before_.passed);
}

}  // namespace reprise::replay
