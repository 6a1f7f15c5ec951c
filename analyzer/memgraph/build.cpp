#include "analyzer/memgraph/build.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "analyzer/base/groups.h"
#include "analyzer/taskgraph/flow.h"

namespace reprise::analyzer {
namespace {

using plan::EdgeKind;
using plan::VertexKind;

constexpr uint32_t kRounds = 3;  // one to fill the histories, one to see wrapped stays whole, one to read edges from

class MemGraphBuilder {
 public:
  MemGraphBuilder(const TaskGraph& graph, const Schedule& schedule, const Layout& layout)
      : graph_(graph),
        schedule_(schedule),
        layout_(layout),
        flow_(graph),
        slabs_(graph.devices),
        stays_(schedule.stays.size()),
        released_stay_(graph.tensors.size(), kNone),
        touched_(graph.tensors.size(), 0) {
    for (uint32_t i = 0; i < schedule.stays.size(); ++i) {
      if (schedule.stays[i].departure == Departure::release) released_stay_[schedule.stays[i].tensor] = i;
    }
  }

  MemGraph build() {
    list_vertices();
    find_successions();
    for (uint32_t round = 0; round < kRounds; ++round) run_round(round);
    end_edges(static_cast<uint32_t>(result_.vertices.size()));
    return std::move(result_);
  }
  EdgeList take_edges() { return std::move(edges_); }

 private:
  struct StayState {
    uint32_t acquirer = kNone;      // vertex: the reload, or the op of the first touch
    std::vector<Stamp> last_users;  // when the stay ended last: what the next occupant must wait for
  };

  uint32_t add_vertex(VertexKind kind) {
    result_.vertices.emplace_back().kind = kind;
    return static_cast<uint32_t>(result_.vertices.size() - 1);
  }

  // At each call's place: copies out of what has left by now, then copies in of what it needs, then the call itself.
  void list_vertices() {
    const auto calls = static_cast<uint32_t>(graph_.calls.size());
    const std::vector<Stay>& stays = schedule_.stays;
    const Groups leaves(calls + 1, [&](auto&& put) {
      for (uint32_t i = 0; i < stays.size(); ++i) {
        if (stays[i].departure != Departure::never) put(stays[i].end, i);
      }
    });
    const Groups arrives(calls + 1, [&](auto&& put) {
      for (uint32_t i = 0; i < stays.size(); ++i) {
        if (stays[i].arrival != Arrival::always) put(stays[i].begin, i);
      }
    });
    reserve();
    for (uint32_t position = 0; position <= calls; ++position) {
      for (const uint32_t stay : leaves[position]) list_departure(stay);
      for (const uint32_t stay : arrives[position]) list_reload(stay);
      if (position < calls) list_call(CallIndex(position), arrives[position]);
    }
  }

  // Exactly as much as there will be.
  void reserve() {
    size_t vertices = 0;
    size_t steps = 0;
    for (const GraphCall& entry : graph_.calls) {
      const plan::CallKind kind = entry.call.kind;
      if (kind == plan::CallKind::op || kind == plan::CallKind::free) ++vertices;
    }
    steps = vertices;
    for (const Stay& stay : schedule_.stays) {
      const bool offload = has_offload(stay.departure);
      if (offload) ++vertices;
      if (stay.arrival == Arrival::reload) ++vertices;
      if (offload || stay.departure == Departure::drop) ++steps;
      if (stay.arrival != Arrival::always) ++steps;
    }
    result_.vertex_of_call.assign(graph_.calls.size(), kNone);
    result_.vertices.reserve(vertices);
    result_.tiers.assign(vertices, Tier::host);
    result_.extra_ns.assign(vertices, 0);
    steps_.reserve(steps);
  }

  void list_departure(uint32_t stay) {
    const Stay& entry = schedule_.stays[stay];
    uint32_t vertex = kNone;
    if (has_offload(entry.departure)) {
      vertex = add_vertex(VertexKind::offload);
      result_.vertices[vertex].clean = entry.departure == Departure::guarded;
      result_.vertices[vertex].tensor = entry.tensor;
      result_.tiers[vertex] = entry.to;
    }
    // A release's end is handled at its call.
    if (entry.departure != Departure::release) steps_.push_back({BuildStep::end, stay, vertex});
  }

  void list_reload(uint32_t stay) {
    const Stay& entry = schedule_.stays[stay];
    if (entry.arrival != Arrival::reload) return;
    const uint32_t vertex = add_vertex(VertexKind::reload);
    result_.vertices[vertex].tensor = entry.tensor;
    result_.tiers[vertex] = entry.from;
    result_.extra_ns[vertex] = entry.fault_ns;
    result_.vertices[vertex].acquires.push_back({entry.tensor, entry.placement});
    stays_[stay].acquirer = vertex;
    steps_.push_back({BuildStep::reload, stay, vertex});
  }

