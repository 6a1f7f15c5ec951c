// Nodes of copies and memsets, made and changed one by one: the driver looks at their addresses during the call.
#include "preload/access/graphs.h"
#include "preload/base/export.h"
#include "preload/driver/driver.h"
#include "preload/exports/barriers.h"
#include "preload/hooks/submit.h"

namespace reprise {
namespace {

// Where a copy begins and ends; 0 for what has no address.
struct Ends {
  CUdeviceptr from = 0;
  CUdeviceptr to = 0;
};

Ends ends_of(const CUDA_MEMCPY3D* copy) {
  const auto end = [](CUmemorytype type, CUdeviceptr device, size_t x, size_t y, size_t z, size_t pitch, size_t rows) {
    if (type != CU_MEMORYTYPE_DEVICE && type != CU_MEMORYTYPE_UNIFIED) return CUdeviceptr{0};
    return device + (z * rows + y) * pitch + x;
  };
  if (copy == nullptr) return {};
  return {end(copy->srcMemoryType, copy->srcDevice, copy->srcXInBytes, copy->srcY, copy->srcZ, copy->srcPitch,
              copy->srcHeight),
          end(copy->dstMemoryType, copy->dstDevice, copy->dstXInBytes, copy->dstY, copy->dstZ, copy->dstPitch,
              copy->dstHeight)};
}

Ends ends_of(const CUDA_MEMSET_NODE_PARAMS* set) { return {0, set == nullptr ? 0 : set->dst}; }

Ends ends_of(const CUgraphNodeParams* node) {
  if (node == nullptr) return {};
  if (node->type == CU_GRAPH_NODE_TYPE_MEMCPY) return ends_of(&node->memcpy.copyParams);
  return {0, node->type == CU_GRAPH_NODE_TYPE_MEMSET ? node->memset.dst : 0};
}

template <typename Parameters, typename Call>
CUresult node(RowId id, const Parameters* parameters, Call call) {
  const HookScope scope;
  if (!scope) return call();
  const Ends ends = ends_of(parameters);
  return with_operands(row(id).symbol, {ends.from, ends.to}, call);
}

// The graph's launches that are deferred are of the old form; those to come are opaque.
template <typename Parameters, typename Call>
CUresult update(RowId id, CUgraphExec executable, const Parameters* parameters, Call call) {
  const HookScope scope;
  if (!scope) return call();
  forget_graph_accesses(executable);
  if (const CUresult order = before_ordered(id); order != CUDA_SUCCESS) return order;
  const Ends ends = ends_of(parameters);
  return with_operands(row(id).symbol, {ends.from, ends.to}, call);
}

}  // namespace
}  // namespace reprise

using namespace reprise;

REPRISE_EXPORT CUresult cuGraphAddMemcpyNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count,
                                             const CUDA_MEMCPY3D* copy, CUcontext context) {
  return node(RowId::k_cuGraphAddMemcpyNode, copy,
              [=] { return driver().cuGraphAddMemcpyNode(made, graph, after, count, copy, context); });
}
REPRISE_EXPORT CUresult cuGraphAddMemsetNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count,
                                             const CUDA_MEMSET_NODE_PARAMS* set, CUcontext context) {
  return node(RowId::k_cuGraphAddMemsetNode, set,
              [=] { return driver().cuGraphAddMemsetNode(made, graph, after, count, set, context); });
}
#undef cuGraphAddNode
REPRISE_EXPORT CUresult cuGraphAddNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count,
                                       CUgraphNodeParams* parameters) {
  return node(RowId::k_cuGraphAddNode, parameters,
              [=] { return driver().cuGraphAddNode_v1(made, graph, after, count, parameters); });
}
REPRISE_EXPORT CUresult cuGraphAddNode_v2(CUgraphNode* made, CUgraph graph, const CUgraphNode* after,
                                          const CUgraphEdgeData* edges, size_t count, CUgraphNodeParams* parameters) {
  return node(RowId::k_cuGraphAddNode_v2, parameters,
              [=] { return driver().cuGraphAddNode_v2(made, graph, after, edges, count, parameters); });
}
REPRISE_EXPORT CUresult cuGraphMemcpyNodeSetParams(CUgraphNode of, const CUDA_MEMCPY3D* copy) {
  return node(RowId::k_cuGraphMemcpyNodeSetParams, copy, [=] { return driver().cuGraphMemcpyNodeSetParams(of, copy); });
}
REPRISE_EXPORT CUresult cuGraphMemsetNodeSetParams(CUgraphNode of, const CUDA_MEMSET_NODE_PARAMS* set) {
  return node(RowId::k_cuGraphMemsetNodeSetParams, set, [=] { return driver().cuGraphMemsetNodeSetParams(of, set); });
}
REPRISE_EXPORT CUresult cuGraphNodeSetParams(CUgraphNode of, CUgraphNodeParams* parameters) {
  return node(RowId::k_cuGraphNodeSetParams, parameters, [=] { return driver().cuGraphNodeSetParams(of, parameters); });
}

REPRISE_EXPORT CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec executable, CUgraphNode of,
                                                       const CUDA_MEMCPY3D* copy, CUcontext context) {
  return update(RowId::k_cuGraphExecMemcpyNodeSetParams, executable, copy,
                [=] { return driver().cuGraphExecMemcpyNodeSetParams(executable, of, copy, context); });
}
REPRISE_EXPORT CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec executable, CUgraphNode of,
                                                       const CUDA_MEMSET_NODE_PARAMS* set, CUcontext context) {
  return update(RowId::k_cuGraphExecMemsetNodeSetParams, executable, set,
                [=] { return driver().cuGraphExecMemsetNodeSetParams(executable, of, set, context); });
}
REPRISE_EXPORT CUresult cuGraphExecNodeSetParams(CUgraphExec executable, CUgraphNode of,
                                                 CUgraphNodeParams* parameters) {
  return update(RowId::k_cuGraphExecNodeSetParams, executable, parameters,
                [=] { return driver().cuGraphExecNodeSetParams(executable, of, parameters); });
}
