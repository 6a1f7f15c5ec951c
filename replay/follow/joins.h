// Where the program joins a plan again behind a part that it left out. One call is little evidence: a join that did not
// last is not tried again. A part that is left out in one iteration after another makes a loop of its own, which may
// have a plan. Caller: the plan follower.
#pragma once
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "replay/base/run_log.h"
#include "replay/plan/matcher.h"

namespace reprise::replay {

class Joins {
 public:
  explicit Joins(RunLogWriter* log) noexcept : log_(*log) {}

  // Call `now` of the program is not the next one of plan number `plan`, whose iterations have `calls` calls. Is it one
  // behind a part that may be left out? `same()` compares it. Returns the part's calls, until the next question;
  // nullptr: no.
  template <typename Same>
  const std::vector<Match>* join(Matcher* matcher, uint32_t plan, uint64_t now, uint64_t calls, Same same);
  // The program left the plan at call `now`.
  void left(uint64_t now) {
    if (at_ != 0 && now < at_ + kLasts) failed_.insert(last_);
  }

 private:
  static constexpr uint64_t kLasts = 8;       // calls
  static constexpr uint64_t kMostInARow = 8;  // iterations

  using Join = std::tuple<uint32_t, uint32_t, uint32_t>;  // plan, call that was expected, call that came
  bool may_be(const Join& join, uint64_t now) const {
    return !failed_.contains(join) && (join != last_ || now >= rests_until_);
  }
  void joined(const Join& join, uint64_t now, uint64_t calls) noexcept {
    in_a_row_ = join == last_ && now - at_ <= calls ? in_a_row_ + 1 : 1;
    if (in_a_row_ == kMostInARow) {
      rests_until_ = now + (kMostInARow + 1) * calls;
      in_a_row_ = 0;
    }
    last_ = join;
    at_ = now;
  }

  RunLogWriter& log_;
  std::vector<Match> left_out_;
  std::set<Join> failed_;
  Join last_;
  uint64_t at_ = 0;  // the last one; 0: none
  uint64_t in_a_row_ = 0;
  uint64_t rests_until_ = 0;
};

template <typename Same>
const std::vector<Match>* Joins::join(Matcher* matcher, uint32_t plan, uint64_t now, uint64_t calls, Same same) {
  const uint32_t from = matcher->next();
  const auto here = [&] {
    const Join join{plan, from, matcher->next()};
    if (!may_be(join, now) || !same()) return false;
    joined(join, now, calls);
    return true;
  };
  if (!matcher->leave_out(here, &left_out_)) return nullptr;
  RunLogLine line(run_log::left_out::line);
  line.add(run_log::left_out::iteration, matcher->iteration())
      .add(run_log::left_out::call, from)
      .add(run_log::left_out::calls, uint64_t{left_out_.size()});
  log_.write(line);
  return &left_out_;
}

}  // namespace reprise::replay
