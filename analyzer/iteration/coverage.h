// How much of a recording a stretch of calls is: recorded device time, or calls where no times were recorded. Caller:
// the iteration finder.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/iteration/call_stream.h"
#include "analyzer/iteration/words.h"

namespace reprise::analyzer {

class Coverage {
 public:
  // An op counts as those with its signature do in the middle, or, where none of them has a time, as those of its kind
  // on average: where a program is far ahead of its device, nothing of what repeats may be done. `by_calls`: times do
  // not count, which differ from run to run.
  explicit Coverage(const CallStream& stream, bool by_calls = false);

  bool timed() const { return timed_; }  // false: calls are counted
  uint64_t total() const { return before_.back(); }
  uint64_t of(const Run& run) const { return before_[run.end] - before_[run.begin]; }
  // Of runs in order, what several cover once.
  uint64_t of(const std::vector<Run>& runs) const;
  double share(uint64_t covered) const {
    return total() == 0 ? 0 : static_cast<double>(covered) / static_cast<double>(total());
  }

 private:
  std::vector<uint64_t> before_;  // call -> of all calls before it; one more at the end
  bool timed_ = false;
};

}  // namespace reprise::analyzer
