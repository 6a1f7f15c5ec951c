// Small transient tensors: one region, first fit over lifetimes.
#include "preload/footprint/slab.h"

#include <algorithm>
#include <vector>

#include "analyzer/placement/layout.h"

namespace reprise::analyzer {

// By the rule of the addresses that the replay hands out itself: where no plan is in force the region moves a chunk at
// a time (replay/memory/tensors.h), with the tensors that begin in it, so none may lie over a chunk's end.
uint64_t place_small_tensors(TaskGraph& graph) {
  using footprint::Slab;
  const uint64_t block = Slab::padded(graph.chunk_bytes);
  std::vector<Slab> regions(graph.devices);
  // From `block` on: to Slab, the address 0 is none.
  for (Slab& region : regions) region.reset(block, UINT64_MAX / 2, block);
  uint64_t size = 0;
  // Where sizes vary, the next one of what is handed over may need more than the place of the one before.
  for (const GraphCall& entry : graph.calls) {
    if (entry.call.kind != plan::CallKind::allocate_handover || (entry.call.flags & plan::kCallAnySize) == 0) continue;
    plan::Tensor& tensor = graph.tensors[entry.call.tensor];
    if (tensor.chunk_count != 0 || tensor.size == 0) continue;
    tensor.slab_offset = regions[tensor.device].allocate(tensor.size) - block;
    size = std::max(size, tensor.slab_offset + Slab::padded(tensor.size));
  }
  for (const GraphCall& entry : graph.calls) {
    if (entry.call.kind == plan::CallKind::op || entry.call.kind == plan::CallKind::late_free) continue;
    plan::Tensor& tensor = graph.tensors[entry.call.tensor];
    if (tensor.chunk_count != 0 || is_persistent(tensor) || tensor.size == 0) continue;
    Slab& region = regions[tensor.device];
    if (entry.call.kind == plan::CallKind::allocate) {
      tensor.slab_offset = region.allocate(tensor.size) - block;
      size = std::max(size, tensor.slab_offset + Slab::padded(tensor.size));
    } else {
      region.release(block + tensor.slab_offset, tensor.size);
    }
  }
  return size;
}

}  // namespace reprise::analyzer
