#include "replay/memory/eviction.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace reprise::replay {

std::vector<ResidentTensor*> eviction_order(ManagedMemory& memory, uint64_t pinned, const NextUse& next_use) noexcept {
  std::vector<ResidentTensor*> found;
  const auto collect = [&](ResidentTensor& tensor) {
    if (tensor.is_resident() && tensor.pinned != pinned) found.push_back(&tensor);
  };
  memory.tensors.for_each(collect);
  const size_t tensors = found.size();
  memory.blocks.for_each(collect);
  memory.lanes.poll();
  // Is it a block, how near is its next use, is it in use, when was it used last. What is known of the future comes
  // before what would be there at once: a wait costs less than a copy both ways.
  using Rank = std::tuple<bool, uint64_t, bool, uint64_t>;
  std::vector<std::pair<Rank, ResidentTensor*>> ranked;
  for (size_t i = 0; i < found.size(); ++i) {
    ResidentTensor& one = *found[i];
    const uint64_t next = next_use.of == nullptr ? UINT64_MAX : next_use.of(next_use.user, one);
    ranked.emplace_back(Rank{i >= tensors, UINT64_MAX - next, !memory.lanes.known_complete(one.uses), one.last_use},
                        &one);
  }
  std::sort(ranked.begin(), ranked.end());
  std::transform(ranked.begin(), ranked.end(), found.begin(), [](const auto& one) { return one.second; });
  return found;
}

}  // namespace reprise::replay
