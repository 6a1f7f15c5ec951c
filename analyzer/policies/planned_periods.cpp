#include "analyzer/policies/planned_periods.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace reprise::analyzer {
namespace {

using TensorAtCall = std::pair<uint32_t, uint32_t>;  // call, tensor

class PlannedEviction : public VictimChooser {
 public:
  PlannedEviction(const std::vector<AwayPeriod>& periods, const ByOp<CallIndex>& call_of_op, VictimChooser& fallback)
      : fallback_(fallback) {
    for (const AwayPeriod& period : periods) {
      leaving_[call_of_op[(period.begin - 1) % call_of_op.size()]].push_back({period.tensor, period.tier});
    }
  }
  void start(const WalkState& state) override { fallback_.start(state); }
  std::vector<Leaving> leaving(const WalkState& state) override {
    const auto found = leaving_.find(state.call);
    return found == leaving_.end() ? std::vector<Leaving>{} : found->second;
  }
  std::vector<uint32_t> choose(const WalkState& state, uint64_t needed) override {
    return fallback_.choose(state, needed);
  }

 private:
  VictimChooser& fallback_;
  std::map<uint32_t, std::vector<Leaving>> leaving_;  // behind this call
};

// Fits stays to the times of the plan, as long as there is room: a stay lasts until its offload is done, so that no
// other tensor takes its memory before, and the reload begins ahead of need.
class PeriodTiming {
 public:
  PeriodTiming(const TaskGraph& graph, const std::vector<AwayPeriod>& periods, const ByOp<CallIndex>& call_of_op,
               uint64_t capacity)
      : graph_(graph), capacity_(capacity), occupied_(graph.calls.size(), 0) {
    const auto ops = static_cast<uint32_t>(call_of_op.size());
    for (const AwayPeriod& period : periods) {
      // Not beyond the iteration's start: what comes in there is wanted soon, and dataflow brings it when it can.
      const uint32_t back = period.end >= ops ? ops : 0;
      const OpIndex from = std::max(period.reload_begin, OpIndex{back}) - back;
      reload_begins_[{call_of_op[period.end - back], period.tensor}] = call_of_op[from];
      const OpIndex last = std::min(period.offload_end, OpIndex{ops - 1});
      offload_ends_[{call_of_op[period.begin - 1] + 1, period.tensor}] = call_of_op[last] + 1;
    }
  }

  void apply(Schedule& schedule) {
    std::vector<uint32_t> ends(graph_.tensors.size(), 0);  // of the tensor's stay before
    count_occupied(schedule);
    for (const Stay& stay : schedule.stays) {
      if (stay.arrival == Arrival::always || stay.wraps) ends[stay.tensor] = stay.end;
    }
    for (Stay& stay : schedule.stays) {
      const auto done = offload_ends_.find({stay.end, stay.tensor});
      if (stay.departure == Departure::offload && done != offload_ends_.end()) prolong(stay, done->second);
    }
    for (Stay& stay : schedule.stays) {
      const auto wish = reload_begins_.find({stay.begin, stay.tensor});
      const bool moves = stay.arrival == Arrival::reload && wish != reload_begins_.end();
      const uint32_t before = ends[stay.tensor];
      if (!stay.wraps) ends[stay.tensor] = stay.end;
      if (moves) move(stay, std::max(wish->second, before));
    }
    sort_stays(schedule);
  }

 private:
  void count_occupied(const Schedule& schedule) {
    std::vector<uint64_t> change(occupied_.size() + 1, 0);
    for (const Stay& stay : schedule.stays) {
      const uint64_t chunks = graph_.tensors[stay.tensor].chunk_count;
      const bool always = stay.arrival == Arrival::always;
      change[always ? 0 : stay.begin] += chunks;
      change[always ? occupied_.size() : stay.end] -= chunks;
      if (stay.wraps) change[0] += chunks;
    }
    std::partial_sum(change.begin(), change.end() - 1, occupied_.begin());
  }
  void occupy(const Stay& stay, uint32_t begin, uint32_t end) {
    for (CallIndex call{begin}; call < end; ++call) occupied_[call] += graph_.tensors[stay.tensor].chunk_count;
  }
  void prolong(Stay& stay, uint32_t to) {
    const uint64_t chunks = graph_.tensors[stay.tensor].chunk_count;
    const uint32_t limit = stay.wraps ? std::min(to, stay.begin) : to;
    while (stay.end < limit && occupied_[stay.end] + chunks <= capacity_) occupied_[stay.end++] += chunks;
  }
  void move(Stay& stay, uint32_t to) {
    const uint64_t chunks = graph_.tensors[stay.tensor].chunk_count;
    uint32_t begin = stay.begin;
    for (uint32_t at = begin; at > to && occupied_[at - 1] + chunks <= capacity_; --at) {
      // Only before ops: what the program frees at a call is not free there yet.
      if (graph_.calls[at - 1].call.kind == plan::CallKind::op) begin = at - 1;
    }
    occupy(stay, begin, stay.begin);
    stay.begin = begin;
  }

  const TaskGraph& graph_;
  uint64_t capacity_;
  std::vector<uint64_t> occupied_;                 // call -> chunks
  std::map<TensorAtCall, uint32_t> offload_ends_;  // the end of a stay -> the call by which its offload is done
  std::map<TensorAtCall, uint32_t>
      reload_begins_;  // a use that ends a period -> the call at which its reload is to begin
};

}  // namespace

Schedule schedule_periods(const PolicyInput& input, const std::vector<AwayPeriod>& periods,
                          const ByOp<CallIndex>& call_of_op, VictimChooser& fallback) {
  PlannedEviction chooser(periods, call_of_op, fallback);
  Schedule schedule = walk(input.graph, {input.capacity, input.carry_visitors}, chooser);
  PeriodTiming(input.graph, periods, call_of_op, input.capacity).apply(schedule);
  return schedule;
}

}  // namespace reprise::analyzer
