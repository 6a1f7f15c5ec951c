// The order in which the dispatcher prefers vertices: that of the prediction.
#include <algorithm>

#include "analyzer/simulate/simulate.h"

namespace reprise::analyzer {

std::vector<uint32_t> order_of(const TaskGraph& tasks, const MemGraph& graph, const Prediction& prediction) {
  std::vector<int64_t> key = prediction.start_ns;
  // The program calls ahead of the device: its free may come before the ops that still use the tensor have run. In the
  // order it stands behind them, where it takes effect.
  const auto delay = [&](uint32_t tensor, int64_t time) {
    if (is_persistent(tasks.tensors[tensor])) return;
    const uint32_t release = graph.vertex_of_call[tasks.tensors[tensor].free_call];
    key[release] = std::max(key[release], time);
  };
  for (CallIndex call{0}; call < tasks.calls.size(); ++call) {
    const plan::Call& entry = tasks.calls[call].call;
    if (entry.kind != plan::CallKind::op) continue;
    const int64_t time = key[graph.vertex_of_call[call]];
    for (const plan::OpAccess& access : entry.accesses) delay(access.tensor, time);
    if ((entry.flags & trace::kOpOpaque) == 0) continue;
    for (uint32_t tensor = 0; tensor < tasks.tensors.size(); ++tensor) {
      if (is_alive(tasks.tensors[tensor], call)) delay(tensor, time);
    }
  }
  std::vector<uint32_t> order(graph.vertices.size());
  for (uint32_t v = 0; v < order.size(); ++v) order[v] = v;
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key[a] < key[b]; });
  return order;
}

}  // namespace reprise::analyzer
