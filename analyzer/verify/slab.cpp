// Small transient tensors in the slab (V6).
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "analyzer/verify/machine_walk.h"

namespace reprise::analyzer {
namespace {

using plan::kNone;

// A small tensor in one iteration, with the nodes that use it, in the program's order.
struct Small {
  uint32_t tensor = kNone;
  uint32_t round = 0;
  std::vector<uint32_t> users;
};

class SlabWalk {
 public:
  SlabWalk(const Unrolled& graph, Questions& questions)
      : plan_(graph.plan()), graph_(graph), questions_(questions), present_(device_count(plan_)) {}

  Status run() {
    if (Status status = check_lifetimes(); !status.ok()) return status;
    for (uint32_t round = 0; round < Unrolled::kRounds; ++round) find_smalls(round);
    for (uint32_t index = 0; index < smalls_.size(); ++index) take_place(index);
    return {};
  }

 private:
  bool is_small(const plan::Tensor& tensor) const { return tensor.chunk_count == 0 && tensor.allocate_call != kNone; }
  uint64_t begin_of(uint32_t tensor) const { return plan_.tensors[tensor].slab_offset; }
  uint64_t end_of(uint32_t tensor) const { return begin_of(tensor) + plan_.tensors[tensor].size; }

  // Those that are alive at the same time have their own bytes.
  Status check_lifetimes() const {
    std::vector<std::map<uint64_t, uint32_t>> slabs(device_count(plan_));  // by first byte; they do not overlap
    for (const plan::Call& call : plan_.calls) {
      if (call.kind == plan::CallKind::op || call.kind == plan::CallKind::late_free ||
          !is_small(plan_.tensors[call.tensor]))
        continue;
      std::map<uint64_t, uint32_t>& alive = slabs[plan_.tensors[call.tensor].device];
      if (call.kind == plan::CallKind::free) {
        alive.erase(begin_of(call.tensor));
        continue;
      }
      const auto next = alive.lower_bound(begin_of(call.tensor));
      uint32_t other = kNone;
      if (next != alive.end() && next->first < end_of(call.tensor)) other = next->second;
      if (next != alive.begin() && end_of(std::prev(next)->second) > begin_of(call.tensor)) {
        other = std::prev(next)->second;
      }
      if (other != kNone) {
        return refusal(fmt::format("small tensors {} and {} are alive at once and overlap in the slab, at byte {}",
                                   other, call.tensor, std::max(begin_of(other), begin_of(call.tensor))));
      }
      alive.emplace(begin_of(call.tensor), call.tensor);
    }
    return {};
  }

  // In order of first use; those that nothing uses are left out.
  void find_smalls(uint32_t round) {
    std::vector<uint32_t> place(plan_.tensors.size(), kNone);
    for (uint32_t index = 0; index < plan_.calls.size(); ++index) {
      const plan::Call& call = plan_.calls[index];
      if (call.kind != plan::CallKind::op) continue;
      const uint32_t node = graph_.node(call.vertex, round);
      for (const plan::OpAccess& access : call.accesses) add_user(access.tensor, round, node, place);
      if (!uses_everything(call)) continue;
      for (uint32_t t = 0; t < plan_.tensors.size(); ++t) {
        if (alive_at(plan_.tensors[t], index)) add_user(t, round, node, place);
      }
    }
  }

  void add_user(uint32_t tensor, uint32_t round, uint32_t node, std::vector<uint32_t>& place) {
    if (!is_small(plan_.tensors[tensor])) return;
    if (place[tensor] == kNone) {
      place[tensor] = static_cast<uint32_t>(smalls_.size());
      smalls_.push_back({tensor, round, {}});
    }
    std::vector<uint32_t>& users = smalls_[place[tensor]].users;
    if (users.empty() || users.back() != node) users.push_back(node);
  }

  // It waits for those whose bytes it takes, and all its users wait for the first one.
  void take_place(uint32_t index) {
    const Small& next = smalls_[index];
    const uint64_t begin = begin_of(next.tensor);
    const uint64_t end = end_of(next.tensor);
    SlabRanges& ranges = present_[plan_.tensors[next.tensor].device];
    split_at(ranges, begin);
    split_at(ranges, end);
    const auto first = ranges.lower_bound(begin);
    const auto last = ranges.lower_bound(end);
    for (auto range = first; range != last; ++range) ask(smalls_[range->second.small], next);
    ranges.erase(first, last);
    ranges[begin] = {end, index};
  }

  struct SlabRange {
    uint64_t end = 0;
    uint32_t small = 0;
  };
  using SlabRanges = std::map<uint64_t, SlabRange>;  // by first byte: whose bytes these are now

  static void split_at(SlabRanges& ranges, uint64_t byte) {
    const auto behind = ranges.lower_bound(byte);
    if (behind == ranges.begin()) return;
    const auto range = std::prev(behind);
    if (range->second.end <= byte) return;
    ranges.emplace_hint(behind, byte, range->second);
    range->second.end = byte;
  }

  void ask(const Small& before, const Small& next) {
    const Requirement why{Requirement::slab, before.tensor, next.tensor, kNone};
    const uint32_t freed = plan_.calls[plan_.tensors[before.tensor].free_call].vertex;
    const uint32_t first = next.users.front();
    questions_.ask(graph_.node(freed, before.round), first, why);
    for (const uint32_t user : before.users) questions_.ask(user, first, why);
    for (const uint32_t user : next.users) questions_.ask(first, user, why);
  }

  const plan::Plan& plan_;
  const Unrolled& graph_;
  Questions& questions_;
  std::vector<Small> smalls_;        // of both iterations, in order of first use
  std::vector<SlabRanges> present_;  // by device
};

}  // namespace

Status walk_slab(const Unrolled& graph, Questions& questions) { return SlabWalk(graph, questions).run(); }

}  // namespace reprise::analyzer
