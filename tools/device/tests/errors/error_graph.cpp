// Error cases: graphs.
#include "tools/device/tests/errors/error_table.h"

namespace reprise::sim_test {
namespace {
const CUgraph kNoGraph = reinterpret_cast<CUgraph>(0x1230);
}

std::vector<ErrorCase> graph_cases() {
  static CUgraph graph;
  static CUgraphNode node;
  static CUgraphNode other;
  static CUgraphExec exec;
  static size_t count;
  static CUDA_KERNEL_NODE_PARAMS kernel;
  static CUDA_MEMSET_NODE_PARAMS memset;
  static CUDA_HOST_NODE_PARAMS host;
  return {
    CASE(cuGraphCreate, "flags that are not zero", CUDA_ERROR_INVALID_VALUE, &graph, 1),
        CASE(cuGraphCreate, "no place for the answer", CUDA_ERROR_INVALID_VALUE, nullptr, 0),
        CASE_SIM(cuGraphDestroy, "no graph", CUDA_ERROR_INVALID_VALUE, kNoGraph),
        CASE(cuGraphAddEmptyNode, "the null graph", CUDA_ERROR_INVALID_VALUE, &node, nullptr, nullptr, 0),
        CASE(cuGraphAddEmptyNode, "dependencies that are not there", CUDA_ERROR_INVALID_VALUE, &node, g.graph, nullptr,
             1),
        CASE_DO(cuGraphAddEmptyNode, "a dependency twice", CUDA_ERROR_INVALID_VALUE,
                CU(cuGraphAddEmptyNode)(&node, g.graph, nullptr, 0);
                CUgraphNode twice[2] = {node, node}; return CU(cuGraphAddEmptyNode)(&other, g.graph, twice, 2);),
        CASE_DO(cuGraphAddEmptyNode, "a dependency of another graph", CUDA_ERROR_INVALID_VALUE,
                CU(cuGraphCreate)(&graph, 0);
                CU(cuGraphAddEmptyNode)(&node, graph, nullptr, 0);
                return CU(cuGraphAddEmptyNode)(&other, g.graph, &node, 1);),
        CASE(cuGraphAddKernelNode, "no parameters", CUDA_ERROR_INVALID_VALUE, &node, g.graph, nullptr, 0, nullptr),
        CASE_DO(cuGraphAddKernelNode, "an empty grid", CUDA_ERROR_INVALID_VALUE, kernel = {}; kernel.func = g.function;
                kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
                return CU(cuGraphAddKernelNode)(&node, g.graph, nullptr, 0, &kernel);),
        CASE_DO(cuGraphAddMemsetNode, "an element of three bytes", CUDA_ERROR_INVALID_VALUE,
                memset = {g.memory, 0, 1, 3, 4, 1};
                return CU(cuGraphAddMemsetNode)(&node, g.graph, nullptr, 0, &memset, g.context);),
        CASE(cuGraphAddMemcpyNode, "no parameters", CUDA_ERROR_INVALID_VALUE, &node, g.graph, nullptr, 0, nullptr,
             g.context),
        CASE_DO(cuGraphAddHostNode, "no function", CUDA_ERROR_INVALID_VALUE, host = {};
                return CU(cuGraphAddHostNode)(&node, g.graph, nullptr, 0, &host);),
        CASE(cuGraphGetNodes, "no place for the count", CUDA_ERROR_INVALID_VALUE, g.graph, nullptr, nullptr),
        CASE(cuGraphGetNodes, "the null graph", CUDA_ERROR_INVALID_VALUE, nullptr, nullptr, &count),
        CASE(cuGraphNodeGetType, "the null node", CUDA_ERROR_INVALID_VALUE, nullptr, nullptr),
        CASE_DO(cuGraphKernelNodeGetParams, "a node of another kind", CUDA_ERROR_INVALID_VALUE,
                CU(cuGraphAddEmptyNode)(&node, g.graph, nullptr, 0);
                return CU(cuGraphKernelNodeGetParams)(node, &kernel);),
        CASE_DO(cuGraphAddDependencies, "a node on itself", CUDA_ERROR_INVALID_VALUE,
                CU(cuGraphAddEmptyNode)(&node, g.graph, nullptr, 0);
                return CU(cuGraphAddDependencies)(g.graph, &node, &node, nullptr, 1);),
        CASE_DO(cuGraphAddDependencies, "an edge that is there", CUDA_ERROR_INVALID_VALUE,
                CU(cuGraphAddEmptyNode)(&node, g.graph, nullptr, 0);
                CU(cuGraphAddEmptyNode)(&other, g.graph, &node, 1);
                return CU(cuGraphAddDependencies)(g.graph, &node, &other, nullptr, 1);),
        CASE_DO(cuGraphRemoveDependencies, "an edge that is not there", CUDA_ERROR_INVALID_VALUE,
                CU(cuGraphAddEmptyNode)(&node, g.graph, nullptr, 0);
                CU(cuGraphAddEmptyNode)(&other, g.graph, nullptr, 0);
                return CU(cuGraphRemoveDependencies)(g.graph, &node, &other, nullptr, 1);),
        CASE(cuGraphInstantiate, "the null graph", CUDA_ERROR_INVALID_VALUE, &exec, nullptr, 0),
        CASE(cuGraphInstantiate, "unknown flags", CUDA_ERROR_INVALID_VALUE, &exec, g.graph, 0x100000),
        CASE(cuGraphInstantiate, "no place for the answer", CUDA_ERROR_INVALID_VALUE, nullptr, g.graph, 0),
        CASE(cuGraphLaunch, "the null instance", CUDA_ERROR_INVALID_VALUE, nullptr, g.stream),
        CASE(cuGraphExecDestroy, "the null instance", CUDA_ERROR_INVALID_VALUE, nullptr),
  };
}

}  // namespace reprise::sim_test
