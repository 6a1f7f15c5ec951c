// Which ops use which tensor, as the window and the chain bound look at it: ops counted from 0, and of the dispatcher
// only that it starts no op more than a window ahead of one that has not started. Used by the bounds only.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/taskgraph/graph.h"

namespace reprise::analyzer {

// An op starts only when all ops this many places before it have started (SimulationOptions::window).
inline constexpr uint32_t kDispatchWindow = 64;

// A use by an op that computes.
struct Use {
  OpIndex op{0};
  bool fresh = false;   // needs nothing of what was there: the first touch of new memory, or nothing is read
  bool writes = false;  // the whole tensor
};

struct Uses {
  ByOp<CallIndex> call_of_op;
  ByCall<OpIndex> op_of_call;  // kNone for allocations and frees
  ByOp<uint64_t> compute_ns;   // 0 for copies, which run on the links
  ByOp<uint8_t> computes;
  std::vector<std::vector<Use>> of_tensor;  // of chunked ones, by ops that compute
  // Tensor: what it holds may be there since a copy of the program, which runs beside ops that compute and takes the
  // time that it took, not that of our links: one writes it, or is the first to touch it.
  std::vector<uint8_t> by_copies;
};
Uses uses_of(const TaskGraph& graph);

// What a tensor takes of the memory for chunks. Less than its chunks: a bound may leave the padding of the last one
// out.
inline uint64_t bound_bytes(const plan::Tensor& tensor) { return tensor.chunk_count == 0 ? 0 : tensor.size; }

}  // namespace reprise::analyzer
