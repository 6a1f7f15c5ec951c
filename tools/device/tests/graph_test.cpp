// Stream capture and graphs.
#include "tools/device/tests/driver.h"

namespace reprise::sim_test {
namespace {

class Graphs : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    ASSERT_CU(CU(cuStreamCreate)(&stream_, CU_STREAM_NON_BLOCKING));
  }
  CUgraph end() {
    CUgraph graph = nullptr;
    EXPECT_CU(CU(cuStreamEndCapture)(stream_, &graph));
    return graph;
  }
  CUgraphExec instantiate(CUgraph graph) {
    CUgraphExec exec = nullptr;
    EXPECT_CU(CU(cuGraphInstantiate)(&exec, graph, 0));
    return exec;
  }
  std::vector<CUgraphNode> nodes(CUgraph graph) {
    size_t count = 0;
    EXPECT_CU(CU(cuGraphGetNodes)(graph, nullptr, &count));
    std::vector<CUgraphNode> all(count);
    EXPECT_CU(CU(cuGraphGetNodes)(graph, all.data(), &count));
    return all;
  }
  CUresult begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    return CU(cuStreamBeginCapture)(stream_, mode);
  }
  CUstream stream_ = nullptr;
};

TEST_F(Graphs, CapturedWorkRunsAtLaunchOnly) {
  const CUdeviceptr memory = ints(4, 0);
  ASSERT_CU(begin());
  ASSERT_CU(add(memory, 2, 4, stream_));
  ASSERT_CU(add(memory, 3, 4, stream_));
  const CUgraph graph = end();
  EXPECT_EQ(std::vector<int>(4, 0), read_ints(memory, 4));
  EXPECT_EQ(2u, nodes(graph).size());
  const CUgraphExec exec = instantiate(graph);
  ASSERT_CU(CU(cuGraphDestroy)(graph));
  for (int i = 0; i < 3; ++i) ASSERT_CU(CU(cuGraphLaunch)(exec, stream_));
  ASSERT_CU(CU(cuStreamSynchronize)(stream_));
  EXPECT_EQ(std::vector<int>(4, 15), read_ints(memory, 4));
  ASSERT_CU(CU(cuGraphExecDestroy)(exec));
}

