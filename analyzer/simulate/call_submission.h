// The simulated program: it submits its calls in order, each when what it had waited for is complete. Used by
// simulate.cpp only.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/memgraph/build.h"

namespace reprise::analyzer {

// Position: a call in a round, that is round * number of calls + call.
class CallSubmission {
 public:
  CallSubmission(const TaskGraph& tasks, const std::vector<uint32_t>& vertex_of_call, uint32_t rounds)
      : tasks_(tasks),
        vertex_of_call_(vertex_of_call),
        calls_(static_cast<uint32_t>(tasks.calls.size())),
        done_(size_t{calls_} * rounds, 0) {}

  bool may_submit() {
    while (completed_ < done_.size() && done_[completed_] != 0) ++completed_;
    return submitted_ < done_.size() && waited_for() <= completed_;
  }
  // The call to be submitted next is the first one of its round.
  bool begins_round() const { return call_ == 0; }
  uint32_t round() const { return round_; }
  // Returns its vertex; kNone: it has none, and is complete at once.
  uint32_t submit() {
    const uint32_t vertex = vertex_of_call_[call_];
    if (vertex == kNone) done_[submitted_] = 1;
    ++submitted_;
    if (++call_ == calls_) {
      call_ = 0;
      ++round_;
    }
    return vertex;
  }
  void complete(uint32_t round, CallIndex call) { done_[size_t{round} * calls_ + call] = 1; }

 private:
  // By the call to be submitted: so many positions must be complete.
  size_t waited_for() const {
    const size_t here = tasks_.calls[call_].waited;
    if (here > 0) return size_t{round_} * calls_ + here;
    return round_ == 0 ? 0 : size_t{round_ - 1} * calls_ + tasks_.waited_at_end;
  }

  const TaskGraph& tasks_;
  const std::vector<uint32_t>& vertex_of_call_;
  const uint32_t calls_;
  std::vector<uint8_t> done_;  // position -> complete
  size_t submitted_ = 0;       // position, and the same as round and call:
  uint32_t round_ = 0;
  uint32_t call_ = 0;
  size_t completed_ = 0;  // all positions below are complete
};

}  // namespace reprise::analyzer
