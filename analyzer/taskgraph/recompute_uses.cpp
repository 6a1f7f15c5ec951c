#include "analyzer/taskgraph/recompute_uses.h"

#include <algorithm>

namespace reprise::analyzer {

RecomputeUses::RecomputeUses(const TaskGraph& graph)
    : graph_(graph),
      uses_(graph.tensors.size()),
      writes_(graph.tensors.size()),
      maker_(graph.tensors.size(), CallIndex{kNone}),
      repeatable_(graph.calls.size(), 0) {
  start_ns_.push_back(0);
  for (CallIndex call{0}; call < graph.calls.size(); ++call) {
    start_ns_.push_back(start_ns_.back() + graph.calls[call].call.duration_ns);
    record_unseen_writes(call);
    for (const plan::OpAccess& access : graph.calls[call].call.accesses) {
      std::vector<CallIndex>& uses = uses_[access.tensor];
      if (uses.empty() || uses.back() != call) uses.push_back(call);
      std::vector<CallIndex>& written = writes_[access.tensor];
      if (changes(access) && (written.empty() || written.back() != call)) written.push_back(call);
    }
  }
  for (uint32_t tensor = 0; tensor < maker_.size(); ++tensor) {
    if (is_persistent(graph.tensors[tensor]) || writes_[tensor].size() != 1 || uses_[tensor].empty()) continue;
    if (uses_[tensor].front() == writes_[tensor].front()) maker_[tensor] = writes_[tensor].front();
  }
  for (CallIndex call{0}; call < graph.calls.size(); ++call) {
    const GraphCall& entry = graph.calls[call];
    if (!entry.call.pure || entry.barrier || !entry.foreign.empty() || entry.call.op != trace::OpKind::launch) continue;
    const std::vector<plan::OpAccess>& all = entry.call.accesses;
    repeatable_[call] = std::all_of(all.begin(), all.end(), [&](const plan::OpAccess& a) {
      const auto reads_it = [&](const plan::OpAccess& other) { return other.tensor == a.tensor && reads(other); };
      return !changes(a) || (maker_[a.tensor] == call && std::none_of(all.begin(), all.end(), reads_it));
    });
  }
}

// Those that no access names: a handover gives the bytes up, and an opaque op may change whatever is alive. So may one
// that strays: what it touches is neither dropped nor made again across it.
void RecomputeUses::record_unseen_writes(CallIndex call) {
  const plan::Call& entry = graph_.calls[call].call;
  if (entry.kind == plan::CallKind::free_handover || entry.kind == plan::CallKind::allocate_handover) {
    writes_[entry.tensor].push_back(call);
  }
  const bool strays = graph_.strays && plan::may_stray(entry);
  if (entry.kind != plan::CallKind::op || (!strays && (entry.flags & trace::kOpOpaque) == 0)) return;
  for (uint32_t tensor = 0; tensor < writes_.size(); ++tensor) {
    if (is_alive(graph_.tensors[tensor], call)) writes_[tensor].push_back(call);
  }
}

RecomputeUses::Idle RecomputeUses::longest_idle(CallIndex call) const {
  Idle longest;
  for (const plan::OpAccess& access : graph_.calls[call].call.accesses) {
    if (!changes(access) || graph_.tensors[access.tensor].chunk_count == 0) continue;
    const std::vector<CallIndex>& uses = uses_[access.tensor];
    for (size_t i = 0; i + 1 < uses.size(); ++i) {
      const uint64_t idle = time_between(uses[i], uses[i + 1]);
      if (idle > longest.ns) longest = {uses[i + 1], idle};
    }
  }
  return longest;
}

bool RecomputeUses::written_between(uint32_t tensor, CallIndex after, CallIndex before) const {
  const auto next = std::upper_bound(writes_[tensor].begin(), writes_[tensor].end(), after);
  return next != writes_[tensor].end() && *next < before;
}

}  // namespace reprise::analyzer
