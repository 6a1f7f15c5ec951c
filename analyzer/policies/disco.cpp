// DISCO and TURNIP: evict what is needed again furthest in the future (Belady), counted cyclically.
#include "analyzer/memgraph/walk.h"
#include "analyzer/policies/policy.h"

namespace reprise::analyzer {
namespace {

class FurthestNextUse : public VictimChooser {
 public:
  std::vector<uint32_t> choose(const WalkState& state, uint64_t needed) override {
    std::vector<uint32_t> victims;
    uint64_t have = 0;
    for (auto at = state.by_next_use.rbegin(); at != state.by_next_use.rend() && have < needed; ++at) {
      if (state.tensors[at->second].pinned) continue;
      victims.push_back(at->second);
      have += state.chunks(at->second);
    }
    spare_superfluous(state, needed, victims);
    return victims;
  }
};

class Disco : public Policy {
 public:
  std::string_view name() const override { return "disco"; }
  Schedule schedule(const PolicyInput& input) const override {
    FurthestNextUse chooser;
    return walk(input.graph, {input.capacity, input.carry_visitors}, chooser);
  }
};

}  // namespace

const Policy& disco_policy() {
  static const Disco& policy = *new Disco;
  return policy;
}

}  // namespace reprise::analyzer
