// What was used least recently leaves first: what demand paging does. Shared by policies, alone or behind a choice of
// their own.
#pragma once
#include "analyzer/schedule/walk.h"

namespace reprise::analyzer {

class LeastRecentlyUsed : public VictimChooser {
 public:
  std::vector<uint32_t> choose(const WalkState& state, uint64_t needed) override {
    return least_recently_used(state, needed);
  }
};

}  // namespace reprise::analyzer
