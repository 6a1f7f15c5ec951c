#include "analyzer/to_plan.h"

#include <algorithm>
#include <utility>

namespace reprise::analyzer {

plan::Plan to_plan(const Workload& workload, uint64_t budget, Candidate candidate) {
  const TaskGraph& graph = workload.graph;
  plan::Plan plan;
  plan.program = graph.program;
  plan.program_hash = graph.program_hash;
  plan.iteration_hash = graph.iteration_hash;
  plan.policy = candidate.policy;
  plan.granularity = graph.granularity;
  plan.budget_bytes = budget;
  plan.reserved_bytes = workload.reserved_bytes;
  plan.chunk_count = candidate.layout.chunk_count;
  plan.device_chunks = candidate.layout.device_chunks;
  plan.slab_bytes = workload.slab_bytes;
  plan.peak_bytes = graph.peak_bytes;
  plan.minimum_bytes = workload.minimum_bytes;
  plan.compute_ns = graph.compute_ns;
  plan.predicted_ns = candidate.prediction.iteration_ns;
  plan.offload_bytes = candidate.schedule.offload_bytes;
  plan.reload_bytes = candidate.schedule.reload_bytes;
  plan.remap_count = candidate.layout.remap_count;
  plan.placements = std::move(candidate.layout.placements);
  plan.tensors = graph.tensors;
  for (uint32_t t = 0; t < plan.tensors.size(); ++t) plan.tensors[t].home = candidate.layout.homes[t];
  for (const Stay& stay : candidate.schedule.stays) {
    if (!stay.wraps && stay.arrival != Arrival::always) continue;
    plan.tensors[stay.tensor].resident_at_start = true;
    plan.tensors[stay.tensor].clean_at_start = stay.clean_at_start;
  }
  candidate.schedule = {};
  plan.order = order_of(graph, candidate.graph, candidate.prediction);
  const auto from_start = [](int64_t time) { return static_cast<uint64_t>(std::max<int64_t>(time, 0)); };
  plan.vertices.reserve(candidate.graph.vertices.size());
  for (uint32_t v = 0; v < candidate.graph.vertices.size(); ++v) {
    plan.vertices.push_back(std::move(candidate.graph.vertices[v].vertex));
    plan.vertices.back().predicted_start_ns = from_start(candidate.prediction.start_ns[v]);
    plan.vertices.back().predicted_end_ns = from_start(candidate.prediction.end_ns[v]);
  }
  candidate.graph.vertices = {};
  candidate.prediction = {};
  plan.calls.reserve(graph.calls.size());
  for (uint32_t c = 0; c < graph.calls.size(); ++c) {
    plan.calls.push_back(graph.calls[c].call);
    plan.calls.back().vertex = candidate.graph.vertex_of_call[c];
  }
  return plan;
}

}  // namespace reprise::analyzer
