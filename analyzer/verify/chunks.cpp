// Residency, versions and chunks (V3, V4, V5, V8).
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analyzer/plan/vertex_kinds.h"
#include "analyzer/verify/machine_walk.h"

namespace reprise::analyzer {
namespace {

using plan::kNone;

// One time of a tensor on the device.
struct Occupancy {
  uint32_t tensor = kNone;
  uint32_t instance = kNone;
  uint32_t placement = kNone;
  uint32_t acquirer = kNone;  // node; kNone: it was there at the start
  uint32_t users = kNone;     // index of the latest one: ops and offloads, not the acquirer
  uint32_t freed_by = kNone;  // node of the free that gave up its bytes; kNone: the host had them
  uint32_t asked_by = kNone;  // node that took chunks of it last
};

struct User {
  uint32_t node = kNone;
  uint32_t before = kNone;  // index of the next older one
};

// The contents of a tensor from its first touch to the program's free: a transient tensor has one per iteration.
struct ContentInstance {
  uint32_t occupancy = kNone;    // current one, if it is resident
  bool host_valid = false;       // the host copy is the current version
  uint32_t released_by = kNone;  // node
  uint32_t taken_by = kNone;     // node that took its first chunk, and which, if it is away
  uint32_t taken_chunk = kNone;
};

class ChunkWalk {
 public:
  ChunkWalk(const Unrolled& graph, Questions& questions)
      : plan_(graph.plan()),
        graph_(graph),
        questions_(questions),
        occupant_(plan_.chunk_count, kNone),
        instance_of_(plan_.tensors.size(), kNone),
        mapped_by_(plan_.tensors.size(), kNone) {
    reserve();
  }

  Status run() {
    if (Status status = set_start(); !status.ok()) return status;
    for (uint32_t round = 0; round < Unrolled::kRounds; ++round) {
      for (const uint32_t vertex : plan_.order) {
        if (Status status = step(vertex, graph_.node(vertex, round)); !status.ok()) return status;
      }
      if (Status status = check_end(); !status.ok()) return status;
    }
    return {};
  }

 private:
  // As much as there can be: growing lists would take up to three times what they hold.
  void reserve() {
    size_t occupancies = 0;
    size_t users = 0;
    for (const plan::Vertex& vertex : plan_.vertices) {
      occupancies += vertex.acquires.size();
      if (plan::copies_out(vertex.kind)) ++users;
    }
    for (const plan::Call& call : plan_.calls) users += call.accesses.size();
    size_t persistent = 0;
    for (const plan::Tensor& tensor : plan_.tensors) persistent += tensor.allocate_call == kNone ? 1 : 0;
    occupancies_.reserve(Unrolled::kRounds * occupancies + persistent);
    instances_.reserve(Unrolled::kRounds * (plan_.tensors.size() - persistent) + persistent);
    users_.reserve(Unrolled::kRounds * users);
  }

  Status set_start() {
    for (uint32_t t = 0; t < plan_.tensors.size(); ++t) {
      const plan::Tensor& tensor = plan_.tensors[t];
      if (tensor.chunk_count == 0 || tensor.allocate_call != kNone) continue;
      ContentInstance& instance = begin_instance(t);
      instance.host_valid = !tensor.resident_at_start || tensor.clean_at_start;
      if (!tensor.resident_at_start) continue;
      mapped_by_[t] = instance.occupancy = static_cast<uint32_t>(occupancies_.size());
      occupancies_.push_back({t, instance_of_[t], tensor.home});
      for (const uint32_t chunk : plan_.placements[tensor.home].chunks) {
        if (occupant_[chunk] != kNone) {
          return refusal(fmt::format("tensors {} and {} both have chunk {} at the start",
                                     occupancies_[occupant_[chunk]].tensor, t, chunk));
        }
        occupant_[chunk] = instance.occupancy;
      }
    }
    return {};
  }

  ContentInstance& begin_instance(uint32_t tensor) {
    instance_of_[tensor] = static_cast<uint32_t>(instances_.size());
    return instances_.emplace_back();
  }

  Status step(uint32_t index, uint32_t node) {
    const plan::Vertex& vertex = plan_.vertices[index];
    switch (vertex.kind) {
      case plan::VertexKind::op:
        return run_op(vertex, node);
      case plan::VertexKind::release:
        return run_release(vertex, node);
      case plan::VertexKind::offload:
        return run_offload(vertex, node);
      case plan::VertexKind::reload:
        return run_reload(vertex, node);
    }
    return {};
  }

  bool resident(uint32_t tensor) const {
    return instance_of_[tensor] != kNone && instances_[instance_of_[tensor]].occupancy != kNone;
  }

