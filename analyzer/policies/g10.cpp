// G10 (MICRO 2023): tensors leave for long inactive periods, those that relieve the most pressure first, to the SSD or,
// where its link is crowded, to the host; what still does not fit is evicted on demand, least recently used first. The
// way back begins as early as there is room (g10), or at the latest safe time (g10_late).
#include <algorithm>
#include <map>

#include "analyzer/memgraph/walk.h"
#include "analyzer/policies/g10_periods.h"
#include "analyzer/policies/policy.h"

namespace reprise::analyzer {
namespace {

using Use = std::pair<uint32_t, uint32_t>;  // call, tensor

class PlannedEviction : public VictimChooser {
 public:
  explicit PlannedEviction(const G10Plan& plan) {
    for (const G10Period& period : plan.periods) {
      leaving_[plan.call_of_op[period.begin - 1]].push_back({period.tensor, period.tier});
    }
  }
  std::vector<Leaving> leaving(const WalkState& state) override {
    const auto found = leaving_.find(state.call);
    return found == leaving_.end() ? std::vector<Leaving>{} : found->second;
  }
  std::vector<uint32_t> choose(const WalkState& state, uint64_t needed) override {
    return least_recently_used(state, needed);
  }

 private:
  std::map<uint32_t, std::vector<Leaving>> leaving_;  // behind this call
};

// Fits stays to the times of the plan, as long as there is room: they last until the way out is done, so that nobody
// takes their memory before, and the way back begins ahead of need.
class Timing {
 public:
  Timing(const TaskGraph& graph, const G10Plan& plan, uint64_t capacity, bool eager)
      : graph_(graph), capacity_(capacity), occupied_(graph.calls.size(), 0) {
    const auto ops = static_cast<uint32_t>(plan.call_of_op.size());
    for (const G10Period& period : plan.periods) {
      // Not beyond the iteration's start: what comes in there is wanted soon, and dataflow brings it when it can.
      const uint32_t back = period.end >= ops ? ops : 0;
      const uint32_t from = std::max(eager ? period.eager : period.fetch, back) - back;
      wanted_[{plan.call_of_op[period.end - back], period.tensor}] = plan.call_of_op[from];
      const uint32_t gone = std::min(period.gone, ops - 1);
      gone_[{plan.call_of_op[period.begin - 1] + 1, period.tensor}] = plan.call_of_op[gone] + 1;
    }
  }

  void apply(Schedule& schedule) {
    std::vector<uint32_t> ends(graph_.tensors.size(), 0);  // of the tensor's stay before
    for (const Stay& stay : schedule.stays) {
      if (stay.arrival == Arrival::always || stay.wraps) {
        occupy(stay, 0, stay.wraps ? stay.end : static_cast<uint32_t>(occupied_.size()));
        ends[stay.tensor] = stay.end;
      }
      if (stay.arrival == Arrival::always) continue;
      occupy(stay, stay.begin, stay.wraps ? static_cast<uint32_t>(occupied_.size()) : stay.end);
    }
    for (Stay& stay : schedule.stays) {
      const auto done = gone_.find({stay.end, stay.tensor});
      if (stay.departure == Departure::offload && done != gone_.end()) prolong(stay, done->second);
    }
    for (Stay& stay : schedule.stays) {
      const auto wish = wanted_.find({stay.begin, stay.tensor});
      const bool moves = stay.arrival == Arrival::reload && wish != wanted_.end();
      const uint32_t before = ends[stay.tensor];
      if (!stay.wraps) ends[stay.tensor] = stay.end;
      if (moves) move(stay, std::max(wish->second, before));
    }
    std::sort(schedule.stays.begin(), schedule.stays.end(),
              [](const Stay& a, const Stay& b) { return std::pair(a.begin, a.tensor) < std::pair(b.begin, b.tensor); });
  }

 private:
  void occupy(const Stay& stay, uint32_t begin, uint32_t end) {
    for (uint32_t call = begin; call < end; ++call) occupied_[call] += graph_.tensors[stay.tensor].chunk_count;
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
  std::vector<uint64_t> occupied_;  // call -> chunks
  std::map<Use, uint32_t> gone_;    // the end of a stay -> the call by which its way out is done
  std::map<Use, uint32_t> wanted_;  // a use that ends a period -> the call at which its way back is to begin
};

class G10 : public Policy {
 public:
  explicit G10(bool eager) : eager_(eager) {}
  std::string_view name() const override { return eager_ ? "g10" : "g10_late"; }
  Schedule schedule(const PolicyInput& input) const override {
    const G10Plan plan = plan_g10(input.graph, input.machine, input.capacity);
    PlannedEviction chooser(plan);
    Schedule schedule = walk(input.graph, {input.capacity, input.carry_visitors}, chooser);
    Timing(input.graph, plan, input.capacity, eager_).apply(schedule);
    return schedule;
  }

 private:
  bool eager_;
};

}  // namespace

const Policy& g10_policy() {
  static const G10& policy = *new G10(true);
  return policy;
}

const Policy& g10_late_policy() {
  static const G10& policy = *new G10(false);
  return policy;
}

}  // namespace reprise::analyzer
