// pinning launches|capture: host memory is pinned for what does not fit any more, which takes long, while another
// thread submits work; and while a stream is captured, when a thread must not pin.
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/e2e/support/driver_program.h"

namespace {

using program::kMiB;
constexpr int kTensors = 20;

std::atomic<bool> done{false};

// The longest call of a thread that never waits for the device.
double longest_call(CUcontext context, CUdeviceptr tensor) {
  CHECK(cuCtxSetCurrent(context));
  const CUstream stream = program::new_stream();
  double longest = 0;
  while (!done) {
    const auto start = std::chrono::steady_clock::now();
    CHECK(cuMemsetD32Async(tensor, 5, 1024, stream));
    longest = std::max(longest, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(cuStreamSynchronize(stream));
  return longest;
}

std::vector<CUdeviceptr> tensors_of(CUstream stream) {
  std::vector<CUdeviceptr> tensors(kTensors);
  for (CUdeviceptr& tensor : tensors) CHECK(cuMemAllocAsync(&tensor, 8 * kMiB, stream));
  return tensors;
}

void fill_and_tell(const std::vector<CUdeviceptr>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) CHECK(cuMemsetD32(tensors[i], static_cast<unsigned>(i), 2 * kMiB));
  CHECK(cuCtxSynchronize());
  for (const CUdeviceptr tensor : tensors) std::printf("%u\n", program::word(tensor));
}

void launches(CUcontext context) {
  const CUdeviceptr own = program::filled(1, 3);
  double longest = 0;
  std::thread other([&] { longest = longest_call(context, own); });
  const std::vector<CUdeviceptr> tensors = tensors_of(program::new_stream());
  done = true;
  other.join();
  fill_and_tell(tensors);
  std::printf("%s\n", longest < 0.7 ? "calls of the other thread went on" : "a call of the other thread took long");
}

void capture() {
  const CUdeviceptr captured = program::filled(1, 3);
  const CUstream stream = program::new_stream(), other = program::new_stream();
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuMemsetD32Async(captured, 9, 1024, stream));
  const std::vector<CUdeviceptr> tensors = tensors_of(other);
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec launchable = nullptr;
  CHECK(cuGraphInstantiate(&launchable, graph, 0));
  CHECK(cuGraphLaunch(launchable, stream));
  CHECK(cuStreamSynchronize(stream));
  std::printf("captured %u\n", program::word(captured));
  fill_and_tell(tensors);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const CUcontext context = program::open_device();
  if (std::strcmp(argv[1], "launches") == 0) launches(context);
  if (std::strcmp(argv[1], "capture") == 0) capture();
  return 0;
}
