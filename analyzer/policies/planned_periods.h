// A schedule from a list of inactive periods that are to be spent away from the device, each with the times at which
// its copies are reckoned to end and begin. Called by policies that choose periods instead of victims: G10, reprise.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/policies/policy.h"
#include "analyzer/schedule/walk.h"

namespace reprise::analyzer {

// Between two uses of a tensor. Ops of the next iteration go on counting.
struct AwayPeriod {
  uint32_t tensor = kNone;
  OpIndex begin;  // the op behind the use before
  OpIndex end;    // the op of the use behind
  Tier tier = Tier::host;
  OpIndex offload_end =
      {};  // the op during which the offload ends; its memory stays its own until then, if there is room
  OpIndex reload_begin = {};  // the op at which the reload begins, if there is room
};

// What still does not fit is evicted on demand: `fallback` chooses.
Schedule schedule_periods(const PolicyInput& input, const std::vector<AwayPeriod>& periods,
                          const ByOp<CallIndex>& call_of_op, VictimChooser& fallback);

}  // namespace reprise::analyzer