  void list_call(CallIndex call, std::span<const uint32_t> arrivals) {
    const plan::Call& entry = graph_.calls[call].call;
    if (entry.kind != plan::CallKind::op && entry.kind != plan::CallKind::free) return;
    const bool op = entry.kind == plan::CallKind::op;
    const uint32_t vertex = add_vertex(op ? VertexKind::op : VertexKind::release);
    result_.vertices[vertex].call = call;
    result_.vertex_of_call[call] = vertex;
    if (!op) {
      result_.vertices[vertex].tensor = entry.tensor;
      steps_.push_back({BuildStep::give_back, entry.tensor, vertex});
      return;
    }
    for (const uint32_t stay : arrivals) {
      if (schedule_.stays[stay].arrival != Arrival::first_touch) continue;
      result_.vertices[vertex].acquires.push_back({schedule_.stays[stay].tensor, schedule_.stays[stay].placement});
      stays_[stay].acquirer = vertex;
      steps_.push_back({BuildStep::take, stay, vertex});
    }
    steps_.push_back({BuildStep::op, call, vertex});
  }

  // For each chunk, its stays in the order of their beginning; each one follows its neighbour on the circle.
  void find_successions() {
    const std::vector<Stay>& stays = schedule_.stays;  // in order of their beginning
    const Groups of_chunk(layout_.chunk_count, [&](auto&& put) {
      for (uint32_t i = 0; i < stays.size(); ++i) {
        for (const uint32_t chunk : layout_.placements[stays[i].placement].chunks) put(chunk, i);
      }
    });
    const Groups of_tensor(graph_.tensors.size(), [&](auto&& put) {
      for (uint32_t i = 0; i < stays.size(); ++i) put(plan::root_of(graph_.tensors, stays[i].tensor), i);
    });
    before_ = Groups(stays.size(), [&](auto&& put) {
      for (size_t chunk = 0; chunk < of_chunk.size(); ++chunk) {
        for_neighbours(of_chunk[chunk], put);
      }
      // A range that is mapped anew must not be in use through its old mapping, even if the chunks are others.
      for (size_t tensor = 0; tensor < of_tensor.size(); ++tensor) {
        for_neighbours(of_tensor[tensor], [&](uint32_t stay, uint32_t earlier) {
          if (stays[earlier].placement != stays[stay].placement) put(stay, earlier);
        });
      }
    });
    for (size_t i = 0; i < stays.size(); ++i) {
      const std::span<uint32_t> before = before_[i];
      std::sort(before.begin(), before.end());
    }
  }

  template <typename Visit>
  static void for_neighbours(std::span<const uint32_t> circle, Visit&& visit) {
    for (size_t i = 0; i < circle.size(); ++i) visit(circle[i], circle[(i + circle.size() - 1) % circle.size()]);
  }

  void run_round(uint32_t round) {
    std::vector<Dependency> before;
    for (const BuildStep& step : steps_) {
      before.clear();
      const Stamp stamp{step.vertex, round};
      switch (step.what) {
        case BuildStep::end:
          end_stay(step.index, stamp, before);
          break;
        case BuildStep::reload:
          wait_for_chunks(step.index, before);
          wait_for_call(CallIndex(schedule_.stays[step.index].arrives_after), stamp, before);
          flow_.reload(schedule_.stays[step.index].tensor, stamp, before);
          break;
        case BuildStep::take:
          wait_for_chunks(step.index, before);
          break;
        case BuildStep::give_back:
          release(step.index, stamp);
          break;
        case BuildStep::op:
          run_op(CallIndex(step.index), stamp, before);
          break;
      }
      if (round + 1 == kRounds && step.vertex != kNone) add_edges(step.vertex, round, before);
    }
  }

  void wait_for_chunks(uint32_t stay, std::vector<Dependency>& before) {
    uint32_t last = kNone;
    for (const uint32_t earlier : std::as_const(before_)[stay]) {
      if (earlier == last) continue;  // of many chunks that both have
      last = earlier;
      for (const Stamp& user : stays_[earlier].last_users) before.push_back({user, EdgeKind::memory});
    }
  }

  void wait_for_call(CallIndex call, Stamp transfer, std::vector<Dependency>& before) const {
    if (call == kNone) return;
    const uint32_t op = result_.vertex_of_call[call];
    const bool earlier = op < transfer.vertex;
    if (earlier || transfer.round > 0) {
      before.push_back({{op, earlier ? transfer.round : transfer.round - 1}, EdgeKind::program});
    }
  }

  void end_stay(uint32_t index, Stamp stamp, std::vector<Dependency>& before) {
    const uint32_t tensor = schedule_.stays[index].tensor;
    if (stamp.vertex != kNone) {
      wait_for_call(CallIndex(schedule_.stays[index].leaves_after), stamp, before);
      flow_.offload(tensor, stamp, before);
    }
    stays_[index].last_users = flow_.frontier(tensor);
  }

