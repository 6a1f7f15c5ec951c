// Which ops run again when candidates are recomputed, before which calls, and what they read there: what
// with_recompute() of analyzer/rewrite does, for all sets of candidates at once. Called by fluid.cpp.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "analyzer/taskgraph/graph.h"
#include "analyzer/taskgraph/recompute_candidates.h"
#include "analyzer/taskgraph/recompute_uses.h"

namespace reprise::analyzer {

// A candidate is recomputed just before its call `before`, with others that it needs; or earlier, where one that is
// recomputed, too, reads what it makes. Candidates are indices here, places are calls before which ops run again.
class RecomputePlaces {
 public:
  // `graph` and `candidates` have to outlive this.
  RecomputePlaces(const TaskGraph& graph, const std::vector<RecomputeCandidate>& candidates);

  // An op runs again with a candidate; not where that runs at `not_until` or earlier: what it makes is not freed yet.
  struct Cause {
    uint32_t candidate = 0;
    CallIndex not_until{kNone};
  };
  struct RepeatedOp {
    std::vector<Cause> causes;
    std::vector<CallIndex> places;  // ascending
  };
  const std::map<CallIndex, RepeatedOp>& all() const { return repeats_; }  // by call

  // Where a candidate may run, ascending.
  const std::vector<CallIndex>& of(uint32_t candidate) const { return places_[candidate]; }
  // The op that may run again and makes a tensor, or kNone; and the candidate that it is, or kNone.
  CallIndex maker(uint32_t tensor) const { return maker_[tensor]; }
  uint32_t candidate(CallIndex call) const { return candidate_of_[call]; }
  uint32_t candidate_making(uint32_t tensor) const {
    return maker_[tensor] == kNone ? kNone : candidate_of_[maker_[tensor]];
  }
  // Is the place within the time for which what a candidate makes is dropped?
  bool is_dropped_at(uint32_t tensor, CallIndex place) const;
  // Ops that may run again and read a tensor, but do not change it.
  const std::vector<CallIndex>& readers(uint32_t tensor) const { return readers_[tensor]; }

 private:
  void find_makers();
  void find_places();
  void find_causes();

  const TaskGraph& graph_;
  const std::vector<RecomputeCandidate>& candidates_;
  const RecomputeUses uses_;
  std::vector<CallIndex> maker_;
  ByCall<uint32_t> candidate_of_;
  std::vector<std::vector<CallIndex>> readers_;
  std::vector<std::vector<CallIndex>> places_;
  std::map<CallIndex, RepeatedOp> repeats_;
};

}  // namespace reprise::analyzer
