#include "analyzer/planner/to_plan.h"

#include <algorithm>
#include <utility>

#include "analyzer/planner/workload.h"

namespace reprise::analyzer {

namespace {

// Calls in the program's order again, and everything that names a call.
void add_calls(const TaskGraph& graph, const MemGraph& mem_graph, plan::Plan& plan) {
  const auto place = [&](uint32_t call) {
    return call == kNone || graph.reordered_from.empty() ? call : graph.reordered_from[call];
  };
  plan.calls.resize(graph.calls.size());
  for (CallIndex c{0}; c < graph.calls.size(); ++c) {
    plan::Call& call = plan.calls[place(c)];
    call = graph.calls[c].call;
    call.vertex = mem_graph.vertex_of_call[c];
    call.recompute_of = place(call.recompute_of);
    call.waited = graph.calls[c].waited;
  }
  for (plan::Tensor& tensor : plan.tensors) {
    tensor.allocate_call = place(tensor.allocate_call);
    tensor.free_call = place(tensor.free_call);
  }
  for (plan::Vertex& vertex : plan.vertices) vertex.call = place(vertex.call);
}

// The program calls ahead of the device, and so it frees before what uses the tensor is done, even before the iteration
// has begun there. Memory is free behind both.
void delay_releases(plan::Plan& plan) {
  const auto delay = [&](uint32_t tensor, uint64_t until) {
    const plan::Tensor& freed = plan.tensors[tensor];
    if (is_persistent(freed) || freed.free_call == kNone || plan.calls[freed.free_call].vertex == kNone) return;
    plan::Vertex& release = plan.vertices[plan.calls[freed.free_call].vertex];
    release.predicted_start_ns = std::max(release.predicted_start_ns, until);
    release.predicted_end_ns = std::max(release.predicted_end_ns, until);
  };
  for (uint32_t c = 0; c < plan.calls.size(); ++c) {
    const plan::Call& call = plan.calls[c];
    if (call.kind != plan::CallKind::op || call.vertex == kNone) continue;
    const uint64_t until = plan.vertices[call.vertex].predicted_end_ns;
    for (const plan::OpAccess& access : call.accesses) delay(access.tensor, until);
    if ((call.flags & trace::kOpOpaque) == 0) continue;
    for (uint32_t tensor = 0; tensor < plan.tensors.size(); ++tensor) {
      if (is_alive(plan.tensors[tensor], CallIndex(c))) delay(tensor, until);
    }
  }
}

// From the iteration's start; what happens before it stands at it.
void set_predicted(const Prediction& prediction, plan::Plan& plan) {
  const auto from_start = [](int64_t time) { return static_cast<uint64_t>(std::max<int64_t>(time, 0)); };
  for (uint32_t v = 0; v < plan.vertices.size(); ++v) {
    plan.vertices[v].predicted_start_ns = from_start(prediction.start_ns[v]);
    plan.vertices[v].predicted_end_ns = from_start(prediction.end_ns[v]);
  }
}

// Where behind `count` calls of the program the plan's calls go on, inserted ones among them.
uint32_t place_behind(const plan::Plan& plan, uint32_t count) {
  uint32_t place = 0;
  while (place < plan.calls.size() && count > 0) {
    if (!plan.calls[place++].inserted) --count;
  }
  return place;
}

// What a simulation needs of the plan's graph.
TaskGraph tasks_of(const Workload& workload, const plan::Plan& plan) {
  TaskGraph graph;
  graph.chunk_bytes = plan.chunk_bytes;
  graph.tensors = plan.tensors;
  graph.transfers_map = workload.graph.transfers_map;
  graph.waited_at_end = place_behind(plan, workload.graph.waited_at_end);
  graph.calls.resize(plan.calls.size());
  for (size_t c = 0; c < plan.calls.size(); ++c) {
    graph.calls[c].call = plan.calls[c];
    graph.calls[c].waited = plan.calls[c].waited;
  }
  return graph;
}

MemGraph mem_graph_of(const plan::Plan& plan) {
  MemGraph graph;
  graph.vertices = plan.vertices;
  graph.tiers.assign(plan.vertices.size(), Tier::host);
  graph.extra_ns.assign(plan.vertices.size(), 0);
  for (const plan::Call& call : plan.calls) graph.vertex_of_call.push_back(call.vertex);
  return graph;
}

}  // namespace

plan::PlannedLink link_of(const Machine& machine) {
  return {machine.name,
          machine.link_assumed,
          static_cast<uint64_t>(machine.h2d_bytes_per_s),
          static_cast<uint64_t>(machine.d2h_bytes_per_s),
          machine.latency_ns,
          machine.remap_ns_per_chunk};
}

bool set_times(Workload& workload, const plan::Plan& plan, const std::vector<uint64_t>& ns) {
  TaskGraph& graph = workload.graph;
  if (graph.iteration_hash != plan.iteration_hash) return false;
  std::vector<uint64_t> times;
  for (uint32_t i = 0; i < plan.calls.size(); ++i) {
    const plan::Call& call = plan.calls[i];
    if (call.inserted) continue;
    if (times.size() == graph.calls.size()) return false;
    if (graph.calls[times.size()].call.signature != call.signature) return false;
    times.push_back(ns[i]);
  }
  if (times.size() != graph.calls.size()) return false;
  graph.compute_ns = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    plan::Call& call = graph.calls[i].call;
    call.duration_ns = times[i];
    if (call.kind == plan::CallKind::op && call.recompute_of == plan::kNone) graph.compute_ns += times[i];
  }
  workload.alone_ns = computing_alone(graph, workload.machine);
  return true;
}

