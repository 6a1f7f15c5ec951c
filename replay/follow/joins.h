// Where the program joins a plan again behind a part that it left out. One call is little evidence: a join that did not
// last is not tried again. A part that is left out in one iteration after another makes a loop of its own, which may
// have a plan. Where sizes vary, almost any allocation may be the first of the part: a smaller one than ever that was
// taken for it before the plan was left is doubted when it comes again. Caller: the plan follower.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
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
  // The plan's call of any size is an allocation of this one. Does it rather lie behind a part?
  bool doubts(uint32_t plan, uint32_t call, uint64_t size) const {
    return !doubted_.empty() && doubted_.contains({plan, call, size});
  }
  // It was taken for the plan's call, as call `now` of the program.
  void taken(uint32_t plan, uint32_t call, uint64_t size, uint64_t now) {
    Taken& oldest = taken_[taken_count_++ % taken_.size()];
    if (oldest.at != 0 && now >= oldest.at + kLasts) lasted(oldest);
    oldest = {plan, call, size, now};
  }
  // The program left the plan at call `now`.
  void left(uint64_t now) {
    if (at_ != 0 && now < at_ + kLasts) failed_.insert(last_);
    for (Taken& taken : taken_) {
      if (taken.at != 0 && now < taken.at + kLasts && is_smaller_than_ever(taken)) {
        doubted_.insert({taken.plan, taken.call, taken.size});
      }
      taken.at = 0;
    }
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

  struct Taken {
    uint32_t plan = 0;
    uint32_t call = 0;
    uint64_t size = 0;
    uint64_t at = 0;  // 0: none
  };
  bool is_smaller_than_ever(const Taken& taken) const {
    const auto smallest = smallest_.find({taken.plan, taken.call});
    return smallest != smallest_.end() && taken.size < smallest->second;
  }
  void lasted(const Taken& taken) {
    uint64_t& smallest = smallest_.try_emplace({taken.plan, taken.call}, taken.size).first->second;
    smallest = std::min(smallest, taken.size);
  }

  RunLogWriter& log_;
  std::vector<Match> left_out_;
  std::set<Join> failed_;
  Join last_;
  uint64_t at_ = 0;  // the last one; 0: none
  uint64_t in_a_row_ = 0;
  uint64_t rests_until_ = 0;
  std::array<Taken, kLasts> taken_;  // a ring
  uint64_t taken_count_ = 0;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> smallest_;  // that lasted, by plan and call
  std::set<std::tuple<uint32_t, uint32_t, uint64_t>> doubted_;  // plan, call, size
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
