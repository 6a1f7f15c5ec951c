// Belady's choice of victims, counted cyclically: what is needed again last leaves. Shared by policies.
#pragma once
#include "analyzer/schedule/walk.h"

namespace reprise::analyzer {

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

}  // namespace reprise::analyzer
