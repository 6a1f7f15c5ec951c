// While one thread captures its stream, another two order a copy behind a copy with an event. Prints how many of 25
// copies read what was there before.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/e2e/support/driver_program.h"

namespace {

using program::kMiB;
constexpr size_t kBytes = 32 * kMiB;
constexpr int kRounds = 25;

void capture_nothing(CUcontext context, const std::atomic<bool>& stop) {
  CHECK(cuCtxSetCurrent(context));
  CUstream stream = program::new_stream();
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  while (!stop) std::this_thread::yield();
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
}

void read_again_and_again(CUcontext context, CUdeviceptr from, const std::atomic<bool>& stop) {
  CHECK(cuCtxSetCurrent(context));
  CUstream stream = program::new_stream();
  std::vector<char> to(2 * kBytes);
  while (!stop) CHECK(cuMemcpyDtoHAsync(to.data(), from, to.size(), stream));
}

struct Pipe {
  CUdeviceptr filler, from, to;
  unsigned* host;
  CUstream writer, reader;
  CUevent written;
};

// Is what arrives the last word of `value`s that were sent?
bool arrives(const Pipe& pipe, unsigned value) {
  for (size_t i = 0; i < kBytes / 4; i += 1024) pipe.host[i] = value;
  CHECK(cuMemcpyHtoDAsync(pipe.filler, pipe.host, kBytes, pipe.writer));
  CHECK(cuMemcpyHtoDAsync(pipe.from, pipe.host, kBytes, pipe.writer));
  CHECK(cuEventRecord(pipe.written, pipe.writer));
  CHECK(cuStreamWaitEvent(pipe.reader, pipe.written, 0));
  CHECK(cuMemcpyDtoDAsync(pipe.to, pipe.from, kBytes, pipe.reader));
  CHECK(cuStreamSynchronize(pipe.reader));
  CHECK(cuStreamSynchronize(pipe.writer));
  unsigned last = 0;
  CHECK(cuMemcpyDtoHAsync(&last, pipe.to + kBytes - kMiB, sizeof last, pipe.reader));
  CHECK(cuStreamSynchronize(pipe.reader));
  return last == value;
}

}  // namespace

int main() {
  const CUcontext context = program::open_device();
  Pipe pipe = {};
  pipe.filler = program::filled(32, 0);
  pipe.from = program::filled(32, 0);
  pipe.to = program::filled(32, 0);
  const CUdeviceptr busy = program::filled(64, 1);
  CHECK(cuMemHostAlloc(reinterpret_cast<void**>(&pipe.host), kBytes, 0));
  pipe.writer = program::new_stream();
  pipe.reader = program::new_stream();
  CHECK(cuEventCreate(&pipe.written, CU_EVENT_DISABLE_TIMING));
  CHECK(cuCtxSynchronize());
  std::atomic<bool> stop{false};
  std::thread capture([&] { capture_nothing(context, stop); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::thread load([&] { read_again_and_again(context, busy, stop); });
  int stale = 0;
  for (unsigned i = 1; i <= kRounds; ++i) stale += arrives(pipe, i) ? 0 : 1;
  stop = true;
  capture.join();
  load.join();
  std::printf("stale reads: %d of %d\n", stale, kRounds);
  return 0;
}
