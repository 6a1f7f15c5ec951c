#include "analyzer/taskgraph/recompute_uses.h"

#include <algorithm>

namespace reprise::analyzer {

RecomputeUses::RecomputeUses(const TaskGraph& graph)
    : graph_(graph),
      uses_(graph.tensors.size()),
      writes_(graph.tensors.size()),
      maker_(graph.tensors.size(), kNone),
      repeatable_(graph.calls.size(), 0) {
  start_ns_.push_back(0);
  for (uint32_t call = 0; call < graph.calls.size(); ++call) {
    start_ns_.push_back(start_ns_.back() + graph.calls[call].call.duration_ns);
    for (const plan::OpAccess& access : graph.calls[call].call.accesses) {
      std::vector<uint32_t>& uses = uses_[access.tensor];
      if (uses.empty() || uses.back() != call) uses.push_back(call);
      std::vector<uint32_t>& written = writes_[access.tensor];
      if (changes(access) && (written.empty() || written.back() != call)) written.push_back(call);
    }
  }
  for (uint32_t tensor = 0; tensor < maker_.size(); ++tensor) {
    if (is_persistent(graph.tensors[tensor]) || writes_[tensor].size() != 1) continue;
    if (uses_[tensor].front() == writes_[tensor].front()) maker_[tensor] = writes_[tensor].front();
  }
  for (uint32_t call = 0; call < graph.calls.size(); ++call) {
    const GraphCall& entry = graph.calls[call];
    if (!entry.call.pure || entry.barrier || !entry.foreign.empty() || entry.call.op != trace::OpKind::launch) continue;
    repeatable_[call] =
        std::all_of(entry.call.accesses.begin(), entry.call.accesses.end(),
                    [&](const plan::OpAccess& a) { return !changes(a) || (maker_[a.tensor] == call && !reads(a)); });
  }
}

RecomputeUses::Idle RecomputeUses::longest_idle(uint32_t call) const {
  Idle longest;
  for (const plan::OpAccess& access : graph_.calls[call].call.accesses) {
    if (!changes(access) || graph_.tensors[access.tensor].chunk_count == 0) continue;
    const std::vector<uint32_t>& uses = uses_[access.tensor];
    for (size_t i = 0; i + 1 < uses.size(); ++i) {
      const uint64_t idle = time_between(uses[i], uses[i + 1]);
      if (idle > longest.ns) longest = {uses[i + 1], idle};
    }
  }
  return longest;
}

bool RecomputeUses::written_between(uint32_t tensor, uint32_t after, uint32_t before) const {
  const auto next = std::upper_bound(writes_[tensor].begin(), writes_[tensor].end(), after);
  return next != writes_[tensor].end() && *next < before;
}

}  // namespace reprise::analyzer
