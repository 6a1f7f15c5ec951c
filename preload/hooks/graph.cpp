// Graphs: what is known about them from their instantiation on, and their launches, each of which is one command.
#include "preload/access/graphs.h"
#include "preload/access/pointees.h"
#include "preload/base/export.h"
#include "preload/base/guard.h"
#include "preload/driver/driver.h"
#include "preload/exports/barriers.h"
#include "preload/hooks/memory_calls.h"
#include "preload/hooks/submit.h"
#include "preload/trace/signature.h"

namespace reprise {
namespace {

struct GraphLaunch {
  CUgraphExec executable;
  static CUresult issue(const void* payload, CUstream stream) noexcept {
    return driver().cuGraphLaunch(static_cast<const GraphLaunch*>(payload)->executable, stream);
  }
};

// Out of line: the room for accesses is large.
__attribute__((noinline)) CUresult launch(CUgraphExec executable, CUstream stream) {
  const GraphLaunch payload{executable};
  const HookScope scope;
  if (!scope || capturing(stream)) return GraphLaunch::issue(&payload, stream);
  Access room[kMaxGraphAccesses];
  CommandBuilder builder(trace::OpKind::graph_launch, "graph launch", stream, room, kMaxGraphAccesses);
  builder.command.issue = &GraphLaunch::issue;
  builder.command.payload = &payload;
  builder.command.payload_bytes = sizeof payload;
  touch_graph(builder, executable);
  Command& command = builder.command;
  if (const uint64_t content = command.signature; content != 0) {
    add_pointees(builder, content);  // of the tables as they are now
    command.signature =
        trace::op_signature(command.op, content, command.grid, command.block, 0, 0, builder.named_accesses);
  }
  return submit(builder);
}

template <typename Call>
CUresult instantiate(const CUgraphExec* executable, CUgraph graph, Call call) {
  const CUresult result = with_memory_of_the_driver(call);
  const HookScope scope;
  if (!scope || result != CUDA_SUCCESS) return result;
  const uint32_t allocations = record_graph(*executable, graph);
  if (allocations != 0) runtime().handler->memory.graph_memory(allocations);
  return result;
}

// Launches of the old form may still be deferred.
template <typename Update>
CUresult update(CUgraphExec executable, CUgraph graph, Update call) {
  const HookScope scope;
  if (!scope) return call();
  if (const CUresult order = before_ordered(RowId::k_cuGraphExecUpdate_v2); order != CUDA_SUCCESS) return order;
  const CUresult result = call();
  if (result == CUDA_SUCCESS) record_graph(executable, graph);
  return result;
}

}  // namespace
}  // namespace reprise

using namespace reprise;

REPRISE_EXPORT CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  return launch(executable, explicit_stream(stream, DefaultStream::legacy));
}
REPRISE_EXPORT CUresult cuGraphLaunch_ptsz(CUgraphExec executable, CUstream stream) {
  return launch(executable, explicit_stream(stream, DefaultStream::per_thread));
}

#undef cuGraphInstantiate
#undef cuGraphExecUpdate
REPRISE_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long flags) {
  return instantiate(executable, graph, [&] { return driver().cuGraphInstantiateWithFlags(executable, graph, flags); });
}
REPRISE_EXPORT CUresult cuGraphInstantiate(CUgraphExec* executable, CUgraph graph, CUgraphNode* error_node, char* log,
                                           size_t log_bytes) {
  return instantiate(executable, graph,
                     [&] { return driver().cuGraphInstantiate_v1(executable, graph, error_node, log, log_bytes); });
}
REPRISE_EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec* executable, CUgraph graph, CUgraphNode* error_node,
                                              char* log, size_t log_bytes) {
  return instantiate(executable, graph,
                     [&] { return driver().cuGraphInstantiate_v2(executable, graph, error_node, log, log_bytes); });
}
// May upload the graph on a stream that its parameters name; 0 there is the default stream of the symbol's suffix.
REPRISE_EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec* executable, CUgraph graph,
                                                     CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  return instantiate(executable, graph,
                     [&] { return driver().cuGraphInstantiateWithParams(executable, graph, parameters); });
}
REPRISE_EXPORT CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* executable, CUgraph graph,
                                                          CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  return instantiate(executable, graph,
                     [&] { return driver().cuGraphInstantiateWithParams_ptsz(executable, graph, parameters); });
}

REPRISE_EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec executable, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  return update(executable, graph, [=] { return driver().cuGraphExecUpdate_v2(executable, graph, info); });
}
REPRISE_EXPORT CUresult cuGraphExecUpdate(CUgraphExec executable, CUgraph graph, CUgraphNode* error_node,
                                          CUgraphExecUpdateResult* answer) {
  return update(executable, graph,
                [=] { return driver().cuGraphExecUpdate_v1(executable, graph, error_node, answer); });
}

REPRISE_EXPORT CUresult cuGraphExecDestroy(CUgraphExec executable) {
  const HookScope scope;
  if (!scope) return driver().cuGraphExecDestroy(executable);
  if (const CUresult order = before_ordered(RowId::k_cuGraphExecDestroy); order != CUDA_SUCCESS) return order;
  forget_graph(executable);
  const CUresult result = driver().cuGraphExecDestroy(executable);
  runtime().handler->memory.graph_memory(0);
  return result;
}
