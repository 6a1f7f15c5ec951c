// Data order (V2), host copies (V5), barriers.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analyzer/plan/vertex_kinds.h"
#include "analyzer/verify/machine_walk.h"

namespace reprise::analyzer {
namespace {

using plan::kNone;

// An op's access to bytes of a tensor.
struct Touch {
  uint32_t node = kNone;
  uint32_t before = kNone;  // the next older one of its list
  uint64_t begin = 0;
  uint64_t end = 0;

  bool overlaps(const Touch& other) const { return begin < other.end && other.begin < end; }
  bool covers(const Touch& other) const { return begin <= other.begin && other.end <= end; }
};

// Lists of touches, newest first, in one pool.
class Touches {
 public:
  const Touch& operator[](uint32_t index) const { return pool_[index]; }
  void push(uint32_t& list, Touch touch) {
    touch.before = list;
    if (free_ == kNone) {
      list = static_cast<uint32_t>(pool_.size());
      pool_.push_back(touch);
      return;
    }
    list = free_;
    free_ = pool_[list].before;
    pool_[list] = touch;
  }
  template <typename Condition>
  void remove_if(uint32_t& list, Condition&& condition) {
    for (uint32_t* at = &list; *at != kNone;) {
      const uint32_t index = *at;
      if (!condition(pool_[index])) {
        at = &pool_[index].before;
        continue;
      }
      *at = pool_[index].before;
      pool_[index].before = free_;
      free_ = index;
    }
  }

 private:
  std::vector<Touch> pool_;
  uint32_t free_ = kNone;
};

// What has happened to a tensor so far. Ops that a later write covers are left out: an op that conflicts with them
// conflicts with that write, which has waited for them.
//
// What the walk over the chunks has asked already is not asked again: users of a tensor wait for the node that brought
// it into its chunks; a node that takes a chunk waits for all users of the tensor that was there, and a node that maps
// a tensor elsewhere for all its users. So a reload waits for all nodes that ever used its tensor.
struct History {
  uint32_t writes = kNone;  // lists of touches
  uint32_t reads = kNone;
  uint32_t copies = kNone;    // offloads that no write of all bytes has followed
  uint32_t acquirer = kNone;  // node that brought it into its present chunks
};

class ConflictWalk {
 public:
  ConflictWalk(const Unrolled& graph, Questions& questions)
      : plan_(graph.plan()), graph_(graph), questions_(questions), histories_(plan_.tensors.size()) {}

  Status run() {
    for (uint32_t node = 0; node < graph_.size(); ++node) {
      if (node == graph_.size() / Unrolled::kRounds) forget_transients();
      const plan::Vertex& vertex = plan_.vertices[graph_.vertex_of(node)];
      if (plan::runs_op(vertex.kind)) {
        if (Status status = add_op(vertex.call, node); !status.ok()) return status;
      } else if (plan::copies_out(vertex.kind)) {
        add_offload(vertex.tensor, node);
      } else if (plan::copies_in(vertex.kind)) {
        add_reload(vertex.tensor, node);
      }
    }
    ask_barriers();
    return {};
  }

 private:
  // The next iteration's transient tensors are new ones.
  void forget_transients() {
    const auto everything = [](const Touch&) { return true; };
    for (uint32_t t = 0; t < plan_.tensors.size(); ++t) {
      if (plan_.tensors[t].allocate_call == kNone) continue;
      History& history = histories_[t];
      for (uint32_t* list : {&history.writes, &history.reads, &history.copies}) touches_.remove_if(*list, everything);
      history = {};
    }
  }

  Touch whole(uint32_t tensor, uint32_t node) const { return {node, kNone, 0, plan_.tensors[tensor].size}; }

