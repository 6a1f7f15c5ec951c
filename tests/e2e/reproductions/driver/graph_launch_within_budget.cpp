// A graph that touches one tensor of three is launched where not all three fit.
#include "tests/e2e/support/driver_program.h"

int main() {
  using program::kMiB;
  program::open_device();
  CUstream stream = program::new_stream();
  CUdeviceptr tensors[3];
  for (unsigned i = 0; i < 3; ++i) tensors[i] = program::filled(6, 100 + i);
  CHECK(cuCtxSynchronize());
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuMemsetD32Async(tensors[2], 7, 6 * kMiB / 4, stream));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec launchable = nullptr;
  CHECK(cuGraphInstantiate(&launchable, graph, 0));
  CHECK(cuGraphLaunch(launchable, stream));
  CHECK(cuStreamSynchronize(stream));
  for (const CUdeviceptr tensor : tensors) std::printf("%u\n", program::word(tensor));
  return 0;
}