  // The slab is one resource for all small transient tensors of a device; chunks are followed stay by stay.
  void release(uint32_t tensor, Stamp stamp) {
    const plan::Tensor& entry = graph_.tensors[tensor];
    std::vector<Stamp> users = flow_.frontier(tensor);
    users.push_back(stamp);
    if (entry.chunk_count == 0) {
      std::vector<Stamp> ignored;
      if (touched_[tensor] == 0) users.clear();  // it never used its bytes
      for (const Stamp& user : users) {
        slabs_[entry.device].access(entry.slab_offset, entry.slab_offset + entry.size, false, user, ignored);
      }
    } else if (released_stay_[tensor] != kNone) {
      stays_[released_stay_[tensor]].last_users = std::move(users);
    }
    flow_.release(tensor);
    touched_[tensor] = 0;
  }

  void run_op(CallIndex call, Stamp stamp, std::vector<Dependency>& before) {
    std::vector<Stamp> slab_users;
    for (const plan::OpAccess& access : graph_.calls[call].call.accesses) touch_small(access.tensor, stamp, slab_users);
    if ((graph_.calls[call].call.flags & trace::kOpOpaque) != 0) {
      for (uint32_t tensor = 0; tensor < graph_.tensors.size(); ++tensor) {
        if (is_alive(graph_.tensors[tensor], call)) touch_small(tensor, stamp, slab_users);
      }
    }
    for (const Stamp& user : slab_users) before.push_back({user, EdgeKind::memory});
    flow_.op(call, stamp, before);
  }

  // The first op that uses a small transient tensor takes its bytes of the slab.
  void touch_small(uint32_t tensor, Stamp stamp, std::vector<Stamp>& slab_users) {
    const plan::Tensor& entry = graph_.tensors[tensor];
    if (entry.chunk_count != 0 || is_persistent(entry) || touched_[tensor] != 0) return;
    touched_[tensor] = 1;
    slabs_[entry.device].access(entry.slab_offset, entry.slab_offset + entry.size, true, stamp, slab_users);
  }

  // An op's steps follow each other, and vertices come in the order of their numbers.
  void add_edges(uint32_t vertex, uint32_t round, const std::vector<Dependency>& before) {
    if (vertex >= edges_.first.size()) {
      end_edges(vertex);
      edges_.first.push_back(static_cast<uint32_t>(edges_.edges.size()));
    }
    for (const Dependency& dependency : before) {
      edges_.edges.push_back(
          {dependency.stamp.vertex, dependency.kind, static_cast<uint8_t>(round - dependency.stamp.round)});
    }
  }

  // Each predecessor once, data edges first.
  void end_edges(uint32_t next) {
    std::vector<plan::Predecessor>& all = edges_.edges;
    if (!edges_.first.empty()) {
      const auto first = all.begin() + edges_.first.back();
      std::sort(first, all.end(), [](const plan::Predecessor& a, const plan::Predecessor& b) {
        return std::tuple(a.distance, a.vertex, a.kind) < std::tuple(b.distance, b.vertex, b.kind);
      });
      const auto same = [](const plan::Predecessor& a, const plan::Predecessor& b) {
        return a.vertex == b.vertex && a.distance == b.distance;
      };
      all.erase(std::unique(first, all.end(), same), all.end());
      edges_.last.push_back(static_cast<uint32_t>(all.size()));
    }
    // Vertices without steps have none.
    edges_.first.resize(next, static_cast<uint32_t>(all.size()));
    edges_.last.resize(next, static_cast<uint32_t>(all.size()));
  }

  struct BuildStep {
    enum What : uint8_t { end, reload, take, give_back, op } what;
    uint32_t index;   // a stay, a tensor (give_back) or a call (op)
    uint32_t vertex;  // kNone: nothing runs
  };

  const TaskGraph& graph_;
  const Schedule& schedule_;
  const Layout& layout_;
  Flow flow_;
  std::vector<Hazards> slabs_;  // by device
  MemGraph result_;
  EdgeList edges_;
  Groups before_;  // stay -> stays whose chunks it takes, in the same order of the circle
  std::vector<StayState> stays_;
  std::vector<BuildStep> steps_;
  std::vector<uint32_t> released_stay_;  // tensor -> its stay that ends with a release
  std::vector<uint8_t> touched_;         // small transient tensors alive that an op has used
};

}  // namespace

MemGraph build_mem_graph(const TaskGraph& graph, const Schedule& schedule, const Layout& layout) {
  MemGraph result;
  EdgeList list;
  {
    MemGraphBuilder builder(graph, schedule, layout);
    result = builder.build();
    list = builder.take_edges();
  }  // its memory is free again
  reduce_edges(list);
  for (size_t v = 0; v < result.vertices.size(); ++v) {
    result.vertices[v].predecessors.assign(list.edges.begin() + list.first[v], list.edges.begin() + list.last[v]);
  }
  return result;
}

}  // namespace reprise::analyzer
