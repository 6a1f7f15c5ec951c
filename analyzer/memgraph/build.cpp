#include "analyzer/memgraph/build.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "analyzer/taskgraph/flow.h"

namespace reprise::analyzer {
namespace {

using plan::EdgeKind;
using plan::VertexKind;

constexpr uint32_t kRounds = 3;  // one to fill the histories, one to see wrapped stays whole, one to read edges from

class Builder {
 public:
  Builder(const TaskGraph& graph, const Schedule& schedule, const Layout& layout)
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
    finish_edges();
    return std::move(result_);
  }

 private:
  struct StayState {
    uint32_t acquirer = kNone;      // vertex: the reload, or the op of the first touch
    std::vector<uint32_t> before;   // stays whose chunks this one takes, in the same order of the circle
    std::vector<Stamp> last_users;  // when the stay ended last: what the next occupant must wait for
  };

  uint32_t add_vertex(VertexKind kind, uint32_t position) {
    MemVertex entry;
    entry.vertex.kind = kind;
    entry.position = position;
    result_.vertices.push_back(std::move(entry));
    return static_cast<uint32_t>(result_.vertices.size() - 1);
  }

  // At each call's place: copies out of what has left by now, then copies in of what it needs, then the call itself.
  void list_vertices() {
    const auto calls = static_cast<uint32_t>(graph_.calls.size());
    std::vector<std::vector<uint32_t>> leaves(calls + 1);
    std::vector<std::vector<uint32_t>> arrives(calls + 1);
    for (uint32_t i = 0; i < schedule_.stays.size(); ++i) {
      const Stay& stay = schedule_.stays[i];
      if (stay.departure != Departure::never) leaves[stay.end].push_back(i);
      if (stay.arrival != Arrival::always) arrives[stay.begin].push_back(i);
    }
    result_.vertex_of_call.assign(calls, kNone);
    result_.vertices.reserve(calls + 2 * schedule_.stays.size());
    for (uint32_t position = 0; position <= calls; ++position) {
      for (const uint32_t stay : leaves[position]) list_departure(stay, position);
      for (const uint32_t stay : arrives[position]) list_reload(stay, position);
      if (position < calls) list_call(position, arrives[position]);
    }
  }

  void list_departure(uint32_t stay, uint32_t position) {
    const Stay& entry = schedule_.stays[stay];
    uint32_t vertex = kNone;
    if (entry.departure == Departure::offload) {
      vertex = add_vertex(VertexKind::offload, position);
      result_.vertices[vertex].vertex.tensor = entry.tensor;
      result_.vertices[vertex].tier = entry.to;
    }
    // A release's end is handled at its call.
    if (entry.departure != Departure::release) steps_.push_back({Step::end, stay, vertex});
  }

  void list_reload(uint32_t stay, uint32_t position) {
    const Stay& entry = schedule_.stays[stay];
    if (entry.arrival != Arrival::reload) return;
    const uint32_t vertex = add_vertex(VertexKind::reload, position);
    result_.vertices[vertex].vertex.tensor = entry.tensor;
    result_.vertices[vertex].tier = entry.from;
    result_.vertices[vertex].extra_ns = entry.fault_ns;
    result_.vertices[vertex].vertex.acquires.push_back({entry.tensor, entry.placement});
    stays_[stay].acquirer = vertex;
    steps_.push_back({Step::reload, stay, vertex});
  }

  void list_call(uint32_t call, const std::vector<uint32_t>& arrivals) {
    const plan::Call& entry = graph_.calls[call].call;
    if (entry.kind != plan::CallKind::op && entry.kind != plan::CallKind::free) return;
    const bool op = entry.kind == plan::CallKind::op;
    const uint32_t vertex = add_vertex(op ? VertexKind::op : VertexKind::release, call);
    result_.vertices[vertex].vertex.call = call;
    result_.vertex_of_call[call] = vertex;
    if (!op) {
      result_.vertices[vertex].vertex.tensor = entry.tensor;
      steps_.push_back({Step::give_back, entry.tensor, vertex});
      return;
    }
    for (const uint32_t stay : arrivals) {
      if (schedule_.stays[stay].arrival != Arrival::first_touch) continue;
      result_.vertices[vertex].vertex.acquires.push_back(
          {schedule_.stays[stay].tensor, schedule_.stays[stay].placement});
      stays_[stay].acquirer = vertex;
      steps_.push_back({Step::take, stay, vertex});
    }
    steps_.push_back({Step::op, call, vertex});
  }

