// The structure check: what the replay may take for granted when it indexes a plan. It proves nothing about races or
// residency; analyzer/verify does.
#include <algorithm>
#include <string>
#include <vector>

#include "analyzer/plan/plan.h"
#include "analyzer/plan/vertex_kinds.h"

namespace reprise::plan {
namespace {

Status wrong(const std::string& what) { return {StatusCode::corrupt, "not a valid plan: " + what}; }
Status wrong(const char* kind, size_t index, const char* what) {
  return wrong(std::string(kind) + " " + std::to_string(index) + " " + what);
}
bool optional_below(uint32_t index, size_t count) { return index == kNone || index < count; }
uint64_t chunks_for(uint64_t size, uint64_t chunk_bytes) { return size / chunk_bytes + (size % chunk_bytes != 0); }

constexpr size_t kMostDevices = 1024;
constexpr uint32_t kAllModes = trace::kAccessRead | trace::kAccessWrite | trace::kAccessUnchanged | kAccessMoves;

// One budget holds for each of the devices.
Status check_devices(const Plan& plan) {
  const uint64_t most = (plan.budget_bytes - plan.reserved_bytes) / plan.chunk_bytes;
  if (plan.device_chunks.empty()) {
    return plan.chunk_count > most ? wrong("its chunks do not fit its budget") : Status{};
  }
  if (plan.device_chunks.size() < 2 || plan.device_chunks.size() > kMostDevices) {
    return wrong("its number of devices is out of range");
  }
  uint64_t sum = 0;
  for (const uint32_t chunks : plan.device_chunks) {
    if (chunks > most) return wrong("a device's chunks do not fit its budget");
    sum += chunks;
  }
  return sum != plan.chunk_count ? wrong("its devices' chunks do not add up") : Status{};
}

Status check_sizes(const Plan& plan) {
  if (plan.safety > Safety::proven) return wrong("it is for no known safety");
  if (plan.chunk_bytes == 0 || plan.chunk_bytes > (uint64_t{1} << 40)) return wrong("its chunk_bytes is out of range");
  if (plan.reserved_bytes > plan.budget_bytes) return wrong("it reserves more than its budget");
  if (plan.slab_bytes > plan.reserved_bytes) return wrong("its slabs are larger than what it reserves");
  if (Status status = check_devices(plan); !status.ok()) return status;
  const size_t largest = kNone;
  if (plan.tensors.size() >= largest || plan.calls.size() >= largest || plan.vertices.size() >= largest) {
    return wrong("it has too many parts");
  }
  return {};
}

bool lies_on(const Plan& plan, const Placement& placement, uint32_t device) {
  if (plan.device_chunks.empty()) return true;
  uint32_t first = 0;
  for (uint32_t d = 0; d < device; ++d) first += plan.device_chunks[d];
  const uint32_t end = first + plan.device_chunks[device];
  return std::all_of(placement.chunks.begin(), placement.chunks.end(),
                     [&](uint32_t chunk) { return chunk >= first && chunk < end; });
}

// Each chunk belongs to a placement: a reader of the plan makes room for each chunk.
Status check_chunks(const Plan& plan) {
  uint64_t placed = 0;
  for (const Placement& placement : plan.placements) placed += placement.chunks.size();
  return plan.chunk_count > placed ? wrong("it has more chunks than its placements name") : Status{};
}

Status check_placements(const Plan& plan) {
  if (Status status = check_chunks(plan); !status.ok()) return status;
  std::vector<uint32_t> seen(plan.chunk_count, kNone);
  for (uint32_t index = 0; index < plan.placements.size(); ++index) {
    if (plan.placements[index].chunks.empty()) return wrong("placement", index, "is empty");
    for (const uint32_t chunk : plan.placements[index].chunks) {
      if (chunk >= plan.chunk_count) return wrong("placement", index, "has a chunk that does not exist");
      if (seen[chunk] == index) return wrong("placement", index, "has a chunk twice");
      seen[chunk] = index;
    }
  }
  return {};
}

bool call_is(const Plan& plan, uint32_t call, CallKind kind, uint32_t tensor) {
  return call < plan.calls.size() && plan.calls[call].kind == kind && plan.calls[call].tensor == tensor;
}

// The parts of a split tensor stand one behind the other, without gaps, and each but the last has whole chunks.
bool is_fitting_part(const Plan& plan, uint32_t index) {
  const Tensor& tensor = plan.tensors[index];
  if (tensor.part_of == kNone) return tensor.part_offset == 0;
  if (tensor.chunk_count == 0 || tensor.part_of > index) return false;
  if (tensor.part_of == index) return tensor.part_offset == 0;
  const Tensor& before = plan.tensors[index - 1];
  return before.part_of == tensor.part_of && before.part_offset + before.size == tensor.part_offset &&
         before.size % plan.chunk_bytes == 0 && before.device == tensor.device &&
         (before.allocate_call == kNone) == (tensor.allocate_call == kNone);
}

Status check_tensor(const Plan& plan, uint32_t index) {
  const Tensor& tensor = plan.tensors[index];
  const bool persistent = tensor.allocate_call == kNone;
  if (tensor.size == 0) return wrong("tensor", index, "has no bytes");
  if (tensor.recompute_of != kNone &&
      (tensor.recompute_of >= index || plan.tensors[tensor.recompute_of].size != tensor.size)) {
    return wrong("tensor", index, "recomputes a tensor that is not its like");
  }
  if (!is_fitting_part(plan, index)) return wrong("tensor", index, "does not continue the part before it");
  if (persistent != (tensor.free_call == kNone)) return wrong("tensor", index, "is neither persistent nor transient");
  if (persistent && index > 0 && plan.tensors[index - 1].allocate_call != kNone) {
    return wrong("tensor", index, "is persistent but stands behind transient ones");
  }
  if (!persistent &&
      (!call_is(plan, tensor.allocate_call, CallKind::allocate, index) ||
       !call_is(plan, tensor.free_call, CallKind::free, index) || tensor.allocate_call >= tensor.free_call)) {
    return wrong("tensor", index, "does not fit the calls that allocate and free it");
  }
  if (tensor.chunk_count != 0 && tensor.chunk_count != chunks_for(tensor.size, plan.chunk_bytes)) {
    return wrong("tensor", index, "has the wrong number of chunks");
  }
  if (tensor.home != kNone &&
      (tensor.home >= plan.placements.size() || plan.placements[tensor.home].chunks.size() != tensor.chunk_count)) {
    return wrong("tensor", index, "has no fitting home");
  }
  if (tensor.device >= device_count(plan)) return wrong("tensor", index, "is on a device that does not exist");
  if (tensor.home != kNone && !lies_on(plan, plan.placements[tensor.home], tensor.device)) {
    return wrong("tensor", index, "has its home on another device");
  }
  if ((tensor.resident_at_start && (!persistent || tensor.home == kNone)) ||
      (tensor.clean_at_start && !tensor.resident_at_start)) {
    return wrong("tensor", index, "has an impossible state at the start");
  }
  if (!persistent && tensor.chunk_count == 0 &&
      (tensor.slab_offset > plan.slab_bytes || tensor.size > plan.slab_bytes - tensor.slab_offset)) {
    return wrong("tensor", index, "lies outside the slab");
  }
  return {};
}

Status check_call(const Plan& plan, uint32_t index) {
  const Call& call = plan.calls[index];
  if (call.kind < CallKind::allocate || call.kind > CallKind::late_free)
    return wrong("call", index, "is of no known kind");
  if (call.device >= device_count(plan)) return wrong("call", index, "runs on a device that does not exist");
  if (call.waited > index) return wrong("call", index, "waited for later ones");
  const bool op = call.kind == CallKind::op;
  if (op ? call.tensor != kNone : call.tensor >= plan.tensors.size()) return wrong("call", index, "has a wrong tensor");
  if (call.recompute_of != kNone &&
      (!op || call.recompute_of >= index || plan.calls[call.recompute_of].kind != CallKind::op)) {
    return wrong("call", index, "recomputes what did not run before");
  }
  if (op && call.inserted != (call.recompute_of != kNone)) return wrong("call", index, "is inserted but no recompute");
  if (!op && !call.accesses.empty()) return wrong("call", index, "has accesses but is no op");
  if (call.kind == CallKind::free_handover || call.kind == CallKind::allocate_handover) {
    if (plan.tensors[call.tensor].allocate_call != kNone) return wrong("call", index, "hands a transient tensor over");
    if (call.vertex != kNone) return wrong("call", index, "has a vertex but runs nothing");
    return {};
  }
  if (call.kind == CallKind::late_free) {
    if (plan.tensors[call.tensor].allocate_call >= index) return wrong("call", index, "frees what is not there");
    if (call.vertex != kNone || call.inserted) return wrong("call", index, "is late but not the program's free alone");
    return {};
  }
  if (call.kind == CallKind::allocate) {
    if (plan.tensors[call.tensor].allocate_call != index) return wrong("call", index, "is not its tensor's");
    if (call.vertex != kNone) return wrong("call", index, "has a vertex but runs nothing");
    return {};
  }
  if (!op && plan.tensors[call.tensor].free_call != index) return wrong("call", index, "is not its tensor's");
  if (call.vertex >= plan.vertices.size() || plan.vertices[call.vertex].call != index) {
    return wrong("call", index, "is not its vertex's");
  }
  for (const OpAccess& access : call.accesses) {
    if (access.tensor >= plan.tensors.size()) return wrong("call", index, "accesses a tensor that does not exist");
    if (access.mode > kAllModes || ((access.mode & trace::kAccessUnchanged) != 0 && !writes(access))) {
      return wrong("call", index, "accesses in no known way");
    }
    if (moves(access) && (access.offset != 0 || access.size != 0)) return wrong("call", index, "moves in a part");
    const uint64_t size = plan.tensors[access.tensor].size;
    if (access.offset > size || access.size > size - access.offset) return wrong("call", index, "leaves its tensor");
  }
  return {};
}

// Of each late free, another one comes later, inserted, for the tensor or for a later life of it. A life that another
// one follows is ended by the plan: the program's own free of it would be late.
Status check_late_frees(const Plan& plan) {
  std::vector<uint32_t> root(plan.tensors.size());
  std::vector<uint32_t> last(plan.tensors.size(), 0);  // by root: the last free
  for (uint32_t t = 0; t < plan.tensors.size(); ++t) {
    root[t] = plan.tensors[t].recompute_of == kNone ? t : root[plan.tensors[t].recompute_of];
    if (plan.tensors[t].free_call != kNone) last[root[t]] = std::max(last[root[t]], plan.tensors[t].free_call);
    const uint32_t before = plan.tensors[t].recompute_of;
    const uint32_t end = before == kNone ? kNone : plan.tensors[before].free_call;
    if (end != kNone && !plan.calls[end].inserted)
      return wrong("call", end, "frees what is made again, and is not late");
  }
  for (uint32_t index = 0; index < plan.calls.size(); ++index) {
    const Call& call = plan.calls[index];
    if (call.kind != CallKind::late_free) continue;
    const uint32_t end = last[root[call.tensor]];
    if (end < index || !plan.calls[end].inserted) return wrong("call", index, "is late but nothing ends later");
  }
  return {};
}

Status check_vertex(const Plan& plan, uint32_t index) {
  const Vertex& vertex = plan.vertices[index];
  const VertexTraits* const traits = find_traits(vertex.kind);
  if (traits == nullptr) return wrong("vertex", index, "is of no kind");
  const bool is_call = plan::is_call(vertex.kind);
  if (is_call ? (vertex.call >= plan.calls.size() || plan.calls[vertex.call].vertex != index) : vertex.call != kNone) {
    return wrong("vertex", index, "has a wrong call");
  }
  if (vertex.clean && !traits->out) return wrong("vertex", index, "is clean but no offload");
  const bool op = traits->op;
  if (op != (vertex.tensor == kNone) || !optional_below(vertex.tensor, plan.tensors.size())) {
    return wrong("vertex", index, "has a wrong tensor");
  }
  if (is_call && op != (plan.calls[vertex.call].kind == CallKind::op)) return wrong("vertex", index, "is not its call");
  if (traits->frees && plan.calls[vertex.call].tensor != vertex.tensor) {
    return wrong("vertex", index, "releases another tensor");
  }
  if (!is_call && plan.tensors[vertex.tensor].chunk_count == 0) return wrong("vertex", index, "moves a small tensor");
  for (const Predecessor& predecessor : vertex.predecessors) {
    if (predecessor.vertex >= plan.vertices.size() || predecessor.distance > 1 || predecessor.kind < EdgeKind::data ||
        predecessor.kind > EdgeKind::program) {
      return wrong("vertex", index, "has a wrong predecessor");
    }
  }
  for (const Acquire& acquire : vertex.acquires) {
    if (acquire.tensor >= plan.tensors.size() || acquire.placement >= plan.placements.size() ||
        plan.tensors[acquire.tensor].chunk_count == 0 || plan.tensors[acquire.tensor].home == kNone ||
        plan.placements[acquire.placement].chunks.size() != plan.tensors[acquire.tensor].chunk_count) {
      return wrong("vertex", index, "acquires what does not fit");
    }
    if (!lies_on(plan, plan.placements[acquire.placement], plan.tensors[acquire.tensor].device)) {
      return wrong("vertex", index, "acquires chunks of another device");
    }
  }
  if (traits->in ? (vertex.acquires.size() != 1 || vertex.acquires[0].tensor != vertex.tensor)
                 : (!op && !vertex.acquires.empty())) {
    return wrong("vertex", index, "acquires what it does not own");
  }
  return {};
}

Status check_order(const Plan& plan) {
  if (plan.order.size() != plan.vertices.size()) return wrong("its order does not have every vertex once");
  std::vector<uint32_t> position(plan.vertices.size(), kNone);
  for (uint32_t place = 0; place < plan.order.size(); ++place) {
    const uint32_t vertex = plan.order[place];
    if (vertex >= position.size() || position[vertex] != kNone)
      return wrong("its order does not have every vertex once");
    position[vertex] = place;
  }
  for (uint32_t index = 0; index < plan.vertices.size(); ++index) {
    for (const Predecessor& predecessor : plan.vertices[index].predecessors) {
      if (predecessor.distance == 0 && position[predecessor.vertex] >= position[index]) {
        const std::string what = "comes before its predecessor " + std::to_string(predecessor.vertex) + " in the order";
        return wrong("vertex", index, what.c_str());
      }
    }
  }
  return {};
}

Status check_totals(const Plan& plan) {
  uint64_t offloaded = 0;
  uint64_t reloaded = 0;
  for (const Vertex& vertex : plan.vertices) {
    if (copies_out(vertex.kind) && !vertex.clean) offloaded += plan.tensors[vertex.tensor].size;
    if (copies_in(vertex.kind)) reloaded += plan.tensors[vertex.tensor].size;
  }
  if (offloaded != plan.offload_bytes || reloaded != plan.reload_bytes) return wrong("its totals do not add up");
  return {};
}

template <typename Items, typename Check>
Status check_each(const Plan& plan, const Items& items, Check check) {
  for (uint32_t index = 0; index < items.size(); ++index) {
    if (Status status = check(plan, index); !status.ok()) return status;
  }
  return {};
}

}  // namespace

bool sizes_vary(const Plan& plan) {
  return std::any_of(plan.calls.begin(), plan.calls.end(),
                     [](const Call& call) { return (call.flags & kCallAnySize) != 0; });
}

bool recomputes(const Plan& plan) {
  return std::any_of(plan.calls.begin(), plan.calls.end(), [](const Call& call) { return call.recompute_of != kNone; });
}

bool shows_itself(const std::vector<Tensor>& tensors, const Call& first, const OpAccess& again) {
  const uint32_t dropped = tensors[again.tensor].recompute_of;
  if (changes(again) || dropped == kNone || tensors[again.tensor].chunk_count == 0) return false;
  return std::any_of(first.accesses.begin(), first.accesses.end(),
                     [&](const OpAccess& access) { return access.tensor == dropped; });
}

bool reorders(const Plan& plan) {
  std::vector<uint32_t> latest(plan.vertices.size(), 0);  // call among a vertex and what it waits for
  for (const uint32_t index : plan.order) {
    const Vertex& vertex = plan.vertices[index];
    for (const Predecessor& before : vertex.predecessors) {
      if (before.distance == 0) latest[index] = std::max(latest[index], latest[before.vertex]);
    }
    if (vertex.call == kNone) continue;
    if (latest[index] > vertex.call) return true;
    latest[index] = vertex.call;
  }
  return false;
}

bool has_split_tensors(const Plan& plan) {
  return std::any_of(plan.tensors.begin(), plan.tensors.end(),
                     [](const Tensor& tensor) { return tensor.part_of != kNone; });
}

bool touches_only_operands(const Call& call) {
  if ((call.flags & trace::kOpOpaque) != 0) return false;
  switch (call.op) {
    case trace::OpKind::copy_host_to_device:
    case trace::OpKind::copy_device_to_host:
    case trace::OpKind::copy_device_to_device:
    case trace::OpKind::copy_host_to_host:
    case trace::OpKind::memset:
    case trace::OpKind::host_function:
      return true;
    case trace::OpKind::launch:
      return call.audited != 0;
    default:
      return false;
  }
}

bool may_stray(const Call& call) { return call.kind == CallKind::op && !touches_only_operands(call); }

bool all_audited(const Plan& plan) { return std::none_of(plan.calls.begin(), plan.calls.end(), may_stray); }

bool drops_what_is_only_read(const Plan& plan) {
  return std::any_of(plan.calls.begin(), plan.calls.end(), [&](const Call& call) {
    return std::any_of(call.accesses.begin(), call.accesses.end(), [&](const OpAccess& access) {
      return plan.tensors[access.tensor].chunk_count != 0 && !writes(access);
    });
  });
}

Status check_structure(const Plan& plan) {
  if (Status status = check_sizes(plan); !status.ok()) return status;
  if (Status status = check_placements(plan); !status.ok()) return status;
  if (Status status = check_each(plan, plan.tensors, check_tensor); !status.ok()) return status;
  if (Status status = check_each(plan, plan.calls, check_call); !status.ok()) return status;
  if (Status status = check_late_frees(plan); !status.ok()) return status;
  if (Status status = check_each(plan, plan.vertices, check_vertex); !status.ok()) return status;
  if (Status status = check_order(plan); !status.ok()) return status;
  return check_totals(plan);
}

}  // namespace reprise::plan