  Status add_op(uint32_t index, uint32_t node) {
    const plan::Call& call = plan_.calls[index];
    for (const plan::Acquire& acquire : plan_.vertices[graph_.vertex_of(node)].acquires) {
      histories_[acquire.tensor].acquirer = node;
    }
    for (const plan::OpAccess& access : call.accesses) {
      Touch touch = whole(access.tensor, node);
      if (access.size != 0) {
        touch.begin = access.offset;
        touch.end = access.offset + access.size;
      }
      if (Status status = add_touch(access.tensor, touch, writes(access)); !status.ok()) return status;
    }
    if (!uses_everything(call)) return {};
    for (uint32_t t = 0; t < plan_.tensors.size(); ++t) {
      if (!alive_at(plan_.tensors[t], index)) continue;
      if (Status status = add_touch(t, whole(t, node), true); !status.ok()) return status;
    }
    return {};
  }

  Status add_touch(uint32_t tensor, const Touch& touch, bool writes) {
    History& history = histories_[tensor];
    for (uint32_t at = history.writes; at != kNone; at = touches_[at].before) {
      if (Status status = follow(tensor, touches_[at], touch); !status.ok()) return status;
      if (touches_[at].covers(touch)) break;
    }
    if (!writes) {
      touches_.push(history.reads, touch);
      return {};
    }
    for (const uint32_t list : {history.reads, history.copies}) {
      for (uint32_t at = list; at != kNone; at = touches_[at].before) {
        if (Status status = follow(tensor, touches_[at], touch); !status.ok()) return status;
      }
    }
    const auto superseded = [&](const Touch& earlier) { return touch.covers(earlier); };
    for (uint32_t* list : {&history.writes, &history.reads, &history.copies}) touches_.remove_if(*list, superseded);
    touches_.push(history.writes, touch);
    return {};
  }

  // `later` stands behind `earlier` in the plan's order and conflicts with it where they overlap.
  Status follow(uint32_t tensor, const Touch& earlier, const Touch& later) {
    if (!earlier.overlaps(later) || earlier.node == later.node) return {};
    const uint32_t call = plan_.vertices[graph_.vertex_of(earlier.node)].call;
    if (call != kNone && graph_.round_of(earlier.node) == graph_.round_of(later.node) &&
        call > plan_.vertices[graph_.vertex_of(later.node)].call) {
      return refusal(
          fmt::format("{} {}, tensor {}, and runs before {} {}, but the program has them the other way round",
                      graph_.describe(earlier.node), use_of(graph_, earlier.node, tensor), tensor,
                      graph_.describe(later.node), use_of(graph_, later.node, tensor)));
    }
    if (here(earlier.node, tensor)) ask(earlier.node, later.node, tensor);
    return {};
  }

  // Has the tensor been in its present chunks since before this node?
  bool here(uint32_t node, uint32_t tensor) const {
    const uint32_t acquirer = histories_[tensor].acquirer;
    return acquirer == kNone || node > acquirer;
  }

  void ask(uint32_t from, uint32_t to, uint32_t tensor) {
    questions_.ask(from, to, {Requirement::conflict, tensor, kNone, kNone});
  }
  void ask_host(uint32_t from, uint32_t to, uint32_t tensor) {
    questions_.ask(from, to, {Requirement::host_copy, tensor, kNone, kNone});
  }

  void ask_all(uint32_t list, uint32_t node, uint32_t tensor) {
    for (uint32_t at = list; at != kNone && here(touches_[at].node, tensor); at = touches_[at].before) {
      ask(touches_[at].node, node, tensor);
    }
  }

  // Reads all bytes, writes the host copy.
  void add_offload(uint32_t tensor, uint32_t node) {
    History& history = histories_[tensor];
    ask_all(history.writes, node, tensor);
    if (history.copies != kNone && here(touches_[history.copies].node, tensor)) {
      ask_host(touches_[history.copies].node, node, tensor);
    }
    touches_.push(history.copies, whole(tensor, node));
  }

  // Writes all bytes, reads the host copy: behind all nodes that used the tensor before, as the walk over the chunks
  // has asked.
  void add_reload(uint32_t tensor, uint32_t node) { histories_[tensor].acquirer = node; }

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
  std::vector<History> histories_;
  Touches touches_;
};

}  // namespace

Status walk_conflicts(const Unrolled& graph, Questions& questions) { return ConflictWalk(graph, questions).run(); }

}  // namespace reprise::analyzer
