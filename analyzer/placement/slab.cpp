// Small transient tensors: one region, first fit over lifetimes.
#include <algorithm>
#include <map>
#include <vector>

#include "analyzer/placement/layout.h"

namespace reprise::analyzer {
namespace {

constexpr uint64_t kAlignment = 512;  // what cuMemAlloc guarantees is 256; PyTorch assumes 512

// The bytes in use, as ranges by their start.
class Region {
 public:
  uint64_t take(uint64_t bytes) {
    uint64_t at = 0;
    for (const auto& [begin, end] : used_) {
      if (begin - at >= bytes) break;
      at = end;
    }
    used_[at] = at + bytes;
    size_ = std::max(size_, at + bytes);
    return at;
  }
  void give(uint64_t at) { used_.erase(at); }
  uint64_t size() const { return size_; }

 private:
  std::map<uint64_t, uint64_t> used_;
  uint64_t size_ = 0;
};

}  // namespace

uint64_t place_small_tensors(TaskGraph& graph) {
  std::vector<Region> regions(graph.devices);
  for (const GraphCall& entry : graph.calls) {
    if (entry.call.kind == plan::CallKind::op) continue;
    plan::Tensor& tensor = graph.tensors[entry.call.tensor];
    if (tensor.chunk_count != 0 || is_persistent(tensor)) continue;
    Region& region = regions[tensor.device];
    if (entry.call.kind == plan::CallKind::allocate) {
      tensor.slab_offset = region.take(round_up(tensor.size, kAlignment));
    } else {
      region.give(tensor.slab_offset);
    }
  }
  uint64_t size = 0;
  for (const Region& region : regions) size = std::max(size, region.size());
  return size;
}

}  // namespace reprise::analyzer
