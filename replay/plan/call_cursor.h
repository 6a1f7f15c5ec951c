// Where in a plan's iteration the program is. Frees may come before or behind their turn (free_windows.h): the cursor
// passes those that have come, and those that may come later. Callers: the matcher and the rehearsal.
//
//     plan      launch A   free X   launch B   free Y   launch C
//     program   launch A   launch B   free Y   free X   launch C        X passed before B, then taken
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "replay/plan/left_out.h"
#include "replay/plan/same_call.h"

namespace reprise::replay {

// Which call of which iteration was matched.
struct Match {
  uint32_t call = 0;
  uint64_t iteration = 0;
};

class CallCursor {
 public:
  void begin(const PlanIndex* plan_index, uint64_t iteration) noexcept;

  // To be called before an op or an allocation is compared: moves past frees, so that expected() is none that may come
  // later. Returns false if a free that was passed must come first; overdue() is that free.
  bool pass_frees() noexcept;
  // Undoes the last pass_frees(), because the call was not the expected one.
  void go_back() noexcept;
  void consume(Match* match) noexcept;
  // The expected call is one of a part that the program leaves out: adds it to *calls. A free of a tensor from before
  // may come later. False: it has to come.
  bool leave_out(LeftOutPart* part, std::vector<Match>* calls) noexcept;

  // The program frees the tensor for which `is_it` returns true. Returns false if the plan does not allow that now.
  template <typename IsIt>
  bool free(IsIt is_it, Match* match) noexcept;

  uint32_t next() const noexcept { return next_; }
  uint64_t iteration() const noexcept { return iteration_; }
  bool any_passed() const noexcept { return !passed_.empty(); }
  const plan::Call& expected() const noexcept { return index_->plan.calls[next_]; }
  // nullptr where the last pass_frees() returned true.
  const plan::Call* overdue() const noexcept;

 private:
  void advance() noexcept;
  void skip_early() noexcept;
  bool pass_one() noexcept;
  bool is_due(const Match& passed) const noexcept;

  static constexpr size_t kMostAhead = 1024;  // later frees that are searched for one that comes early

  const PlanIndex* index_ = nullptr;
  std::vector<Match> passed_;    // frees that have not come
  std::vector<uint64_t> early_;  // by call: one more than the iteration in which it last came before its turn
  uint32_t next_ = 0;
  uint64_t iteration_ = 0;
  uint32_t overdue_ = plan::kNone;
  struct Before {
    uint32_t next = 0;
    uint64_t iteration = 0;
    size_t passed = 0;
  } before_;  // pass_frees()
};

template <typename IsIt>
bool CallCursor::free(IsIt is_it, Match* match) noexcept {
  const std::vector<plan::Call>& calls = index_->plan.calls;
  overdue_ = plan::kNone;
  for (size_t i = 0; i < passed_.size(); ++i) {
    if (!is_it(calls[passed_[i].call].tensor)) continue;
    *match = passed_[i];
    passed_.erase(passed_.begin() + static_cast<std::ptrdiff_t>(i));
    return true;
  }
  const plan::Call& turn = expected();
  if (is_free(turn) && is_it(turn.tensor)) {
    consume(match);
    return true;
  }
  const std::vector<uint32_t>& frees = index_->early_frees;
  auto at = std::upper_bound(frees.begin(), frees.end(), next_);
  for (size_t seen = 0; at != frees.end() && seen < kMostAhead; ++at, ++seen) {
    const bool came = early_[*at] == iteration_ + 1;
    if (came || index_->windows[*at].behind >= next_ || !is_it(calls[*at].tensor)) continue;
    early_[*at] = iteration_ + 1;
    *match = {*at, iteration_};
    skip_early();
    return true;
  }
  // One that has to keep its turn, but for other frees.
  before_ = {next_, iteration_, passed_.size()};
  while (is_free(expected()) && !is_it(expected().tensor) && pass_one()) {
  }
  const bool found = is_free(expected()) && is_it(expected().tensor);
  if (found) {
    consume(match);
  } else {
    go_back();
  }
  return found;
}

}  // namespace reprise::replay
