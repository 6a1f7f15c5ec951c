#include "analyzer/bounds/uses.h"

#include <algorithm>

namespace reprise::analyzer {
namespace {

bool reads(const GraphCall& entry, uint32_t tensor) {
  if ((entry.call.flags & trace::kOpOpaque) != 0) return true;
  return std::any_of(entry.call.accesses.begin(), entry.call.accesses.end(),
                     [&](const plan::OpAccess& access) { return access.tensor == tensor && plan::reads(access); });
}

bool writes_all(const GraphCall& entry, uint32_t tensor, uint64_t size) {
  if ((entry.call.flags & trace::kOpOpaque) != 0) return true;
  return std::any_of(entry.call.accesses.begin(), entry.call.accesses.end(), [&](const plan::OpAccess& access) {
    return access.tensor == tensor && changes(access) && access.offset == 0 &&
           (access.size == 0 || access.size == size);
  });
}

}  // namespace

Uses uses_of(const TaskGraph& graph) {
  Uses uses;
  uses.op_of_call.assign(graph.calls.size(), OpIndex{kNone});
  uses.of_tensor.resize(graph.tensors.size());
  uses.by_copies.assign(graph.tensors.size(), 0);
  std::vector<uint8_t> touched(graph.tensors.size(), 0);
  for (uint32_t t = 0; t < graph.tensors.size(); ++t) touched[t] = is_persistent(graph.tensors[t]);
  for (CallIndex call{0}; call < graph.calls.size(); ++call) {
    const GraphCall& entry = graph.calls[call];
    if (entry.call.kind != plan::CallKind::op) continue;
    const OpIndex op{static_cast<uint32_t>(uses.call_of_op.size())};
    const bool computes =
        entry.call.op != trace::OpKind::copy_host_to_device && entry.call.op != trace::OpKind::copy_device_to_host;
    uses.call_of_op.push_back(call);
    uses.op_of_call[call] = op;
    uses.computes.push_back(computes ? 1 : 0);
    uses.compute_ns.push_back(computes ? entry.call.duration_ns : 0);
    for (const uint32_t tensor : entry.operands) {
      const bool writes = std::binary_search(entry.writes.begin(), entry.writes.end(), tensor);
      const bool first = touched[tensor] == 0;
      const bool fresh = first || !reads(entry, tensor);
      touched[tensor] = 1;
      if (computes) {
        uses.of_tensor[tensor].push_back({op, fresh, writes && writes_all(entry, tensor, graph.tensors[tensor].size)});
      } else if (writes || first) {
        uses.by_copies[tensor] = 1;
      }
    }
  }
  return uses;
}

}  // namespace reprise::analyzer
