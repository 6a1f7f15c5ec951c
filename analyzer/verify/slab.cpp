// Small transient tensors in the slab (V6).
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analyzer/verify/machine_walk.h"

namespace reprise::analyzer {
namespace {

using plan::kNone;

struct Bytes {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint32_t device = 0;
  bool overlaps(const Bytes& other) const { return device == other.device && begin < other.end && other.begin < end; }
};

struct Small {
  uint32_t tensor = kNone;
  uint32_t round = 0;
  Bytes bytes;
  std::vector<uint32_t> users;  // nodes, in the program's order
};

class SlabWalk {
 public:
  SlabWalk(const plan::Plan& plan, const Unrolled& graph, Questions& questions)
      : plan_(plan), graph_(graph), questions_(questions) {}

  Status run() {
    if (Status status = check_lifetimes(); !status.ok()) return status;
    std::vector<Small> present;  // the last user of each byte
    for (uint32_t round = 0; round < Unrolled::kRounds; ++round) {
      for (Small& next : smalls_in(round)) {
        for (const Small& before : present) {
          if (before.bytes.overlaps(next.bytes)) ask(before, next);
        }
        replace(present, std::move(next));
      }
    }
    return {};
  }

 private:
  bool is_small(const plan::Tensor& tensor) const { return tensor.chunk_count == 0 && tensor.allocate_call != kNone; }
  static Bytes bytes_of(const plan::Tensor& tensor) {
    return {tensor.slab_offset, tensor.slab_offset + tensor.size, tensor.device};
  }

  // Those that are alive at the same time have their own bytes.
  Status check_lifetimes() const {
    std::vector<uint32_t> alive;
    for (const plan::Call& call : plan_.calls) {
      if (call.kind == plan::CallKind::op || !is_small(plan_.tensors[call.tensor])) continue;
      if (call.kind == plan::CallKind::free) {
        std::erase(alive, call.tensor);
        continue;
      }
      for (const uint32_t other : alive) {
        if (bytes_of(plan_.tensors[other]).overlaps(bytes_of(plan_.tensors[call.tensor]))) {
          return {StatusCode::internal,
                  fmt::format("the plan is wrong: small tensors {} and {} overlap in the slab", other, call.tensor)};
        }
      }
      alive.push_back(call.tensor);
    }
    return {};
  }

  // In order of first use; those that nothing uses are left out.
  std::vector<Small> smalls_in(uint32_t round) const {
    std::vector<Small> smalls;
    std::vector<uint32_t> place(plan_.tensors.size(), kNone);
    for (uint32_t index = 0; index < plan_.calls.size(); ++index) {
      const plan::Call& call = plan_.calls[index];
      if (call.kind != plan::CallKind::op) continue;
      const uint32_t node = graph_.node(call.vertex, round);
      for (const plan::Access& access : call.accesses) add_user(access.tensor, round, node, place, smalls);
      if (!uses_everything(call)) continue;
      for (uint32_t t = 0; t < plan_.tensors.size(); ++t) {
        if (alive_at(plan_.tensors[t], index)) add_user(t, round, node, place, smalls);
      }
    }
    return smalls;
  }

  void add_user(uint32_t tensor, uint32_t round, uint32_t node, std::vector<uint32_t>& place,
                std::vector<Small>& smalls) const {
    if (!is_small(plan_.tensors[tensor])) return;
    if (place[tensor] == kNone) {
      place[tensor] = static_cast<uint32_t>(smalls.size());
      smalls.push_back({tensor, round, bytes_of(plan_.tensors[tensor]), {}});
    }
    std::vector<uint32_t>& users = smalls[place[tensor]].users;
    if (users.empty() || users.back() != node) users.push_back(node);
  }

  void ask(const Small& before, const Small& next) {
    const Requirement why{Requirement::slab, before.tensor, next.tensor, kNone};
    const uint32_t freed = plan_.calls[plan_.tensors[before.tensor].free_call].vertex;
    const uint32_t first = next.users.front();
    questions_.ask(graph_.node(freed, before.round), first, why);
    for (const uint32_t user : before.users) questions_.ask(user, first, why);
    for (const uint32_t user : next.users) questions_.ask(first, user, why);
  }

  static void replace(std::vector<Small>& present, Small next) {
    std::vector<Small> left;
    for (Small& small : present) {
      if (!small.bytes.overlaps(next.bytes)) {
        left.push_back(std::move(small));
        continue;
      }
      if (small.bytes.begin < next.bytes.begin) {
        left.push_back(small);
        left.back().bytes.end = next.bytes.begin;
      }
      if (small.bytes.end > next.bytes.end) {
        left.push_back(small);
        left.back().bytes.begin = next.bytes.end;
      }
    }
    left.push_back(std::move(next));
    present = std::move(left);
  }

  const plan::Plan& plan_;
  const Unrolled& graph_;
  Questions& questions_;
};

}  // namespace

Status walk_slab(const plan::Plan& plan, const Unrolled& graph, Questions& questions) {
  return SlabWalk(plan, graph, questions).run();
}

}  // namespace reprise::analyzer
