// What follows from tensors and calls: operands, barriers, data edges, totals.
#include <algorithm>

#include "analyzer/taskgraph/flow.h"
#include "analyzer/taskgraph/graph.h"

namespace reprise::analyzer {
namespace {

// Ops that may touch what the trace does not show keep their place in the program's order: those marked opaque, host
// functions, and launches without a single known pointer (they can only work on module globals).
bool is_barrier(const GraphCall& entry) {
  const plan::Call& call = entry.call;
  if (call.kind != plan::CallKind::op) return false;
  return (call.flags & trace::kOpOpaque) != 0 || call.op == trace::OpKind::host_function ||
         ((call.op == trace::OpKind::launch || call.op == trace::OpKind::graph_launch) && call.accesses.empty());
}

void sort_unique(std::vector<uint32_t>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

void set_operands(TaskGraph& graph, CallIndex index) {
  GraphCall& entry = graph.calls[index];
  entry.operands.clear();
  entry.writes.clear();
  entry.unchanged.clear();
  if (entry.call.kind != plan::CallKind::op) return;
  for (const plan::OpAccess& access : entry.call.accesses) {
    if (graph.tensors[access.tensor].chunk_count == 0) continue;
    entry.operands.push_back(access.tensor);
    if (writes(access)) (changes(access) ? entry.writes : entry.unchanged).push_back(access.tensor);
  }
  if ((entry.call.flags & trace::kOpOpaque) != 0) {
    for (uint32_t tensor = 0; tensor < graph.tensors.size(); ++tensor) {
      if (graph.tensors[tensor].chunk_count == 0 || !is_alive(graph.tensors[tensor], index)) continue;
      entry.operands.push_back(tensor);
      entry.writes.push_back(tensor);
    }
  }
  sort_unique(entry.operands);
  sort_unique(entry.writes);
  sort_unique(entry.unchanged);
  // It may have a tensor by two names.
  std::erase_if(entry.unchanged,
                [&](uint32_t tensor) { return std::binary_search(entry.writes.begin(), entry.writes.end(), tensor); });
}

void set_edges(TaskGraph& graph) {
  Flow flow(graph);
  std::vector<Dependency> before;
  graph.edges.clear();
  // The second round sees the first one's accesses: those are the edges of distance 1.
  for (uint32_t round = 0; round < 2; ++round) {
    for (CallIndex index{0}; index < graph.calls.size(); ++index) {
      const plan::Call& call = graph.calls[index].call;
      if (call.kind == plan::CallKind::free) flow.release(call.tensor);
      if (call.kind != plan::CallKind::op) continue;
      before.clear();
      flow.op(index, {index, round}, before);
      if (round == 0) continue;
      for (const Dependency& dependency : before) {
        graph.edges.push_back(
            {dependency.stamp.vertex, index, dependency.kind, static_cast<uint8_t>(round - dependency.stamp.round)});
      }
    }
  }
  std::sort(graph.edges.begin(), graph.edges.end());
  graph.edges.erase(std::unique(graph.edges.begin(), graph.edges.end()), graph.edges.end());
}

// Of several devices, those of the one with most.
struct DeviceTotals {
  uint64_t bytes = 0;
  uint64_t chunks = 0;
  uint64_t compute_ns = 0;
};

void set_totals(TaskGraph& graph) {
  std::vector<DeviceTotals> totals(graph.devices);
  graph.peak_bytes = graph.peak_chunks = graph.compute_ns = graph.recompute_ns = 0;
  graph.op_count = graph.estimated_count = 0;
  const auto record_peaks = [&](const DeviceTotals& total) {
    graph.peak_bytes = std::max(graph.peak_bytes, total.bytes);
    graph.peak_chunks = std::max(graph.peak_chunks, total.chunks);
  };
  for (const plan::Tensor& tensor : graph.tensors) {
    if (!is_persistent(tensor)) continue;
    totals[tensor.device].bytes += tensor.size;
    totals[tensor.device].chunks += tensor.chunk_count;
  }
  for (const DeviceTotals& total : totals) record_peaks(total);
  for (const GraphCall& entry : graph.calls) {
    if (entry.call.kind == plan::CallKind::op) {
      const bool between = entry.call.op == trace::OpKind::copy_peer && graph.devices > 1;
      if (entry.call.recompute_of != kNone) {
        graph.recompute_ns += entry.call.duration_ns;
      } else if (!between) {
        totals[entry.call.device].compute_ns += entry.call.duration_ns;
      }
      ++graph.op_count;
      if (entry.estimated) ++graph.estimated_count;
      continue;
    }
    if (entry.call.kind == plan::CallKind::late_free) continue;  // an inserted one follows
    const plan::Tensor& tensor = graph.tensors[entry.call.tensor];
    DeviceTotals& total = totals[tensor.device];
    const bool allocates =
        entry.call.kind == plan::CallKind::allocate || entry.call.kind == plan::CallKind::allocate_handover;
    total.bytes = allocates ? total.bytes + tensor.size : total.bytes - tensor.size;
    total.chunks = allocates ? total.chunks + tensor.chunk_count : total.chunks - tensor.chunk_count;
    record_peaks(total);
  }
  for (const DeviceTotals& total : totals) graph.compute_ns = std::max(graph.compute_ns, total.compute_ns);
}

}  // namespace

void complete_task_graph(TaskGraph& graph) {
  for (CallIndex index{0}; index < graph.calls.size(); ++index) {
    graph.calls[index].barrier = is_barrier(graph.calls[index]);
    set_operands(graph, index);
  }
  set_edges(graph);
  set_totals(graph);
}

}  // namespace reprise::analyzer
