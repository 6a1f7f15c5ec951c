#include "analyzer/rewrite/device_subgraphs.h"

#include <algorithm>

namespace reprise::analyzer {
namespace {

class SubgraphBuilder {
 public:
  SubgraphBuilder(const TaskGraph& whole, uint32_t device)
      : whole_(whole), device_(device), tensor_in_(whole.tensors.size(), kNone) {}

  DeviceSubgraph make() {
    TaskGraph& graph = subgraph_.graph;
    graph.program = whole_.program;
    graph.chunk_bytes = whole_.chunk_bytes;
    graph.foreign_count = whole_.foreign_count;
    for (uint32_t t = 0; t < whole_.tensors.size(); ++t) {
      if (whole_.tensors[t].device != device_) continue;
      tensor_in_[t] = static_cast<uint32_t>(graph.tensors.size());
      subgraph_.tensor_of.push_back(t);
      graph.tensors.push_back(whole_.tensors[t]);
      graph.tensors.back().device = 0;
    }
    for (CallIndex call{0}; call < whole_.calls.size(); ++call) add_call(call);
    for (GraphCall& entry : graph.calls) entry.waited = calls_before(CallIndex(entry.waited));
    graph.waited_at_end = calls_before(CallIndex(whole_.waited_at_end));
    complete_task_graph(graph);
    return std::move(subgraph_);
  }

 private:
  bool is_here(const plan::Call& call) const {
    if (call.kind != plan::CallKind::op) return whole_.tensors[call.tensor].device == device_;
    return call.device == device_ || std::any_of(call.accesses.begin(), call.accesses.end(), [&](const auto& access) {
             return whole_.tensors[access.tensor].device == device_;
           });
  }

  void add_call(uint32_t index) {
    if (!is_here(whole_.calls[index].call)) return;
    const auto number = static_cast<uint32_t>(subgraph_.graph.calls.size());
    subgraph_.call_of.push_back(index);
    subgraph_.graph.calls.push_back(whole_.calls[index]);
    plan::Call& call = subgraph_.graph.calls.back().call;
    if (call.kind != plan::CallKind::op) {
      call.tensor = tensor_in_[call.tensor];
      plan::Tensor& tensor = subgraph_.graph.tensors[call.tensor];
      if (call.kind == plan::CallKind::allocate) tensor.allocate_call = number;
      if (call.kind == plan::CallKind::free) tensor.free_call = number;
      return;
    }
    // A copy between devices keeps neither of them from computing.
    if (call.device != device_ || call.op == trace::OpKind::copy_peer) call.duration_ns = 0;
    call.device = 0;
    std::erase_if(call.accesses, [&](const plan::OpAccess& a) { return tensor_in_[a.tensor] == kNone; });
    for (plan::OpAccess& access : call.accesses) access.tensor = tensor_in_[access.tensor];
  }

  uint32_t calls_before(CallIndex call) const {
    const auto behind = std::lower_bound(subgraph_.call_of.begin(), subgraph_.call_of.end(), call);
    return static_cast<uint32_t>(behind - subgraph_.call_of.begin());
  }