TEST_F(Graphs, ForkAndJoinByEvents) {
  const CUdeviceptr memory = ints(2, 0);
  CUstream other = nullptr;
  CUevent fork = nullptr, join = nullptr;
  ASSERT_CU(CU(cuStreamCreate)(&other, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(CU(cuEventCreate)(&fork, 0));
  ASSERT_CU(CU(cuEventCreate)(&join, 0));
  ASSERT_CU(begin());
  ASSERT_CU(add(memory, 1, 1, stream_));
  ASSERT_CU(CU(cuEventRecord)(fork, stream_));
  ASSERT_CU(CU(cuStreamWaitEvent)(other, fork, 0));
  ASSERT_CU(add(memory + 4, 5, 1, other));
  ASSERT_CU(CU(cuEventRecord)(join, other));
  ASSERT_CU(add(memory, 1, 1, stream_));
  ASSERT_CU(CU(cuStreamWaitEvent)(stream_, join, 0));
  ASSERT_CU(add(memory + 4, 2, 1, stream_));
  const CUgraph graph = end();
  size_t edges = 0;
  ASSERT_CU(CU(cuGraphGetEdges)(graph, nullptr, nullptr, nullptr, &edges));
  EXPECT_EQ(4u, edges);
  ASSERT_CU(CU(cuGraphLaunch)(instantiate(graph), stream_));
  ASSERT_CU(CU(cuStreamSynchronize)(stream_));
  EXPECT_EQ((std::vector<int>{2, 7}), read_ints(memory, 2));
}

TEST_F(Graphs, AnUnjoinedStreamFailsTheCapture) {
  const CUdeviceptr memory = ints(1, 0);
  CUstream other = nullptr;
  CUevent fork = nullptr;
  ASSERT_CU(CU(cuStreamCreate)(&other, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(CU(cuEventCreate)(&fork, 0));
  ASSERT_CU(begin());
  ASSERT_CU(CU(cuEventRecord)(fork, stream_));
  ASSERT_CU(CU(cuStreamWaitEvent)(other, fork, 0));
  ASSERT_CU(add(memory, 5, 1, other));
  CUgraph graph = nullptr;
  EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, CU(cuStreamEndCapture)(stream_, &graph));
  EXPECT_EQ(nullptr, graph);
  EXPECT_CU(add(memory, 1, 1, other));
  EXPECT_CU(CU(cuStreamSynchronize)(other));
  EXPECT_EQ(1, read_ints(memory, 1)[0]);
}

// cuda.h lists no such error for cuStreamDestroy, and NVIDIA's own programs (graphMemoryNodes) do it.
TEST_F(Graphs, AForkMayBeDestroyedBeforeTheCaptureEnds) {
  for (const bool joined : {true, false}) {
    const CUdeviceptr memory = ints(1, 0);
    CUstream other = nullptr;
    CUevent fork = nullptr, join = nullptr;
    ASSERT_CU(CU(cuStreamCreate)(&other, CU_STREAM_NON_BLOCKING));
    ASSERT_CU(CU(cuEventCreate)(&fork, 0));
    ASSERT_CU(CU(cuEventCreate)(&join, 0));
    ASSERT_CU(begin());
    ASSERT_CU(CU(cuEventRecord)(fork, stream_));
    ASSERT_CU(CU(cuStreamWaitEvent)(other, fork, 0));
    ASSERT_CU(add(memory, 5, 1, other));
    ASSERT_CU(CU(cuEventRecord)(join, other));
    if (joined) {
      ASSERT_CU(CU(cuStreamWaitEvent)(stream_, join, 0));
    }
    ASSERT_CU(CU(cuStreamDestroy)(other));
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    ASSERT_CU(CU(cuStreamIsCapturing)(stream_, &status));
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_ACTIVE, status);
    CUgraph graph = nullptr;
    const CUresult ended = CU(cuStreamEndCapture)(stream_, &graph);
    EXPECT_EQ(joined ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED, ended);
    if (!joined) continue;
    ASSERT_CU(CU(cuGraphLaunch)(instantiate(graph), stream_));
    ASSERT_CU(CU(cuStreamSynchronize)(stream_));
    EXPECT_EQ(5, read_ints(memory, 1)[0]);
  }
}

TEST_F(Graphs, SynchronisingACapturedStreamInvalidatesIt) {
  ASSERT_CU(begin());
  EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CU(cuStreamSynchronize)(stream_));
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  ASSERT_CU(CU(cuStreamIsCapturing)(stream_, &status));
  EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_INVALIDATED, status);
  CUgraph graph = nullptr;
  EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, CU(cuStreamEndCapture)(stream_, &graph));
}

// Seen on hardware: from whatever thread, whatever the modes of the capture and of the thread.
TEST_F(Graphs, WaitingForTheContextEndsEveryCaptureInIt) {
  for (const CUstreamCaptureMode mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
    ASSERT_CU(begin(mode));
    CUcontext context = nullptr;
    ASSERT_CU(CU(cuCtxGetCurrent)(&context));
    std::thread([&] {
      CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
      EXPECT_CU(CU(cuCtxSetCurrent)(context));
      EXPECT_CU(CU(cuThreadExchangeStreamCaptureMode)(&relaxed));
      EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CU(cuCtxSynchronize)());
    }).join();
    CUgraph graph = nullptr;
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, CU(cuStreamEndCapture)(stream_, &graph));
    EXPECT_CU(CU(cuCtxSynchronize)());
  }
}

