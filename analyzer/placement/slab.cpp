// Small transient tensors: one region, first fit over lifetimes.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "analyzer/placement/layout.h"

namespace reprise::analyzer {
namespace {

constexpr uint64_t kAlignment = 512;  // what cuMemAlloc guarantees is 256; PyTorch assumes 512

// Bytes from zero to an end, with holes. Holes are found by size and by place, for there may be many thousands. What is
// taken never lies over a chunk's end: where no plan is in force the region moves a chunk at a time (replay/memory/
// blocks.h), by the address at which a tensor begins.
class Region {
 public:
  explicit Region(uint64_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}

  // The lowest place.
  uint64_t take(uint64_t bytes) {
    uint64_t at = within_a_chunk(end_, bytes);
    uint64_t hole = kNoHole;
    for (auto sized = by_size_.lower_bound(bytes); sized != by_size_.end(); ++sized) {
      for (const uint64_t begin : sized->second) {
        const uint64_t place = within_a_chunk(begin, bytes);
        if (place >= at) break;
        if (place + bytes > begin + sized->first) continue;
        at = place;
        hole = begin;
        break;
      }
    }
    const uint64_t begin = hole == kNoHole ? end_ : hole;
    if (hole == kNoHole) {
      end_ = at + bytes;
      size_ = std::max(size_, end_);
    } else {
      const uint64_t end = holes_.at(hole);
      remove_hole(hole);
      if (end > at + bytes) add_hole(at + bytes, end);
    }
    if (at > begin) add_hole(begin, at);
    return at;
  }
  void give(uint64_t begin, uint64_t bytes) {
    uint64_t end = begin + bytes;
    if (const auto behind = holes_.find(end); behind != holes_.end()) {
      end = behind->second;
      remove_hole(behind->first);
    }
    if (const auto next = holes_.lower_bound(begin); next != holes_.begin() && std::prev(next)->second == begin) {
      begin = std::prev(next)->first;
      remove_hole(begin);
    }
    if (end == end_) {
      end_ = begin;
    } else {
      add_hole(begin, end);
    }
  }
  uint64_t size() const { return size_; }

 private:
  static constexpr uint64_t kNoHole = UINT64_MAX;

  uint64_t within_a_chunk(uint64_t begin, uint64_t bytes) const {
    const uint64_t next = (begin / chunk_bytes_ + 1) * chunk_bytes_;
    return begin + bytes > next ? next : begin;
  }
  void add_hole(uint64_t begin, uint64_t end) {
    holes_[begin] = end;
    by_size_[end - begin].insert(begin);
  }
  void remove_hole(uint64_t begin) {
    const auto hole = holes_.find(begin);
    const auto sized = by_size_.find(hole->second - begin);
    sized->second.erase(begin);
    if (sized->second.empty()) by_size_.erase(sized);
    holes_.erase(hole);
  }

  const uint64_t chunk_bytes_;
  std::map<uint64_t, uint64_t> holes_;              // begin -> end
  std::map<uint64_t, std::set<uint64_t>> by_size_;  // size -> beginnings
  uint64_t end_ = 0;                                // of the bytes in use
  uint64_t size_ = 0;                               // highest end so far
};

}  // namespace

uint64_t place_small_tensors(TaskGraph& graph) {
  std::vector<Region> regions(graph.devices, Region(graph.chunk_bytes));
  for (const GraphCall& entry : graph.calls) {
    if (entry.call.kind == plan::CallKind::op || entry.call.kind == plan::CallKind::late_free) continue;
    plan::Tensor& tensor = graph.tensors[entry.call.tensor];
    if (tensor.chunk_count != 0 || is_persistent(tensor) || tensor.size == 0) continue;
    Region& region = regions[tensor.device];
    if (entry.call.kind == plan::CallKind::allocate) {
      tensor.slab_offset = region.take(round_up(tensor.size, kAlignment));
    } else {
      region.give(tensor.slab_offset, round_up(tensor.size, kAlignment));
    }
  }
  uint64_t size = 0;
  for (const Region& region : regions) size = std::max(size, region.size());
  return size;
}

}  // namespace reprise::analyzer
