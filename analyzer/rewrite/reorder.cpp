#include "analyzer/rewrite/reorder.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace reprise::analyzer {
namespace {

class Mover {
 public:
  explicit Mover(const TaskGraph& graph)
      : graph_(graph), behind_(graph.calls.size()), last_use_(graph.tensors.size(), kNone), floor_(graph.calls.size()) {
    std::iota(behind_.begin(), behind_.end(), 0u);
  }

  TaskGraph run() {
    find_last_uses();
    find_floors();
    move_updates();
    if (!moved_) return graph_;
    move_frees();
    return renumbered();
  }

 private:
  const plan::Call& call(uint32_t index) const { return graph_.calls[index].call; }
  bool is_chunked_transient(uint32_t tensor) const {
    return !is_persistent(graph_.tensors[tensor]) && graph_.tensors[tensor].chunk_count != 0;
  }

  void find_last_uses() {
    for (uint32_t index = 0; index < graph_.calls.size(); ++index) {
      for (const plan::OpAccess& access : call(index).accesses) last_use_[access.tensor] = index;
    }
  }

  // The first place to which a call may move: behind the last barrier, and behind what the program waits for.
  void find_floors() {
    std::vector<uint8_t> cut(graph_.calls.size() + 1, 0);
    cut[graph_.waited_at_end] = 1;
    for (uint32_t index = 0; index < graph_.calls.size(); ++index) {
      cut[graph_.calls[index].waited] = 1;
      const plan::CallKind kind = call(index).kind;
      const bool handover = kind == plan::CallKind::free_handover || kind == plan::CallKind::allocate_handover;
      if (handover || graph_.calls[index].barrier) cut[index] = cut[index + 1] = 1;
    }
    uint32_t floor = 0;
    for (uint32_t index = 0; index < graph_.calls.size(); ++index) {
      if (cut[index] != 0) floor = index;
      floor_[index] = floor;
    }
  }

  bool is_update(uint32_t index) const {
    const plan::Call& op = call(index);
    if (op.kind != plan::CallKind::op || op.op != trace::OpKind::launch || op.recompute_of != kNone) return false;
    if (graph_.calls[index].barrier || op.accesses.empty()) return false;
    bool frees = false;
    for (const plan::OpAccess& access : op.accesses) {
      if (changes(access) && !is_persistent(graph_.tensors[access.tensor])) return false;
      frees = frees || (is_chunked_transient(access.tensor) && last_use_[access.tensor] == index);
    }
    return frees;
  }

  // behind_: the call behind which each one stands in the new order; those that do not move stand at their own place.
  // Edges lead forward, so what an op waits for has its place already.
  void move_updates() {
    auto edge = by_target().begin();
    const std::vector<DataEdge>& edges = targets_;
    uint32_t other = 0;  // behind the last op that is no update: passing other updates is of no use
    for (uint32_t index = 0; index < graph_.calls.size(); ++index) {
      uint32_t behind = floor_[index] == 0 ? 0 : floor_[index] - 1;
      for (; edge != edges.end() && edge->to == index; ++edge) behind = std::max(behind, behind_[edge->from]);
      if (!is_update(index)) {
        if (call(index).kind == plan::CallKind::op) other = index + 1;
        continue;
      }
      for (const plan::OpAccess& access : call(index).accesses) {
        const plan::Tensor& tensor = graph_.tensors[access.tensor];
        if (!is_persistent(tensor)) behind = std::max(behind, tensor.allocate_call);
      }
      if (behind + 1 >= other) continue;
      behind_[index] = behind;
      moved_ = true;
    }
  }

  std::vector<DataEdge>& by_target() {
    for (const DataEdge& edge : graph_.edges) {
      if (edge.distance == 0) targets_.push_back(edge);
    }
    std::sort(targets_.begin(), targets_.end(), [](const DataEdge& a, const DataEdge& b) { return a.to < b.to; });
    return targets_;
  }

  // A tensor is freed behind its last use, wherever that has moved.
  void move_frees() {
    std::vector<uint32_t> behind(graph_.tensors.size(), 0);
    for (uint32_t index = 0; index < graph_.calls.size(); ++index) {
      for (const plan::OpAccess& access : call(index).accesses) {
        behind[access.tensor] = std::max(behind[access.tensor], behind_[index]);
      }
    }
    for (uint32_t tensor = 0; tensor < graph_.tensors.size(); ++tensor) {
      const uint32_t last = last_use_[tensor];
      if (!is_chunked_transient(tensor) || last == kNone || behind_[last] == last) continue;
      const uint32_t free = graph_.tensors[tensor].free_call;
      const uint32_t floor = floor_[free] == 0 ? 0 : floor_[free] - 1;
      behind_[free] = std::min(free, std::max(floor, behind[tensor]));
    }
  }

  TaskGraph renumbered() const {
    TaskGraph result = graph_;
    result.reordered_from.resize(graph_.calls.size());
    std::iota(result.reordered_from.begin(), result.reordered_from.end(), 0u);
    const auto key = [&](uint32_t index) { return std::tuple(behind_[index], behind_[index] != index, index); };
    std::sort(result.reordered_from.begin(), result.reordered_from.end(),
              [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
    std::vector<uint32_t> now(graph_.calls.size());
    for (uint32_t index = 0; index < now.size(); ++index) now[result.reordered_from[index]] = index;
    for (uint32_t index = 0; index < now.size(); ++index) {
      GraphCall& entry = result.calls[index] = graph_.calls[result.reordered_from[index]];
      if (entry.call.recompute_of != kNone) entry.call.recompute_of = now[entry.call.recompute_of];
    }
    for (plan::Tensor& tensor : result.tensors) {
      if (is_persistent(tensor)) continue;
      tensor.allocate_call = now[tensor.allocate_call];
      tensor.free_call = now[tensor.free_call];
    }
    complete_task_graph(result);
    result.peak_bytes = graph_.peak_bytes;  // the program's, for people
    return result;
  }

  const TaskGraph& graph_;
  std::vector<uint32_t> behind_;    // by call
  std::vector<uint32_t> last_use_;  // by tensor: call
  std::vector<uint32_t> floor_;     // by call
  std::vector<DataEdge> targets_;   // within an iteration, by target
  bool moved_ = false;
};

}  // namespace

TaskGraph with_reordered_updates(const TaskGraph& graph) { return Mover(graph).run(); }

}  // namespace reprise::analyzer