  // For each chunk, its stays in the order of their beginning; each one follows its neighbour on the circle.
  void find_successions() {
    std::vector<std::vector<uint32_t>> stays_of_chunk(layout_.chunk_count);
    for (uint32_t i = 0; i < schedule_.stays.size(); ++i) {  // the stays stand in order of their beginning
      for (const uint32_t chunk : layout_.placements[schedule_.stays[i].placement].chunks) {
        stays_of_chunk[chunk].push_back(i);
      }
    }
    for (const std::vector<uint32_t>& stays : stays_of_chunk) {
      for (size_t i = 0; i < stays.size(); ++i) {
        stays_[stays[i]].before.push_back(stays[(i + stays.size() - 1) % stays.size()]);
      }
    }
    follow_remaps();
    for (StayState& stay : stays_) {
      std::sort(stay.before.begin(), stay.before.end());
      stay.before.erase(std::unique(stay.before.begin(), stay.before.end()), stay.before.end());
    }
  }

  // A range that is mapped anew must not be in use through its old mapping, even if the chunks are others.
  void follow_remaps() {
    std::vector<std::vector<uint32_t>> stays_of_tensor(graph_.tensors.size());
    for (uint32_t i = 0; i < schedule_.stays.size(); ++i) stays_of_tensor[schedule_.stays[i].tensor].push_back(i);
    for (const std::vector<uint32_t>& stays : stays_of_tensor) {
      for (size_t i = 0; i < stays.size(); ++i) {
        const uint32_t earlier = stays[(i + stays.size() - 1) % stays.size()];
        if (schedule_.stays[earlier].placement == schedule_.stays[stays[i]].placement) continue;
        stays_[stays[i]].before.push_back(earlier);
      }
    }
  }

  void run_round(uint32_t round) {
    std::vector<Dependency> before;
    for (const Step& step : steps_) {
      before.clear();
      const Stamp stamp{step.vertex, round};
      switch (step.what) {
        case Step::end:
          end_stay(step.index, stamp, before);
          break;
        case Step::reload:
          wait_for_chunks(step.index, before);
          wait_for_call(schedule_.stays[step.index].arrives_after, stamp, before);
          flow_.reload(schedule_.stays[step.index].tensor, stamp, before);
          break;
        case Step::take:
          wait_for_chunks(step.index, before);
          break;
        case Step::give_back:
          release(step.index, stamp);
          break;
        case Step::op:
          run_op(step.index, stamp, before);
          break;
      }
      if (round + 1 == kRounds && step.vertex != kNone) add_edges(step.vertex, round, before);
    }
  }

  void wait_for_chunks(uint32_t stay, std::vector<Dependency>& before) {
    for (const uint32_t earlier : stays_[stay].before) {
      for (const Stamp& user : stays_[earlier].last_users) before.push_back({user, EdgeKind::memory});
    }
  }

  void wait_for_call(uint32_t call, Stamp transfer, std::vector<Dependency>& before) const {
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
      wait_for_call(schedule_.stays[index].leaves_after, stamp, before);
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

  void run_op(uint32_t call, Stamp stamp, std::vector<Dependency>& before) {
    std::vector<Stamp> slab_users;
    for (const plan::Access& access : graph_.calls[call].call.accesses) touch_small(access.tensor, stamp, slab_users);
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

  void add_edges(uint32_t vertex, uint32_t round, const std::vector<Dependency>& before) {
    std::vector<plan::Predecessor>& predecessors = result_.vertices[vertex].vertex.predecessors;
    for (const Dependency& dependency : before) {
      predecessors.push_back(
          {dependency.stamp.vertex, dependency.kind, static_cast<uint8_t>(round - dependency.stamp.round)});
    }
  }

  // Each predecessor once, data edges first.
  void finish_edges() {
    for (MemVertex& entry : result_.vertices) {
      std::vector<plan::Predecessor>& list = entry.vertex.predecessors;
      std::sort(list.begin(), list.end(), [](const plan::Predecessor& a, const plan::Predecessor& b) {
        return std::tuple(a.distance, a.vertex, a.kind) < std::tuple(b.distance, b.vertex, b.kind);
      });
      const auto same = [](const plan::Predecessor& a, const plan::Predecessor& b) {
        return a.vertex == b.vertex && a.distance == b.distance;
      };
      list.erase(std::unique(list.begin(), list.end(), same), list.end());
    }
  }

  struct Step {
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
  std::vector<StayState> stays_;
  std::vector<Step> steps_;
  std::vector<uint32_t> released_stay_;  // tensor -> its stay that ends with a release
  std::vector<uint8_t> touched_;         // small transient tensors alive that an op has used
};

}  // namespace

MemGraph build_mem_graph(const TaskGraph& graph, const Schedule& schedule, const Layout& layout) {
  MemGraph result = Builder(graph, schedule, layout).build();
  reduce_edges(result);  // the builder's memory is free again
  return result;
}

}  // namespace reprise::analyzer
