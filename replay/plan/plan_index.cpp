#include "replay/plan/plan_index.h"

#include <algorithm>
#include <map>
#include <utility>

#include "analyzer/plan/enforced.h"
#include "analyzer/plan/vertex_kinds.h"
#include "preload/base/causes.h"
#include "replay/plan/lives.h"
#include "replay/plan/same_call.h"

namespace reprise::replay {
namespace {

using plan::CallKind;
using plan::kNone;

bool persistent(const plan::Tensor& tensor) { return tensor.allocate_call == kNone; }

// Small, and handed over: where sizes vary the next one may need more than the place of the first.
bool lies_in_region(const plan::Plan& plan, const plan::Call& call) {
  return call.kind == CallKind::allocate_handover && has_any_size(call) && plan.tensors[call.tensor].chunk_count == 0;
}

// Small transient tensors share the plan's slab region. Two that the program has alive at the same time must not
// overlap, whatever the order in which the plan runs their kernels: the program sees their addresses.
bool slab_is_sound(const plan::Plan& plan) {
  std::map<uint64_t, uint64_t> live;  // offset -> end
  const auto takes_place = [&](const plan::Tensor& tensor) {
    const uint64_t end = tensor.slab_offset + std::max<uint64_t>(tensor.size, 1);
    if (end > plan.slab_bytes) return false;
    const auto after = live.lower_bound(tensor.slab_offset);
    if (after != live.end() && after->first < end) return false;
    if (after != live.begin() && std::prev(after)->second > tensor.slab_offset) return false;
    live[tensor.slab_offset] = end;
    return true;
  };
  for (const plan::Call& call : plan.calls) {
    if (lies_in_region(plan, call) && !takes_place(plan.tensors[call.tensor])) return false;
  }
  for (const plan::Call& call : plan.calls) {
    if (call.kind == CallKind::op) continue;
    const plan::Tensor& tensor = plan.tensors[call.tensor];
    if (tensor.chunk_count != 0 || persistent(tensor) || call.kind == CallKind::late_free) continue;
    if (call.kind == CallKind::free) {
      live.erase(tensor.slab_offset);
    } else if (!takes_place(tensor)) {
      return false;
    }
  }
  return true;
}

bool lay_out(PlanIndex* plan_index, uint64_t chunk_bytes, uint64_t ranges_at, std::string* why) {
  const plan::Plan& plan = plan_index->plan;
  plan_index->slab_bytes = (plan.slab_bytes + chunk_bytes - 1) / chunk_bytes * chunk_bytes;
  const uint64_t first = ranges_at != 0 ? ranges_at : plan_index->slab_bytes + chunk_bytes;
  uint64_t next = first;
  plan_index->addresses.assign(plan.tensors.size(), 0);
  for (size_t t = 0; t < plan.tensors.size(); ++t) {
    const plan::Tensor& tensor = plan.tensors[t];
    if (persistent(tensor)) {
      ++plan_index->persistent_count;
    } else if (tensor.recompute_of != kNone) {
      // Its first life has the address.
    } else if (tensor.chunk_count == 0) {
      plan_index->addresses[t] = plan_index->zone.base + tensor.slab_offset;
    } else {
      plan_index->addresses[t] = plan_index->zone.base + next;
      next += (uint64_t{tensor.chunk_count} + 1) * chunk_bytes;  // with the guard chunk (ranges.h)
    }
  }
  for (const plan::Call& call : plan.calls) {
    if (!lies_in_region(plan, call)) continue;
    plan_index->addresses[call.tensor] = plan_index->zone.base + plan.tensors[call.tensor].slab_offset;
  }
  plan_index->ranges = {plan_index->zone.base + first, next - first};
  const bool fits = next <= plan_index->zone.bytes && plan_index->slab_bytes + chunk_bytes <= first;
  if (!fits) *why = phrase<Cause::plan_above_addresses>();
  return fits;
}

LaneKind lane_of(const plan::Vertex& vertex) {
  if (plan::runs_op(vertex.kind)) return LaneKind::compute;
  if (plan::copies_in(vertex.kind)) return LaneKind::to_device;
  return plan::copies_out(vertex.kind) ? LaneKind::to_host : LaneKind::none;
}

// Vertices with the same number run in order without an event: those of one transfer lane, or one program stream as it
// was recorded.
// A drop runs on the stream of the launch that will be repeated.
uint32_t stream_of(const PlanIndex& plan_index, uint32_t v) {
  const plan::Plan& plan = plan_index.plan;
  const plan::Vertex& vertex = plan.vertices[v];
  if (plan::runs_op(vertex.kind)) return 2 + plan.calls[vertex.call].stream;
  if (plan_index.drops[v]) return 2 + plan.calls[plan.vertices[plan_index.drop_launch[v]].call].stream;
  return plan::copies_in(vertex.kind) ? 0 : 1;
}

// The vertices whose device work `vertex` waits for. A release runs nothing on the device, so the vertices that the
// release waits for stand in its place.
void collect_waits(const plan::Plan& plan, const std::vector<LaneKind>& lanes, uint32_t vertex, uint8_t distance,
                   int depth, std::vector<Edge>* waits) {
  for (const plan::Predecessor& predecessor : plan.vertices[vertex].predecessors) {
    const auto total = static_cast<uint8_t>(distance + predecessor.distance);
    if (lanes[predecessor.vertex] != LaneKind::none) {
      waits->push_back({predecessor.vertex, total});
    } else if (depth < 8) {
      collect_waits(plan, lanes, predecessor.vertex, total, depth + 1, waits);
    }
  }
}

void invert_edges(PlanIndex* plan_index) {
  const plan::Plan& plan = plan_index->plan;
  const size_t count = plan.vertices.size();
  plan_index->predecessors.assign(count, 0);
  plan_index->cyclic.assign(count, 0);
  plan_index->successors.resize(count);
  plan_index->waits.resize(count);
  plan_index->waited_for.assign(count, false);
  for (uint32_t v = 0; v < count; ++v) {
    for (const plan::Predecessor& predecessor : plan.vertices[v].predecessors) {
      ++(predecessor.distance == 0 ? plan_index->predecessors : plan_index->cyclic)[v];
      plan_index->successors[predecessor.vertex].push_back({v, predecessor.distance});
    }
    if (plan_index->lanes[v] == LaneKind::none) continue;
    std::vector<Edge> waits;
    collect_waits(plan, plan_index->lanes, v, 0, 0, &waits);
    for (const Edge& edge : waits) {
      // The same lane runs in issue order: nothing to wait for.
      const bool same = stream_of(*plan_index, edge.vertex) == stream_of(*plan_index, v);
      if (same && plan_index->lanes[v] != LaneKind::compute) continue;
      if (!same) plan_index->waited_for[edge.vertex] = true;
      const bool known = std::any_of(plan_index->waits[v].begin(), plan_index->waits[v].end(), [&](const Edge& other) {
        return other.vertex == edge.vertex && other.distance == edge.distance;
      });
      if (!known) plan_index->waits[v].push_back(edge);
    }
  }
}

// A release says that no work on the tensor is outstanding: it must be issued after every call and transfer that
// touches the tensor, also where the plan's edges imply that order only on the device.
void add_release_edges(plan::Plan* plan) {
  std::vector<uint32_t> release_of(plan->tensors.size(), kNone);
  for (uint32_t v = 0; v < plan->vertices.size(); ++v) {
    if (plan::frees(plan->vertices[v].kind)) release_of[plan->vertices[v].tensor] = v;
  }
  const auto add = [&](uint32_t tensor, uint32_t user) {
    const uint32_t release = release_of[tensor];
    if (release == kNone || release == user) return;
    auto& predecessors = plan->vertices[release].predecessors;
    const bool known = std::any_of(predecessors.begin(), predecessors.end(),
                                   [&](const plan::Predecessor& p) { return p.vertex == user && p.distance == 0; });
    if (!known) predecessors.push_back({user, plan::EdgeKind::program, 0});
  };
  for (uint32_t v = 0; v < plan->vertices.size(); ++v) {
    const plan::Vertex& vertex = plan->vertices[v];
    if (plan::copies(vertex.kind)) add(vertex.tensor, v);
    if (!plan::runs_op(vertex.kind)) continue;
    for (const plan::OpAccess& access : plan->calls[vertex.call].accesses) {
      if (access.tensor != kNone) add(access.tensor, v);
    }
  }
}

// Who has which chunks at some time, by chunk.
std::vector<std::vector<uint32_t>> tensors_of_chunks(const plan::Plan& plan) {
  std::vector<std::vector<uint32_t>> tensors(plan.chunk_count);
  const auto add = [&](uint32_t tensor, uint32_t placement) {
    if (placement == kNone) return;
    for (const uint32_t chunk : plan.placements[placement].chunks) {
      if (tensors[chunk].empty() || tensors[chunk].back() != tensor) tensors[chunk].push_back(tensor);
    }
  };
  for (uint32_t t = 0; t < plan.tensors.size(); ++t) add(t, plan.tensors[t].home);
  for (const plan::Vertex& vertex : plan.vertices) {
    for (const plan::Acquire& acquire : vertex.acquires) add(acquire.tensor, acquire.placement);
  }
  return tensors;
}

// A tensor of one iteration has its chunks from the call on that touches it first. Before that call unseen work might
// touch it, where work comes in between that may touch more than its operands (PyTorch often clears a few bytes between
// the two): then no other tensor may live in its chunks meanwhile. What leaves and
// comes back meanwhile comes back to the same chunks, and its mapping is there for the next iteration's: a chunk of 2
// MiB costs 39 us to unmap and to map again (H200), as long as its bytes take in one direction.
void find_kept_mappings(PlanIndex* plan_index) {
  const plan::Plan& plan = plan_index->plan;
  plan_index->keeps_mapping.assign(plan.tensors.size(), false);
  std::vector<uint32_t> first_call(plan.tensors.size(), kNone);
  std::vector<bool> remaps(plan.tensors.size(), false);
  for (const plan::Vertex& vertex : plan.vertices) {
    for (const plan::Acquire& acquire : vertex.acquires) {
      if (acquire.placement != plan.tensors[acquire.tensor].home) remaps[acquire.tensor] = true;
      if (plan::runs_op(vertex.kind)) first_call[acquire.tensor] = std::min(first_call[acquire.tensor], vertex.call);
    }
  }
  const std::vector<std::vector<uint32_t>> sharing = tensors_of_chunks(plan);
  for (uint32_t t = 0; t < plan.tensors.size(); ++t) {
    const plan::Tensor& tensor = plan.tensors[t];
    if (persistent(tensor) || tensor.home == kNone || remaps[t]) continue;
    const uint32_t until = std::min(first_call[t], tensor.free_call);
    const auto apart = [&](uint32_t other) {
      const plan::Tensor& life = plan.tensors[other];
      return other == t || (!persistent(life) && (life.free_call < tensor.allocate_call || life.allocate_call > until));
    };
    const auto alone = [&](uint32_t chunk) { return std::all_of(sharing[chunk].begin(), sharing[chunk].end(), apart); };
    const auto begin = plan.calls.begin() + tensor.allocate_call;
    const bool other_work = std::any_of(begin, plan.calls.begin() + until, [](const plan::Call& call) {
      return call.kind == CallKind::op && !plan::touches_only_operands(call);
    });
    const std::vector<uint32_t>& home = plan.placements[tensor.home].chunks;
    plan_index->keeps_mapping[t] = !other_work || std::all_of(home.begin(), home.end(), alone);
  }
}

}  // namespace

bool make_plan_index(plan::Plan plan, Zone zone, uint64_t chunk_bytes, PlanIndex* plan_index, std::string* why,
                     plan::Safety safety, uint64_t ranges_at) {
  const bool strict = plan::keeps_kernels_away(plan, safety);
  const bool as_trusted = plan::is_by_kernel(safety) && !strict;
  if (plan.chunk_bytes != chunk_bytes) {
    *why = words<Cause::plan_of_other_chunks>(plan.chunk_bytes, chunk_bytes);
    return false;
  }
  if (const std::string refused = plan::why_not_enforced(plan, safety); !refused.empty()) {
    *why = words<Cause::plan_refused>(refused);
    return false;
  }
  if (plan.calls.empty()) {
    *why = phrase<Cause::plan_empty>();
    return false;
  }
  if (!slab_is_sound(plan)) {
    *why = phrase<Cause::plan_overlaps>();
    return false;
  }
  add_release_edges(&plan);
  plan_index->plan = std::move(plan);
  plan_index->zone = zone;
  fold_lives(plan_index);
  if (!lay_out(plan_index, chunk_bytes, ranges_at, why)) return false;
  const plan::Plan& made = plan_index->plan;
  plan_index->rank.assign(made.vertices.size(), 0);
  for (uint32_t i = 0; i < made.order.size(); ++i) plan_index->rank[made.order[i]] = i;
  for (uint32_t v = 0; v < made.vertices.size(); ++v) {
    plan_index->lanes.push_back(plan_index->drops[v] ? LaneKind::compute : lane_of(made.vertices[v]));
  }
  plan_index->offloaded.assign(made.tensors.size(), false);
  plan_index->leaves_again.assign(made.tensors.size(), false);
  for (const plan::Vertex& vertex : made.vertices) {
    for (const plan::Acquire& acquire : vertex.acquires) {
      plan_index->remaps = plan_index->remaps || acquire.placement != made.tensors[acquire.tensor].home;
    }
    if (!plan::copies_out(vertex.kind)) continue;
    plan_index->leaves_again[vertex.tensor] =
        plan_index->offloaded[vertex.tensor] || persistent(made.tensors[vertex.tensor]);
    plan_index->offloaded[vertex.tensor] = true;
  }
  invert_edges(plan_index);
  plan_index->windows = free_windows(*plan_index);
  for (uint32_t call = 0; call < made.calls.size(); ++call) {
    if (plan_index->windows[call].behind != kNone) plan_index->early_frees.push_back(call);
  }
  find_kept_mappings(plan_index);
  plan_index->as_trusted = as_trusted;
  plan_index->aliased.assign(made.tensors.size(), false);
  for (uint32_t t = 0; plan::is_by_kernel(safety) && !as_trusted && t < made.tensors.size(); ++t) {
    plan_index->aliased[t] = made.tensors[t].aliased;
    if (made.tensors[t].aliased) plan_index->keeps_mapping[t] = true;
  }
  return true;
}

}  // namespace reprise::replay
