// The TaskGraph: one iteration of a program as ops, tensors and the data edges between them, without any memory limit.
// Built from a trace, read by policies, placement, bounds and verification. Plain data.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/base/indices.h"
#include "analyzer/iteration/call_stream.h"
#include "analyzer/iteration/finder.h"
#include "analyzer/machine/machine.h"
#include "analyzer/plan/plan.h"
#include "preload/facts/store.h"
#include "preload/footprint/footprint.h"
#include "preload/trace/status.h"

namespace reprise::analyzer {

// An access to memory that Reprise never moves: it orders ops, and that is all.
struct ForeignAccess {
  uint32_t resource = 0;  // index below TaskGraph::foreign_count
  bool writes = false;
};

struct GraphCall {
  plan::Call call;                 // as it will stand in the plan, but for its vertex
  std::vector<uint32_t> operands;  // chunked tensors that must be resident, ascending, each once
  std::vector<uint32_t> writes;    // those of them whose bytes it changes, so that copies of them are out of date
  // Those that count as written for the order alone: facts say that their bytes stay as they are. None is in `writes`.
  std::vector<uint32_t> unchanged;
  std::vector<ForeignAccess> foreign;
  uint32_t waited = 0;     // the program made this call after it had waited for the first `waited` calls to complete
  bool barrier = false;    // ordered after every earlier op and before every later one
  bool estimated = false;  // the duration was not recorded
  bool known = false;      // what it does is known from kernel facts
};

struct DataEdge {
  uint32_t from = 0;  // call indices
  uint32_t to = 0;
  plan::EdgeKind kind = plan::EdgeKind::data;
  uint8_t distance = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 of a defaulted <=> for a pointer
  auto operator<=>(const DataEdge&) const = default;
};

struct TaskGraph {
  std::string program;
  uint64_t program_hash = 0;
  uint64_t iteration_hash = 0;
  uint64_t chunk_bytes = 0;
  uint32_t devices = 1;               // tensors and calls say on which one they are
  std::vector<plan::Tensor> tensors;  // persistent ones first, in order of allocation; no homes yet
  ByCall<GraphCall> calls;
  std::vector<DataEdge> edges;  // sorted, each once
  // Of a graph that was reordered (analyzer/rewrite/reorder.h): call -> its place in the program; empty: it has the
  // program's order. A wait's `waited` calls are the same ones in both.
  ByCall<uint32_t> reordered_from;
  uint32_t foreign_count = 0;
  // The graph is for proven or audited safety, and some op may touch more than its accesses (plan::Call::audited).
  bool strays = false;
  // Each tensor that leaves is unmapped, and mapped anew when it comes (decision 0020).
  bool transfers_map = false;
  uint32_t waited_at_end = 0;  // of the iteration's calls, how many the program has waited for at its end
  uint64_t peak_bytes = 0;     // most bytes alive at once, as the program asked
  uint64_t peak_chunks = 0;    // likewise, of chunked tensors in chunks
  uint64_t compute_ns = 0;     // sum of the durations of ops; several devices: the largest of their sums
  uint64_t recompute_ns = 0;   // likewise, of ops that are recomputed; not in compute_ns
  uint32_t op_count = 0;
  uint32_t estimated_count = 0;  // ops without a recorded duration
  // Chunks that hold the small persistent tensors, which lie where the calls before the iteration have left them, among
  // places of others. Not known of graphs that come from elsewhere.
  std::optional<uint64_t> small_chunks;
};

// Smaller tensors share chunks.
inline uint32_t chunks_of(uint64_t size, uint64_t chunk_bytes) {
  return footprint::is_small(size, chunk_bytes) ? 0 : static_cast<uint32_t>(divide_up(size, chunk_bytes));
}
inline bool is_persistent(const plan::Tensor& tensor) { return tensor.allocate_call == kNone; }
inline bool is_alive(const plan::Tensor& tensor, CallIndex call) {
  return is_persistent(tensor) || (tensor.allocate_call < call && call < tensor.free_call);
}

struct KnownKernels {
  std::optional<facts::Store> facts;  // none: nothing is known, they read and write all
  bool code = true;                   // what their code proves counts
};

// With strict safety an op that reads a tensor counts as writing it; with audited safety, too, unless all are audited.
// `known`: what kernels do. Errors: unsupported (several devices).
Result<TaskGraph> build_task_graph(const CallStream& stream, const Iteration& iteration, uint64_t chunk_bytes,
                                   const Machine& machine, plan::Safety safety = plan::Safety::trusted,
                                   const KnownKernels& known = {});

// Fills operands, barriers, edges and totals of a graph whose tensors and calls are set. build_task_graph() ends with
// it; tests call it on graphs that they make by hand.
void complete_task_graph(TaskGraph& graph);

// One line per tensor, call and edge; stable.
std::string to_text(const TaskGraph& graph);
// For `dot`: ops as boxes, data edges with the distance as label.
std::string to_dot(const TaskGraph& graph);

}  // namespace reprise::analyzer