  Status run_op(const plan::Vertex& vertex, uint32_t node) {
    for (const plan::Acquire& acquire : vertex.acquires) {
      if (plan_.tensors[acquire.tensor].allocate_call == kNone || instance_of_[acquire.tensor] != kNone) {
        return refusal(fmt::format("{} takes new memory for tensor {}, which has contents already",
                                   graph_.describe(node), acquire.tensor));
      }
      begin_instance(acquire.tensor);
      if (Status status = occupy(acquire, node); !status.ok()) return status;
    }
    const plan::Call& call = plan_.calls[vertex.call];
    for (const plan::OpAccess& access : call.accesses) {
      // Also what only facts say is unchanged: an offload, if only a clean one, must follow before the bytes may go.
      if (Status status = use(access.tensor, node, vertex.call, writes(access)); !status.ok()) return status;
    }
    if (!uses_everything(call)) return {};
    for (uint32_t t = 0; t < plan_.tensors.size(); ++t) {
      if (!alive_at(plan_.tensors[t], vertex.call)) continue;
      if (Status status = use(t, node, vertex.call, true); !status.ok()) return status;
    }
    return {};
  }

  Status use(uint32_t tensor, uint32_t node, uint32_t call, bool writes) {
    if (!alive_at(plan_.tensors[tensor], call)) {
      return refusal(fmt::format("{} uses tensor {}, which is not allocated then", graph_.describe(node), tensor));
    }
    const plan::Call& by = plan_.calls[call];
    if (plan_.tensors[tensor].device != by.device && by.op != trace::OpKind::copy_peer) {
      return refusal(fmt::format("{} runs on device {} and uses tensor {}, which is on device {}",
                                 graph_.describe(node), by.device, tensor, plan_.tensors[tensor].device));
    }
    if (plan_.tensors[tensor].chunk_count == 0) return {};
    if (!resident(tensor)) {
      return refusal(fmt::format("{} needs tensor {}, which is not on the device: {}", graph_.describe(node), tensor,
                                 why_away(tensor)));
    }
    ContentInstance& instance = instances_[instance_of_[tensor]];
    if (writes) instance.host_valid = false;
    record_user(instance.occupancy, node);
    return {};
  }

  // What took its place, for messages.
  std::string why_away(uint32_t tensor) const {
    if (instance_of_[tensor] == kNone) return "nothing has taken memory for it yet";
    const ContentInstance& instance = instances_[instance_of_[tensor]];
    if (instance.taken_by == kNone) return "it is on the host and nothing has brought it in";
    return fmt::format("{} took its chunk {} and nothing has brought it back", graph_.describe(instance.taken_by),
                       instance.taken_chunk);
  }

  void record_user(uint32_t occupancy, uint32_t node) {
    Occupancy& entry = occupancies_[occupancy];
    if (entry.acquirer == node || (entry.users != kNone && users_[entry.users].node == node)) return;
    if (entry.acquirer != kNone) {
      questions_.ask(entry.acquirer, node,
                     {Requirement::early_use, entry.tensor, kNone, plan_.placements[entry.placement].chunks.front()});
    }
    users_.push_back({node, entry.users});
    entry.users = static_cast<uint32_t>(users_.size() - 1);
  }

  // All of them must be done before `node`. The users have waited for the acquirer, as was asked when they came.
  void ask_users(const Occupancy& entry, uint32_t node, const Requirement& why) {
    for (uint32_t user = entry.users; user != kNone; user = users_[user].before) {
      questions_.ask(users_[user].node, node, why);
    }
    if (entry.users == kNone && entry.acquirer != kNone) questions_.ask(entry.acquirer, node, why);
  }

  Status run_release(const plan::Vertex& vertex, uint32_t node) {
    if (instance_of_[vertex.tensor] != kNone) instances_[instance_of_[vertex.tensor]].released_by = node;
    return {};
  }

  Status run_offload(const plan::Vertex& vertex, uint32_t node) {
    if (!resident(vertex.tensor)) {
      return refusal(fmt::format("{} finds its tensor gone: {}", graph_.describe(node), why_away(vertex.tensor)));
    }
    ContentInstance& instance = instances_[instance_of_[vertex.tensor]];
    instance.host_valid = true;
    record_user(instance.occupancy, node);
    return {};
  }

  Status run_reload(const plan::Vertex& vertex, uint32_t node) {
    const uint32_t instance = instance_of_[vertex.tensor];
    if (instance == kNone || !instances_[instance].host_valid) {
      return refusal(fmt::format("{} loads a version that is not the current one", graph_.describe(node)));
    }
    return occupy(vertex.acquires[0], node);
  }

