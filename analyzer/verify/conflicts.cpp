// Data order (V2), host copies (V5), barriers.
#include <fmt/format.h>

#include <tuple>
#include <vector>

#include "analyzer/verify/machine_walk.h"

namespace reprise::analyzer {
namespace {

using plan::kNone;

struct Touch {
  uint32_t node = kNone;
  uint32_t call = kNone;  // kNone: a transfer
  uint32_t round = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  bool writes = false;
};

class ConflictWalk {
 public:
  ConflictWalk(const plan::Plan& plan, const Unrolled& graph, Questions& questions)
      : plan_(plan), graph_(graph), questions_(questions), touches_(plan.tensors.size()), host_(plan.tensors.size()) {}

  Status run() {
    for (uint32_t round = 0; round < Unrolled::kRounds; ++round) {
      for (const uint32_t index : plan_.order) {
        const plan::Vertex& vertex = plan_.vertices[index];
        const uint32_t node = graph_.node(index, round);
        if (vertex.kind == plan::VertexKind::op) {
          if (Status status = add_op(vertex.call, node, round); !status.ok()) return status;
        } else if (vertex.kind != plan::VertexKind::release) {
          const bool reload = vertex.kind == plan::VertexKind::reload;
          const Touch touch{node, kNone, round, 0, plan_.tensors[vertex.tensor].size, reload};
          if (Status status = add(touches_[vertex.tensor], vertex.tensor, touch); !status.ok()) return status;
          const Touch copy{node, kNone, round, 0, 1, !reload};
          if (Status status = add(host_[vertex.tensor], vertex.tensor, copy, Requirement::host_copy); !status.ok()) {
            return status;
          }
        }
      }
      // The next iteration's transient tensors are new ones.
      for (uint32_t t = 0; t < plan_.tensors.size(); ++t) {
        if (plan_.tensors[t].allocate_call == kNone) continue;
        touches_[t].clear();
        host_[t].clear();
      }
    }
    ask_barriers();
    return {};
  }

 private:
  Status add_op(uint32_t index, uint32_t node, uint32_t round) {
    const plan::Call& call = plan_.calls[index];
    for (const plan::Access& access : call.accesses) {
      const uint64_t size = plan_.tensors[access.tensor].size;
      Touch touch{node, index, round, access.offset, access.offset + access.size, false};
      if (access.size == 0) std::tie(touch.begin, touch.end) = std::pair<uint64_t, uint64_t>(0, size);
      touch.writes = (access.mode & trace::kAccessWrite) != 0;
      if (Status status = add(touches_[access.tensor], access.tensor, touch); !status.ok()) return status;
    }
    if (!uses_everything(call)) return {};
    for (uint32_t t = 0; t < plan_.tensors.size(); ++t) {
      if (!alive_at(plan_.tensors[t], index)) continue;
      const Touch touch{node, index, round, 0, plan_.tensors[t].size, true};
      if (Status status = add(touches_[t], t, touch); !status.ok()) return status;
    }
    return {};
  }

  // Looks back to the last writer of the whole range: what is older stands before that one.
  Status add(std::vector<Touch>& history, uint32_t tensor, const Touch& touch,
             Requirement::Kind kind = Requirement::conflict) {
    for (size_t i = history.size(); i-- > 0;) {
      const Touch& earlier = history[i];
      const bool overlaps = earlier.begin < touch.end && touch.begin < earlier.end;
      if (!overlaps || earlier.node == touch.node || (!earlier.writes && !touch.writes)) continue;
      if (earlier.call != kNone && touch.call != kNone &&
          std::tuple(earlier.round, earlier.call) > std::tuple(touch.round, touch.call)) {
        return {StatusCode::internal,
                fmt::format("the plan is wrong: {} runs before {}, but the program uses tensor {} the other way round",
                            graph_.describe(earlier.node), graph_.describe(touch.node), tensor)};
      }
      questions_.ask(earlier.node, touch.node, {kind, tensor, kNone, kNone});
      if (earlier.writes && earlier.begin <= touch.begin && touch.end <= earlier.end) break;
    }
    history.push_back(touch);
    return {};
  }

  // Ops about which not everything is known keep their place among all ops.
  static bool is_barrier(const plan::Call& call) {
    if (call.kind != plan::CallKind::op) return false;
    if (uses_everything(call) || call.op == trace::OpKind::host_function) return true;
    const bool launch = call.op == trace::OpKind::launch || call.op == trace::OpKind::graph_launch;
    return launch && call.accesses.empty();
  }

  void ask_barriers() {
    uint32_t barrier = kNone;  // the last one's node
    std::vector<uint32_t> since;
    for (uint32_t round = 0; round < Unrolled::kRounds; ++round) {
      for (const plan::Call& call : plan_.calls) {
        if (call.kind != plan::CallKind::op) continue;
        const uint32_t node = graph_.node(call.vertex, round);
        const Requirement why{Requirement::barrier, kNone, kNone, kNone};
        if (barrier != kNone) questions_.ask(barrier, node, why);
        if (!is_barrier(call)) {
          since.push_back(node);
          continue;
        }
        for (const uint32_t earlier : since) questions_.ask(earlier, node, why);
        since.clear();
        barrier = node;
      }
    }
  }

  const plan::Plan& plan_;
  const Unrolled& graph_;
  Questions& questions_;
  std::vector<std::vector<Touch>> touches_;
  std::vector<std::vector<Touch>> host_;
};

}  // namespace

Status walk_conflicts(const plan::Plan& plan, const Unrolled& graph, Questions& questions) {
  return ConflictWalk(plan, graph, questions).run();
}

}  // namespace reprise::analyzer