std::optional<plan::Plan> retimed(const Workload& workload, const plan::Plan& plan, const std::vector<uint64_t>& ns) {
  if (device_count(plan) > 1 || plan.chunk_bytes != workload.graph.chunk_bytes || ns.size() != plan.calls.size()) {
    return std::nullopt;
  }
  TaskGraph tasks = tasks_of(workload, plan);
  const MemGraph graph = mem_graph_of(plan);
  if (simulate(tasks, graph, workload.machine, {}).iteration_ns != plan.predicted_ns) return std::nullopt;
  Workload timed = workload;
  if (!set_times(timed, plan, ns)) return std::nullopt;
  plan::Plan result = plan;
  result.compute_ns = timed.alone_ns;
  for (size_t c = 0; c < plan.calls.size(); ++c) {
    if (plan.calls[c].kind != plan::CallKind::op) continue;
    const uint32_t first = plan.calls[c].recompute_of;
    const uint64_t length = ns[first == plan::kNone ? c : first];
    result.calls[c].duration_ns = tasks.calls[c].call.duration_ns = length;
  }
  const Prediction prediction = simulate(tasks, graph, workload.machine, {});
  result.predicted_ns = prediction.iteration_ns;
  set_predicted(prediction, result);
  delay_releases(result);
  return result;
}

plan::Plan to_plan(const Workload& workload, uint64_t budget, PlanCandidate candidate) {
  const TaskGraph& graph = workload.graph;
  plan::Plan plan;
  plan.program = graph.program;
  plan.program_hash = graph.program_hash;
  plan.iteration_hash = graph.iteration_hash;
  plan.policy = candidate.policy;
  plan.link = link_of(workload.machine);
  plan.chunk_bytes = graph.chunk_bytes;
  plan.budget_bytes = budget;
  plan.reserved_bytes = workload.reserved_bytes;
  plan.chunk_count = candidate.layout.chunk_count;
  plan.device_chunks = candidate.layout.device_chunks;
  plan.slab_bytes = workload.slab_bytes;
  plan.peak_bytes = workload.peak_bytes;
  plan.minimum_bytes = workload.minimum_bytes;
  plan.predicted_ns = candidate.prediction.iteration_ns;
  plan.compute_ns = workload.alone_ns;
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
  plan.vertices = std::move(candidate.graph.vertices);
  set_predicted(candidate.prediction, plan);
  candidate.prediction = {};
  add_calls(graph, candidate.graph, plan);
  delay_releases(plan);
  return plan;
}

}  // namespace reprise::analyzer
