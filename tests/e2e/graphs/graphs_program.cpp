// graphs_program [TENSORS STEPS GRAPHS PASSING]: tensors of 2 MiB, and graphs captured of a stream that allocates 4 MiB
// in each, launched in every step. Before the graphs there are some more tensors, and no longer. Prints what it reads.
#include "tests/e2e/support/driver_program.h"

namespace {

constexpr size_t kTensor = 2 << 20;
constexpr size_t kInGraph = 2 << 20;  // twice

// Sets memory of its own, and copies it into a tensor.
CUgraphExec capture(CUstream stream, CUdeviceptr tensor, unsigned value) {
  CUdeviceptr own[2] = {};
  CUgraph graph = nullptr;
  CUgraphExec launchable = nullptr;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  for (CUdeviceptr& each : own) CHECK(cuMemAllocAsync(&each, kInGraph, stream));
  CHECK(cuMemsetD32Async(own[0], value, kInGraph / 4, stream));
  CHECK(cuMemcpyDtoDAsync(own[1], own[0], kInGraph, stream));
  CHECK(cuMemcpyDtoDAsync(tensor, own[1], kTensor, stream));
  for (const CUdeviceptr each : own) CHECK(cuMemFreeAsync(each, stream));
  CHECK(cuStreamEndCapture(stream, &graph));
  CHECK(cuGraphInstantiate(&launchable, graph, 0));
  CHECK(cuGraphDestroy(graph));
  return launchable;
}

}  // namespace

int main(int count, char** arguments) {
  const auto number = [&](int i, int usual) { return count > i ? std::atoi(arguments[i]) : usual; };
  program::open_device();
  const CUstream stream = program::new_stream();
  std::vector<CUdeviceptr> tensors(static_cast<size_t>(number(1, 6)));
  for (size_t i = 0; i < tensors.size(); ++i) {
    CHECK(cuMemAlloc(&tensors[i], kTensor));
    CHECK(cuMemsetD32Async(tensors[i], static_cast<unsigned>(i), kTensor / 4, stream));
  }
  CHECK(cuStreamSynchronize(stream));
  std::vector<CUdeviceptr> passing(static_cast<size_t>(number(4, 0)));
  for (CUdeviceptr& tensor : passing) {
    CHECK(cuMemAlloc(&tensor, kTensor));
    CHECK(cuMemsetD32(tensor, 1, kTensor / 4));
  }
  for (const CUdeviceptr tensor : passing) CHECK(cuMemFree(tensor));
  std::vector<CUgraphExec> graphs(static_cast<size_t>(number(3, 1)));
  for (size_t i = 0; i < graphs.size(); ++i) graphs[i] = capture(stream, tensors[0], 1000 + static_cast<unsigned>(i));
  for (int step = 0; step < number(2, 4); ++step) {
    for (const CUdeviceptr tensor : tensors) {
      CHECK(cuMemsetD32Async(tensor + kTensor / 2, static_cast<unsigned>(step), kTensor / 8, stream));
    }
    for (CUgraphExec graph : graphs) CHECK(cuGraphLaunch(graph, stream));
    CHECK(cuStreamSynchronize(stream));
    for (const CUdeviceptr tensor : tensors) {
      unsigned words[2];
      CHECK(cuMemcpyDtoH(&words[0], tensor, 4));
      CHECK(cuMemcpyDtoH(&words[1], tensor + kTensor / 2, 4));
      std::printf("%u %u\n", words[0], words[1]);
    }
  }
  for (CUgraphExec graph : graphs) CHECK(cuGraphExecDestroy(graph));
  return 0;
}
