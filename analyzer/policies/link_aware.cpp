// Our refinement of furthest next use: prefer victims whose copy to the host could be complete by now, in a gap of the
// simulated link that lies between their last use and now; among those, the one needed again last. Where there is none,
// the one whose copy would be late by the least.
#include <algorithm>
#include <tuple>

#include "analyzer/policies/policy.h"
#include "analyzer/schedule/busy_times.h"
#include "analyzer/schedule/walk.h"

namespace reprise::analyzer {
namespace {

constexpr size_t kLooks = 4'000'000;  // at options, for all ops together
constexpr size_t kFewestLooks = 64;   // for one op

struct Option {
  uint32_t tensor = 0;
  int64_t lateness = 0;
  uint64_t next_use = 0;
};

class LinkAware : public VictimChooser {
 public:
  LinkAware(const TaskGraph& graph, const Machine& machine)
      : machine_(machine), most_looks_(std::max(kFewestLooks, kLooks / std::max(graph.op_count, 1u))) {}
  void start(const WalkState& /*state*/) override { link_.clear(); }

  std::vector<uint32_t> choose(const WalkState& state, uint64_t needed) override {
    std::vector<uint32_t> victims;
    uint64_t have = 0;
    // A heap, for few of them are taken.
    std::vector<Option> options = options_for(state, needed);
    const auto later = [](const Option& a, const Option& b) {
      return std::tuple(a.lateness, b.next_use, a.tensor) > std::tuple(b.lateness, a.next_use, b.tensor);
    };
    std::make_heap(options.begin(), options.end(), later);
    for (; have < needed && !options.empty(); options.pop_back()) {
      std::pop_heap(options.begin(), options.end(), later);
      victims.push_back(options.back().tensor);
      have += state.chunks(options.back().tensor);
    }
    std::stable_sort(victims.begin(), victims.end(),
                     [&](uint32_t a, uint32_t b) { return state.tensors[a].next_use > state.tensors[b].next_use; });
    spare_superfluous(state, needed, victims);
    for (const uint32_t victim : victims) {
      const int64_t length = copy_length(state, victim);
      link_.book(link_.fit(last_use(state, victim), length), length);
    }
    return victims;
  }

 private:
  // Each option is rated on its own, as if nothing else were evicted for this op: one look at the link each. Those that
  // are needed last come first; when enough of them are in time, the others cannot win, and when many have been looked
  // at, they may not.
  std::vector<Option> options_for(const WalkState& state, uint64_t needed) const {
    std::vector<Option> options;
    const auto now = static_cast<int64_t>(state.start_ns[state.call]);
    uint64_t in_time = 0;
    uint64_t chunks = 0;
    uint64_t next_use = kNever;
    for (auto at = state.by_next_use.rbegin(); at != state.by_next_use.rend(); next_use = at++->first) {
      const uint32_t tensor = at->second;
      const bool tired = chunks >= needed && options.size() >= most_looks_;
      if (at->first != next_use && (in_time >= needed || tired)) break;
      if (state.tensors[tensor].pinned) continue;
      const int64_t length = copy_length(state, tensor);
      const int64_t done = length == 0 ? 0 : link_.fit(last_use(state, tensor), length) + length;
      options.push_back({tensor, done > now ? done - now : 0, at->first});
      chunks += state.chunks(tensor);
      if (done <= now) in_time += state.chunks(tensor);
    }
    return options;
  }

  int64_t copy_length(const WalkState& state, uint32_t tensor) const {
    if (state.tensors[tensor].host != HostCopy::stale) return 0;
    const uint64_t size = state.graph->tensors[tensor].size;
    return static_cast<int64_t>(copy_ns(size, machine_.d2h_bytes_per_s, machine_.latency_ns));
  }
  static int64_t last_use(const WalkState& state, uint32_t tensor) {
    const uint32_t last = state.tensors[tensor].last;
    return last == kNone ? 0 : static_cast<int64_t>(state.start_ns[last + 1]);
  }

  const Machine& machine_;
  size_t most_looks_;  // at options, for one op
  BusyTimes link_;     // to the host
};

class LinkAwarePolicy : public Policy {
 public:
  std::string_view name() const override { return "link_aware"; }
  Schedule schedule(const PolicyInput& input) const override {
    LinkAware chooser(input.graph, input.machine);
    return walk(input.graph, {input.capacity, input.carry_visitors}, chooser);
  }
};

}  // namespace

const Policy& link_aware_policy() {
  static const LinkAwarePolicy& policy = *new LinkAwarePolicy;
  return policy;
}

}  // namespace reprise::analyzer
