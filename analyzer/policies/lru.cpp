// Least recently used, what demand paging does: a baseline.
#include <algorithm>

#include "analyzer/memgraph/walk.h"
#include "analyzer/policies/policy.h"

namespace reprise::analyzer {
namespace {

class LeastRecentlyUsed : public VictimChooser {
 public:
  std::vector<uint32_t> choose(const WalkState& state, uint64_t needed) override {
    std::vector<std::pair<uint64_t, uint32_t>> by_last_use;
    for (const auto& [next, tensor] : state.by_next_use) {
      const WalkState::Tensor& entry = state.tensors[tensor];
      if (!entry.pinned) by_last_use.emplace_back(entry.last == kNone ? 0 : uint64_t{entry.last} + 1, tensor);
    }
    std::sort(by_last_use.begin(), by_last_use.end());
    std::vector<uint32_t> victims;
    uint64_t have = 0;
    for (const auto& [last, tensor] : by_last_use) {
      if (have >= needed) break;
      victims.push_back(tensor);
      have += state.chunks(tensor);
    }
    return victims;
  }
};

class Lru : public Policy {
 public:
  std::string_view name() const override { return "lru"; }
  Schedule schedule(const PolicyInput& input) const override {
    LeastRecentlyUsed chooser;
    return walk(input.graph, {input.capacity, input.carry_visitors}, chooser);
  }
};

}  // namespace

const Policy& lru_policy() {
  static const Lru& policy = *new Lru;
  return policy;
}

}  // namespace reprise::analyzer