// cuda.h: "the blocking stream capture is not invalidated".
TEST_F(Graphs, AskingWhetherTheLegacyStreamCapturesEndsNoCapture) {
  CUstream blocking = nullptr;
  ASSERT_CU(CU(cuStreamCreate)(&blocking, CU_STREAM_DEFAULT));
  ASSERT_CU(CU(cuStreamBeginCapture)(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, CU(cuStreamIsCapturing)(CU_STREAM_LEGACY, &status));
  CUgraph graph = nullptr;
  EXPECT_CU(CU(cuStreamEndCapture)(blocking, &graph));
}

TEST_F(Graphs, AllocationIsUnsafeInAGlobalCaptureOnly) {
  CUdeviceptr memory = 0;
  ASSERT_CU(begin(CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_CU(CU(cuMemAlloc)(&memory, 64));
  end();
  ASSERT_CU(begin(CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CU(cuMemAlloc)(&memory, 64));
  CUgraph graph = nullptr;
  EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, CU(cuStreamEndCapture)(stream_, &graph));
}

TEST_F(Graphs, TheLegacyStreamMayNotBeUsedWhileABlockingOneIsCaptured) {
  const CUdeviceptr memory = ints(1, 0);
  CUstream blocking = nullptr;
  ASSERT_CU(CU(cuStreamCreate)(&blocking, CU_STREAM_DEFAULT));
  ASSERT_CU(CU(cuStreamBeginCapture)(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, add(memory, 1, 1, nullptr));
  CUgraph graph = nullptr;
  EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, CU(cuStreamEndCapture)(blocking, &graph));
}

TEST_F(Graphs, NodesTellTheirParameters) {
  const CUdeviceptr memory = ints(4, 0);
  ASSERT_CU(begin());
  ASSERT_CU(CU(cuMemsetD32Async)(memory, 7, 4, stream_));
  ASSERT_CU(add(memory, 6, 4, stream_));
  const CUgraph graph = end();
  const std::vector<CUgraphNode> all = nodes(graph);
  ASSERT_EQ(2u, all.size());
  CUDA_MEMSET_NODE_PARAMS memset = {};
  ASSERT_CU(CU(cuGraphMemsetNodeGetParams)(all[0], &memset));
  EXPECT_EQ(memory, memset.dst);
  EXPECT_EQ(7u, memset.value);
  EXPECT_EQ(4u, memset.elementSize);
  CUDA_KERNEL_NODE_PARAMS kernel = {};
  ASSERT_CU(CU(cuGraphKernelNodeGetParams)(all[1], &kernel));
  EXPECT_EQ(memory, *static_cast<CUdeviceptr*>(kernel.kernelParams[0]));
  EXPECT_EQ(6, *static_cast<int*>(kernel.kernelParams[1]));
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  ASSERT_CU(CU(cuGraphNodeGetType)(all[1], &type));
  EXPECT_EQ(CU_GRAPH_NODE_TYPE_KERNEL, type);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, CU(cuGraphMemsetNodeGetParams)(all[1], &memset));
}

TEST_F(Graphs, BuiltByHandAndUpdated) {
  CUdeviceptr memory = ints(4, 0);
  int by = 1, count = 4;
  void* parameters[] = {&memory, &by, &count};
  CUgraph graph = nullptr, child = nullptr;
  ASSERT_CU(CU(cuGraphCreate)(&graph, 0));
  ASSERT_CU(CU(cuGraphCreate)(&child, 0));
  CUDA_MEMSET_NODE_PARAMS memset = {memory, 0, 10, 4, 4, 1};
  CUgraphNode set = nullptr;
  ASSERT_CU(CU(cuGraphAddMemsetNode)(&set, graph, nullptr, 0, &memset, context_));
  CUDA_KERNEL_NODE_PARAMS kernel = {};
  kernel.func = function("add");
  kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.blockDimX = 32;
  kernel.kernelParams = parameters;
  CUgraphNode inner = nullptr;
  ASSERT_CU(CU(cuGraphAddKernelNode)(&inner, child, nullptr, 0, &kernel));
  CUgraphNode nested = nullptr;
  ASSERT_CU(CU(cuGraphAddChildGraphNode)(&nested, graph, &set, 1, child));
  CUgraphNode last = nullptr;
  ASSERT_CU(CU(cuGraphAddKernelNode)(&last, graph, &nested, 1, &kernel));
  const CUgraphExec exec = instantiate(graph);
  ASSERT_CU(CU(cuGraphLaunch)(exec, stream_));
  ASSERT_CU(CU(cuStreamSynchronize)(stream_));
  EXPECT_EQ(std::vector<int>(4, 12), read_ints(memory, 4));
  by = 100;
  ASSERT_CU(CU(cuGraphExecKernelNodeSetParams)(exec, last, &kernel));
  ASSERT_CU(CU(cuGraphLaunch)(exec, stream_));
  ASSERT_CU(CU(cuStreamSynchronize)(stream_));
  EXPECT_EQ(std::vector<int>(4, 111), read_ints(memory, 4));
}

TEST_F(Graphs, ExecUpdateTakesANewCapture) {
  const CUdeviceptr memory = ints(1, 0);
  ASSERT_CU(begin());
  ASSERT_CU(add(memory, 1, 1, stream_));
  const CUgraphExec exec = instantiate(end());
  ASSERT_CU(begin());
  ASSERT_CU(add(memory, 50, 1, stream_));
  CUgraphExecUpdateResultInfo info = {};
  ASSERT_CU(CU(cuGraphExecUpdate)(exec, end(), &info));
  ASSERT_CU(CU(cuGraphLaunch)(exec, stream_));
  ASSERT_CU(CU(cuStreamSynchronize)(stream_));
  EXPECT_EQ(50, read_ints(memory, 1)[0]);
  ASSERT_CU(begin());
  ASSERT_CU(CU(cuMemsetD32Async)(memory, 1, 1, stream_));
  EXPECT_EQ(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, CU(cuGraphExecUpdate)(exec, end(), &info));
  EXPECT_EQ(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, info.result);
}

TEST_F(Graphs, CapturedAllocationIsTheGraphs) {
  CUdeviceptr memory = 0;
  const CUdeviceptr out = ints(1, 0);
  ASSERT_CU(begin());
  ASSERT_CU(CU(cuMemAllocAsync)(&memory, 64, stream_));
  ASSERT_CU(CU(cuMemsetD32Async)(memory, 8, 1, stream_));
  ASSERT_CU(CU(cuMemcpyDtoDAsync)(out, memory, 4, stream_));
  ASSERT_CU(CU(cuMemFreeAsync)(memory, stream_));
  const CUgraphExec exec = instantiate(end());
  ASSERT_CU(CU(cuGraphLaunch)(exec, stream_));
  ASSERT_CU(CU(cuStreamSynchronize)(stream_));
  EXPECT_EQ(8, read_ints(out, 1)[0]);
}

// What a launch allocates and does not free is the program's to free before the next one.
TEST_F(Graphs, CapturedAllocationIsFreedOutside) {
  CUdeviceptr memory = 0;
  ASSERT_CU(begin());
  ASSERT_CU(CU(cuMemAllocAsync)(&memory, 64, stream_));
  ASSERT_CU(CU(cuMemsetD32Async)(memory, 8, 1, stream_));
  const CUgraph graph = end();
  const CUgraphExec exec = instantiate(graph);
  EXPECT_EQ(CU(cuMemFreeAsync)(memory, stream_), CUDA_ERROR_INVALID_VALUE) << "nothing has allocated it";
  for (int launch = 0; launch < 2; ++launch) {
    ASSERT_CU(CU(cuGraphLaunch)(exec, stream_));
    EXPECT_EQ(CU(cuGraphLaunch)(exec, stream_), CUDA_ERROR_INVALID_VALUE) << "not freed yet";
    int value = 0;
    ASSERT_CU(CU(cuMemcpyDtoHAsync)(&value, memory, 4, stream_));
    ASSERT_CU(CU(cuStreamSynchronize)(stream_));
    EXPECT_EQ(value, 8);
    ASSERT_CU(launch == 0 ? CU(cuMemFreeAsync)(memory, stream_) : CU(cuMemFree)(memory));
    EXPECT_EQ(CU(cuMemFreeAsync)(memory, stream_), CUDA_ERROR_INVALID_VALUE) << "freed already";
  }
  ASSERT_CU(CU(cuGraphExecDestroy)(exec));
  CUgraphExec frees_itself = nullptr;
  ASSERT_CU(CU(cuGraphInstantiate)(&frees_itself, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
  for (int launch = 0; launch < 3; ++launch) ASSERT_CU(CU(cuGraphLaunch)(frees_itself, stream_));
  ASSERT_CU(CU(cuStreamSynchronize)(stream_));
  ASSERT_CU(CU(cuMemFree)(memory));
}

// CUDA C++ Programming Guide, Graph Memory Nodes: a graph's end frees no memory that is live.
TEST_F(Graphs, CapturedAllocationOutlivesTheGraph) {
  for (const bool in_order : {true, false}) {
    CUdeviceptr memory = 0;
    ASSERT_CU(begin());
    ASSERT_CU(CU(cuMemAllocAsync)(&memory, 64, stream_));
    ASSERT_CU(CU(cuMemsetD32Async)(memory, 8, 1, stream_));
    CUgraph graph = nullptr;
    ASSERT_CU(CU(cuStreamEndCapture)(stream_, &graph));
    CUgraphExec exec = nullptr;
    ASSERT_CU(CU(cuGraphInstantiate)(&exec, graph, 0));
    ASSERT_CU(CU(cuGraphLaunch)(exec, stream_));
    ASSERT_CU(CU(cuStreamSynchronize)(stream_));
    ASSERT_CU(CU(cuGraphExecDestroy)(exec));
    ASSERT_CU(CU(cuGraphDestroy)(graph));
    int value = 0;
    ASSERT_CU(CU(cuMemcpyDtoHAsync)(&value, memory, 4, stream_));
    ASSERT_CU(CU(cuStreamSynchronize)(stream_));
    EXPECT_EQ(value, 8);
    ASSERT_CU(in_order ? CU(cuMemFreeAsync)(memory, stream_) : CU(cuMemFree)(memory));
    ASSERT_CU(CU(cuStreamSynchronize)(stream_));
    EXPECT_EQ(CU(cuMemFree)(memory), CUDA_ERROR_INVALID_VALUE) << "freed already";
  }
}

TEST_F(Graphs, CyclesAreRefused) {
  CUgraph graph = nullptr;
  CUgraphNode a = nullptr, b = nullptr;
  ASSERT_CU(CU(cuGraphCreate)(&graph, 0));
  ASSERT_CU(CU(cuGraphAddEmptyNode)(&a, graph, nullptr, 0));
  ASSERT_CU(CU(cuGraphAddEmptyNode)(&b, graph, &a, 1));
  if (CU(cuGraphAddDependencies)(graph, &b, &a, nullptr, 1) == CUDA_SUCCESS) {
    CUgraphExec exec = nullptr;
    EXPECT_NE(CUDA_SUCCESS, CU(cuGraphInstantiate)(&exec, graph, 0));
  }
}

TEST_F(Graphs, TellWhatTheirMemoryTakes) {
  const auto tell = [](CUgraphMem_attribute attribute) {
    cuuint64_t bytes = 0;
    EXPECT_CU(CU(cuDeviceGetGraphMemAttribute)(0, attribute, &bytes));
    return bytes;
  };
  const cuuint64_t before = tell(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
  const cuuint64_t reserved = tell(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  ASSERT_CU(CU(cuGraphCreate)(&graph, 0));
  CUDA_MEM_ALLOC_NODE_PARAMS parameters = {};
  parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  parameters.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  parameters.bytesize = 1 << 20;
  ASSERT_CU(CU(cuGraphAddMemAllocNode)(&node, graph, nullptr, 0, &parameters));
  if (simulated()) {
    EXPECT_EQ(tell(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), before + (1 << 20));
    EXPECT_EQ(tell(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), reserved + (2 << 20)) << "a chunk of its own";
  }
  ASSERT_CU(CU(cuGraphDestroy)(graph));
  EXPECT_EQ(tell(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), before);
  if (simulated()) {
    EXPECT_GE(tell(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), before + (1 << 20));
  }
  cuuint64_t zero = 0;
  EXPECT_CU(CU(cuDeviceSetGraphMemAttribute)(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero));
  EXPECT_EQ(tell(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), before);
  EXPECT_EQ(CU(cuDeviceSetGraphMemAttribute)(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &zero), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace reprise::sim_test
