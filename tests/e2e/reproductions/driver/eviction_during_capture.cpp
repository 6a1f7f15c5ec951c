// Two streams work while a third one, which has worked before, is being captured: what has to leave the device
// meanwhile must not become part of the program's graph, which stays empty.
#include "tests/e2e/support/driver_program.h"

namespace {

unsigned word_by(CUstream stream, CUdeviceptr address) {
  unsigned value = 0;
  CHECK(cuMemcpyDtoHAsync(&value, address, sizeof value, stream));
  CHECK(cuStreamSynchronize(stream));
  return value;
}

}  // namespace

int main() {
  using program::kMiB;
  program::open_device();
  CUstream captured = program::new_stream(), other = program::new_stream();
  constexpr size_t kBytes = 6 * kMiB;
  CUdeviceptr tensors[3];
  for (CUdeviceptr& tensor : tensors) CHECK(cuMemAlloc(&tensor, kBytes));
  CHECK(cuMemsetD32Async(tensors[0], 100, kBytes / 4, captured));
  CHECK(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK(cuMemsetD32Async(tensors[1], 101, kBytes / 4, other));
  CHECK(cuMemsetD32Async(tensors[2], 102, kBytes / 4, other));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(captured, &graph));
  CHECK(cuCtxSynchronize());
  size_t nodes = 0;
  CHECK(cuGraphGetNodes(graph, nullptr, &nodes));
  std::printf("nodes in the program's graph: %zu\n", nodes);
  for (const CUdeviceptr tensor : tensors) std::printf("%u\n", word_by(other, tensor));
  return 0;
}