  // The tensor takes its chunks; the tensors that have them must not be needed any more, in any order.
  Status occupy(const plan::Acquire& acquire, uint32_t node) {
    const auto current = static_cast<uint32_t>(occupancies_.size());
    occupancies_.push_back({acquire.tensor, instance_of_[acquire.tensor], acquire.placement, node});
    for (const uint32_t chunk : plan_.placements[acquire.placement].chunks) {
      const uint32_t earlier = occupant_[chunk];
      occupant_[chunk] = current;
      if (earlier == kNone || occupancies_[earlier].asked_by == node) continue;
      occupancies_[earlier].asked_by = node;
      if (Status status = take_chunk(earlier, acquire.tensor, node, chunk); !status.ok()) return status;
    }
    ContentInstance& instance = instances_[instance_of_[acquire.tensor]];
    instance.occupancy = current;
    instance.taken_by = kNone;
    map(acquire.tensor, current, node);
    return {};
  }

  // The range has one mapping at a time, also across instances and lives of a transient tensor. Where it is the same as
  // before, nothing is mapped, and the users of each chunk's occupants in between have waited for those before them.
  void map(uint32_t tensor, uint32_t occupancy, uint32_t node) {
    uint32_t& mapped_by = mapped_by_[plan::root_of(plan_.tensors, tensor)];
    const uint32_t before = mapped_by;
    if (before != kNone && occupancies_[before].placement != occupancies_[occupancy].placement) {
      ask_users(occupancies_[before], node, {Requirement::remap, tensor, kNone, kNone});
    }
    mapped_by = occupancy;
  }

  Status take_chunk(uint32_t earlier, uint32_t tensor, uint32_t node, uint32_t chunk) {
    Occupancy& before = occupancies_[earlier];
    ContentInstance& state = instances_[before.instance];
    ask_users(before, node, {Requirement::overwrite, before.tensor, tensor, chunk});
    if (state.occupancy == earlier) {  // its first chunk to go: the bytes must not be needed here any more
      const bool freed = state.released_by != kNone;
      if (!freed && !state.host_valid) {
        return refusal(
            fmt::format("tensor {} is lost: {} takes its chunk {} for tensor {} before it was copied or freed",
                        before.tensor, graph_.describe(node), chunk, tensor));
      }
      if (!state.host_valid) before.freed_by = state.released_by;
      state.occupancy = kNone;
      state.taken_by = node;
      state.taken_chunk = chunk;
    }
    if (before.freed_by != kNone) {
      questions_.ask(before.freed_by, node, {Requirement::not_freed, before.tensor, tensor, chunk});
    }
    return {};
  }

  Status check_end() {
    for (uint32_t t = 0; t < plan_.tensors.size(); ++t) {
      const plan::Tensor& tensor = plan_.tensors[t];
      if (tensor.chunk_count == 0 || instance_of_[t] == kNone) continue;
      ContentInstance& state = instances_[instance_of_[t]];
      if (tensor.allocate_call != kNone) {
        if (state.released_by == kNone) return refusal(fmt::format("tensor {} is never freed", t));
        instance_of_[t] = kNone;  // its bytes stay where they are until another tensor takes the chunks
        continue;
      }
      if (tensor.resident_at_start ? tensor.clean_at_start && !state.host_valid : !state.host_valid) {
        return refusal(fmt::format("tensor {} has no valid host copy at the end, as it has at the start", t));
      }
      if (!tensor.resident_at_start) {
        // Its chunks may still be untouched, but the next iteration does not count on them.
        state.occupancy = kNone;
        continue;
      }
      if (!resident(t)) {
        return refusal(fmt::format("tensor {} is away at the end, but not at the start: {}", t, why_away(t)));
      }
      for (const uint32_t chunk : plan_.placements[tensor.home].chunks) {
        if (occupant_[chunk] != state.occupancy) {
          return refusal(fmt::format("tensor {} is not at its home at the end: chunk {} is tensor {}'s", t, chunk,
                                     occupancies_[occupant_[chunk]].tensor));
        }
      }
    }
    return {};
  }

  const plan::Plan& plan_;
  const Unrolled& graph_;
  Questions& questions_;
  std::vector<uint32_t> occupant_;  // chunk -> occupancy
  std::vector<Occupancy> occupancies_;
  std::vector<User> users_;
  std::vector<ContentInstance> instances_;
  std::vector<uint32_t> instance_of_;  // tensor -> its present instance
  std::vector<uint32_t> mapped_by_;    // tensor, the first of its lives -> the occupancy that its range shows
};

}  // namespace

bool uses_everything(const plan::Call& call) { return (call.flags & trace::kOpOpaque) != 0; }

bool alive_at(const plan::Tensor& tensor, uint32_t call) {
  return tensor.allocate_call == kNone || (tensor.allocate_call < call && call < tensor.free_call);
}

Status walk_chunks(const Unrolled& graph, Questions& questions) { return ChunkWalk(graph, questions).run(); }

}  // namespace reprise::analyzer
