#include "analyzer/loop/found_loop.h"

#include <utility>

#include "analyzer/loop/floating_frees.h"
#include "analyzer/loop/varying_sizes.h"

namespace reprise::analyzer {
namespace {

// Two steps of one size among others are a loop, too: that of all sizes is worth its larger tensors where it is so much
// more of the recording.
constexpr double kClearlyMore = 0.25;
constexpr uint32_t kMostCalls = 1'000'000;  // to make sizes even takes a copy of the recording

}  // namespace

FoundLoop find_loop_in(const CallStream& recorded, const FindIteration& find, const LeastSizes& sizes) {
  FoundLoop found = in_any_order(recorded, find);
  if (recorded.size() > kMostCalls || (found.coverage() + kClearlyMore >= 1 && sizes.empty())) return found;
  std::optional<FoundLoop> evened = with_even_sizes(recorded, find, sizes);
  const bool is_more = evened && evened->is_most() && evened->coverage() >= found.coverage() + kClearlyMore;
  return is_more || (evened && !sizes.empty()) ? std::move(*evened) : std::move(found);
}

}  // namespace reprise::analyzer