  const TaskGraph& whole_;
  uint32_t device_;
  std::vector<uint32_t> tensor_in_;  // tensor of the whole -> of the subgraph
  DeviceSubgraph subgraph_;
};

// Stays begin before a call and end behind one, or with the program's free.
Stay in_whole(const TaskGraph& graph, const DeviceSubgraph& subgraph, Stay stay) {
  const auto end_of = [&](uint32_t end) { return end == 0 ? 0 : subgraph.call_of[end - 1] + 1; };
  stay.tensor = subgraph.tensor_of[stay.tensor];
  if (stay.departure == Departure::release) {
    stay.end = subgraph.call_of[stay.end];
  } else {
    stay.end = stay.arrival == Arrival::always ? static_cast<uint32_t>(graph.calls.size()) : end_of(stay.end);
  }
  if (stay.arrival != Arrival::always) stay.begin = subgraph.call_of[stay.begin];
  if (stay.arrives_after != kNone) stay.arrives_after = subgraph.call_of[stay.arrives_after];
  if (stay.leaves_after != kNone) stay.leaves_after = subgraph.call_of[stay.leaves_after];
  return stay;
}

}  // namespace

std::vector<DeviceSubgraph> device_subgraphs_of(const TaskGraph& graph) {
  std::vector<DeviceSubgraph> subgraphs;
  if (graph.devices == 1) return subgraphs;
  for (uint32_t device = 0; device < graph.devices; ++device)
    subgraphs.push_back(SubgraphBuilder(graph, device).make());
  return subgraphs;
}

Schedule merge_schedules(const TaskGraph& graph, const std::vector<DeviceSubgraph>& subgraphs,
                         const std::vector<Schedule>& schedules) {
  Schedule merged;
  for (size_t device = 0; device < subgraphs.size(); ++device) {
    for (const Stay& stay : schedules[device].stays) merged.stays.push_back(in_whole(graph, subgraphs[device], stay));
    merged.offload_bytes += schedules[device].offload_bytes;
    merged.reload_bytes += schedules[device].reload_bytes;
  }
  sort_stays(merged);
  return merged;
}

std::optional<Layout> place_devices(const TaskGraph& graph, Schedule& schedule, uint32_t chunks, PlacementMode mode,
                                    HomeOrder order, const std::vector<uint64_t>& start_ns) {
  if (graph.devices == 1) return place(graph, schedule, chunks, mode, order, start_ns);
  Layout whole;
  whole.homes.assign(graph.tensors.size(), kNone);
  for (uint32_t device = 0; device < graph.devices; ++device) {
    Schedule part;
    std::vector<uint32_t> stay_of;
    for (uint32_t i = 0; i < schedule.stays.size(); ++i) {
      if (graph.tensors[schedule.stays[i].tensor].device != device) continue;
      part.stays.push_back(schedule.stays[i]);
      stay_of.push_back(i);
    }
    if (part.stays.empty()) {
      whole.device_chunks.push_back(0);
      continue;
    }
    std::optional<Layout> layout = place(graph, part, chunks, mode, order, start_ns);
    if (!layout) return std::nullopt;
    const auto first = static_cast<uint32_t>(whole.placements.size());
    for (plan::Placement& placement : layout->placements) {
      for (uint32_t& chunk : placement.chunks) chunk += whole.chunk_count;
      whole.placements.push_back(std::move(placement));
    }
    for (size_t i = 0; i < stay_of.size(); ++i) {
      schedule.stays[stay_of[i]].placement = first + part.stays[i].placement;
    }
    for (uint32_t t = 0; t < graph.tensors.size(); ++t) {
      if (layout->homes[t] != kNone) whole.homes[t] = first + layout->homes[t];
    }
    whole.device_chunks.push_back(layout->chunk_count);
    whole.chunk_count += layout->chunk_count;
    whole.remap_count += layout->remap_count;
    whole.remapped_chunks += layout->remapped_chunks;
  }
  return whole;
}

Bounds bounds_of_devices(const std::vector<DeviceSubgraph>& subgraphs, uint64_t capacity, const Machine& machine) {
  Bounds worst;
  uint64_t on_links = 0;
  uint64_t in = 0;
  uint64_t out = 0;
  for (uint32_t device = 0; device < subgraphs.size(); ++device) {
    const Bounds bounds = bounds_of(subgraphs[device].graph, capacity, machine);
    if (device == 0 || bounds.iteration_ns > worst.iteration_ns) worst = bounds;
    if (device % std::max(machine.devices_per_link, 1u) == 0) in = out = 0;
    in += bounds.reload_ns;
    out += bounds.offload_ns;
    on_links = std::max({on_links, in, out});
  }
  worst.iteration_ns = std::max(worst.iteration_ns, on_links);
  return worst;
}

}  // namespace reprise::analyzer
