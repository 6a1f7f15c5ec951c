// Instantiated graphs: making, updating, launching; user objects.
#include "tools/device/graphs/graph.h"
#include "tools/device/modules/launch.h"
#include "tools/device/streams/capture.h"
#include "tools/device/streams/dispatch.h"
#include "tools/device/streams/enter.h"

using namespace reprise::sim;

namespace {

constexpr uint64_t kInstantiateFlags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                       CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH |
                                       CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

CUresult instantiate(Context& context, CUgraphExec* handle, CUgraph graph_handle, uint64_t flags) {
  const std::shared_ptr<Graph> graph = graphs().share(graph_handle);
  SIM_REQUIRE(handle != nullptr && graph != nullptr && (flags & ~kInstantiateFlags) == 0, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(graph->order().size() == graph->nodes().size(), CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<GraphExec> exec = GraphExec::make(context.device);
  SIM_REQUIRE(exec != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  exec->graph = graph->clone();
  exec->flags = flags;
  graphs().remove(exec->graph->handle);  // the program never sees the clone
  *handle = graph_execs().add(std::move(exec));
  return CUDA_SUCCESS;
}

const Function& function_of(const GraphNode& node) {
  return *static_cast<const KernelOperation&>(*node.operation).function;
}

CUgraphExecUpdateResult compare(const GraphNode& own, const GraphNode& other) {
  if (own.type != other.type) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
  if (own.dependencies.size() != other.dependencies.size()) return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  if (own.type == CU_GRAPH_NODE_TYPE_KERNEL && function_of(own).context != function_of(other).context) {
    return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
  }
  if (own.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || own.type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
    return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
  }
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

// Nodes pair by the order in which they were made, which capture repeats. All are compared before any is changed.
CUgraphExecUpdateResult update(Graph& own, const Graph& other, CUgraphExecUpdateResultInfo* info, bool change) {
  if (own.nodes().size() != other.nodes().size()) return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  for (size_t i = 0; i < own.nodes().size(); ++i) {
    GraphNode& node = *own.nodes()[i];
    const GraphNode& source = *other.nodes()[i];
    CUgraphExecUpdateResult result = compare(node, source);
    if (result == CU_GRAPH_EXEC_UPDATE_SUCCESS && node.child != nullptr) {
      result = update(*node.child, *source.child, info, change);
    }
    if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
      info->errorNode = source.handle;
      return result;
    }
    if (!change) continue;
    node.operation = source.operation;
    node.event = source.event;
    node.attributes = source.attributes;
  }
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

CUresult find_objects(CUgraph graph_handle, CUuserObject object, std::shared_ptr<Graph>* graph) {
  *graph = graphs().share(graph_handle);
  return *graph != nullptr && user_objects().get(object) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

extern "C" {

CUresult cuGraphInstantiateWithFlags(CUgraphExec* phGraphExec, CUgraph hGraph, unsigned long long flags) {
  SIM_ENTER_CONTEXT(context);
  return instantiate(*context, phGraphExec, hGraph, flags);
}

CUresult cuGraphInstantiate_v2(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode, char* logBuffer,
                               size_t bufferSize) {
  if (phErrorNode != nullptr) *phErrorNode = nullptr;
  if (logBuffer != nullptr && bufferSize > 0) *logBuffer = 0;
  return cuGraphInstantiateWithFlags(phGraphExec, hGraph, 0);
}

CUresult cuGraphInstantiate(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode, char* logBuffer,
                            size_t bufferSize) {
  return cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* phGraphExec, CUgraph hGraph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(instantiateParams != nullptr, CUDA_ERROR_INVALID_VALUE);
  instantiateParams->hErrNode_out = nullptr;
  const CUresult result = instantiate(*context, phGraphExec, hGraph, instantiateParams->flags);
  instantiateParams->result_out = result == CUDA_SUCCESS               ? CUDA_GRAPH_INSTANTIATE_SUCCESS
                                  : result == CUDA_ERROR_OUT_OF_MEMORY ? CUDA_GRAPH_INSTANTIATE_ERROR
                                                                       : CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
  return result;
}

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec) {
  SIM_ENTER();
  const std::shared_ptr<GraphExec> exec = graph_execs().remove(hGraphExec);
  return exec == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t* flags) {
  SIM_ENTER();
  const std::shared_ptr<GraphExec> exec = graph_execs().share(hGraphExec);
  SIM_REQUIRE(exec != nullptr && flags != nullptr, CUDA_ERROR_INVALID_VALUE);
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo* resultInfo) {
  SIM_ENTER_CONTEXT(context);
  const std::shared_ptr<GraphExec> exec = graph_execs().share(hGraphExec);
  const std::shared_ptr<Graph> graph = graphs().share(hGraph);
  SIM_REQUIRE(exec != nullptr && graph != nullptr && resultInfo != nullptr, CUDA_ERROR_INVALID_VALUE);
  *resultInfo = {};
  const std::lock_guard lock(exec->mutex);
  resultInfo->result = update(*exec->graph, *graph, resultInfo, false);
  if (resultInfo->result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  update(*exec->graph, *graph, resultInfo, true);
  exec->forget_plan();
  return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode* hErrorNode_out,
                           CUgraphExecUpdateResult* updateResult_out) {
  CUgraphExecUpdateResultInfo info = {};
  const CUresult result = cuGraphExecUpdate_v2(hGraphExec, hGraph, &info);
  if (hErrorNode_out != nullptr) *hErrorNode_out = info.errorNode;
  if (updateResult_out != nullptr) *updateResult_out = info.result;
  return result;
}

CUresult cuGraphUpload(CUgraphExec hGraph, CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(graph_execs().get(hGraph) != nullptr, CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<Stream> stream;
  return find_work_stream(*context, hStream, &stream);
}

CUresult cuGraphLaunch(CUgraphExec hGraph, CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  const std::shared_ptr<GraphExec> exec = graph_execs().share(hGraph);
  SIM_REQUIRE(exec != nullptr, CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<Stream> stream;
  SIM_TRY(find_work_stream(*context, hStream, &stream));
  if (stream->capturing.load(std::memory_order_relaxed)) return capture_graph(*stream, *exec->graph);
  return exec->launch(stream);
}

CUresult cuUserObjectCreate(CUuserObject* object_out, void* ptr, CUhostFn destroy, unsigned int initialRefcount,
                            unsigned int flags) {
  SIM_ENTER();
  SIM_REQUIRE(object_out != nullptr && destroy != nullptr && initialRefcount > 0 && initialRefcount <= INT32_MAX,
              CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(flags == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, CUDA_ERROR_INVALID_VALUE);
  auto object = std::make_shared<UserObject>(UserObject{ptr, destroy, initialRefcount});
  *object_out = user_objects().add(std::move(object));
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int count) {
  SIM_ENTER();
  const std::shared_ptr<UserObject> found = user_objects().share(object);
  SIM_REQUIRE(found != nullptr && count > 0, CUDA_ERROR_INVALID_VALUE);
  found->references += count;
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count) {
  SIM_ENTER();
  SIM_REQUIRE(user_objects().get(object) != nullptr && count > 0, CUDA_ERROR_INVALID_VALUE);
  release_user_object(object, count);
  return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags) {
  SIM_ENTER();
  std::shared_ptr<Graph> holder;
  SIM_TRY(find_objects(graph, object, &holder));
  SIM_REQUIRE(count > 0 && (flags & ~unsigned{CU_GRAPH_USER_OBJECT_MOVE}) == 0, CUDA_ERROR_INVALID_VALUE);
  holder->user_objects[object] += count;
  if ((flags & CU_GRAPH_USER_OBJECT_MOVE) == 0) user_objects().share(object)->references += count;
  return CUDA_SUCCESS;
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count) {
  SIM_ENTER();
  std::shared_ptr<Graph> holder;
  SIM_TRY(find_objects(graph, object, &holder));
  const auto held = holder->user_objects.find(object);
  SIM_REQUIRE(count > 0 && held != holder->user_objects.end() && held->second >= count, CUDA_ERROR_INVALID_VALUE);
  held->second -= count;
  if (held->second == 0) holder->user_objects.erase(held);
  release_user_object(object, count);
  return CUDA_SUCCESS;
}

}  // extern "C"
