// contexts reset|opaque|capture|two: the primary context is reset with memory allocated; a word is written by a stream
// memory operation behind evictions; memory that was never touched is captured; a second device copies into the first.
#include <cstring>

#include "tests/e2e/support/driver_program.h"

namespace {

using program::filled;
using program::kMiB;
using program::word;

void reset(CUcontext context) {
  std::printf("before %u\n", word(filled(8, 7)));
  CHECK(cuDevicePrimaryCtxReset(0));
  CHECK(cuCtxSetCurrent(context));
  const CUdeviceptr again = filled(8, 9);
  const unsigned value = 5;
  CHECK(cuMemcpyHtoD(again, &value, sizeof value));
  std::printf("after %u %u\n", word(again), word(again + 4));
}

void opaque() {
  CUdeviceptr tensors[3];
  for (unsigned i = 0; i < 3; ++i) {
    tensors[i] = filled(6, 100 + i);
    CHECK(cuCtxSynchronize());
  }
  for (const CUdeviceptr tensor : tensors) std::printf("%u\n", word(tensor));
  CUstream stream = program::new_stream();
  CHECK(cuStreamWriteValue32(stream, tensors[0], 777, 0));
  CHECK(cuStreamSynchronize(stream));
  for (const CUdeviceptr tensor : tensors) std::printf("%u\n", word(tensor));
}

void capture() {
  CUdeviceptr untouched = 0;
  CHECK(cuMemAlloc(&untouched, 8 * kMiB));
  CUstream stream = program::new_stream();
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuMemsetD32Async(untouched, 3, 2 * kMiB, stream));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec launchable = nullptr;
  CHECK(cuGraphInstantiate(&launchable, graph, 0));
  CHECK(cuGraphLaunch(launchable, stream));
  CHECK(cuStreamSynchronize(stream));
  std::printf("graph %u\n", word(untouched));
}

void two(CUcontext first) {
  CUcontext second = nullptr;
  CHECK(cuDevicePrimaryCtxRetain(&second, 1));
  CUdeviceptr tensors[4];
  for (unsigned i = 0; i < 4; ++i) tensors[i] = filled(6, 100 + i);
  CHECK(cuCtxSynchronize());
  CHECK(cuCtxSetCurrent(second));
  const CUdeviceptr peer = filled(6, 55);
  CHECK(cuCtxSynchronize());
  CHECK(cuMemcpyPeer(tensors[0], first, peer, second, 6 * kMiB));
  CHECK(cuMemcpyPeer(tensors[1], first, peer, second, 6 * kMiB));
  CHECK(cuCtxSynchronize());
  CHECK(cuCtxSetCurrent(first));
  for (int round = 0; round < 3; ++round) {
    for (const CUdeviceptr tensor : tensors) std::printf("%u\n", word(tensor));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const CUcontext context = program::open_device();
  if (std::strcmp(argv[1], "reset") == 0) reset(context);
  if (std::strcmp(argv[1], "opaque") == 0) opaque();
  if (std::strcmp(argv[1], "capture") == 0) capture();
  if (std::strcmp(argv[1], "two") == 0) two(context);
  return 0;
}
