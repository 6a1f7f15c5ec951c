// Copies, memsets and orders that the driver refuses: past the end of an allocation, on memory that is none, with flags
// that there are not. The call itself says so, and all goes on as if it had not been made.
#include <cstring>
#include <vector>

#include "tests/e2e/support/driver_program.h"

namespace {

using program::kMiB;

constexpr size_t kSmall = 1000;
constexpr size_t kLarge = 6 * kMiB;

void say(const char* what, CUresult result) { std::printf("%s: %d\n", what, static_cast<int>(result)); }

CUDA_MEMCPY2D rows(CUdeviceptr to, CUdeviceptr from, size_t count) {
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.dstDevice = to;
  copy.srcPitch = 4096;
  copy.dstPitch = 4096;
  copy.WidthInBytes = 100;
  copy.Height = count;
  return copy;
}

// `bytes`: what `tensor` has; `other` has more.
void past_the_end(CUdeviceptr tensor, size_t bytes, CUdeviceptr other, void* pinned, CUstream stream) {
  say("copy within the device", cuMemcpyDtoD(tensor, other, bytes + 8));
  say("copy from an inner address", cuMemcpyDtoDAsync(tensor + 512, other, bytes - 511, stream));
  say("copy from the host", cuMemcpyHtoDAsync(tensor, pinned, bytes + 8, stream));
  say("copy to the host", cuMemcpyDtoHAsync(pinned, tensor, bytes + 8, stream));
  say("copy of any kind", cuMemcpyAsync(tensor, other, bytes + 8, stream));
  say("memset", cuMemsetD32(tensor, 9, bytes / 4 + 1));
  say("memset of bytes", cuMemsetD8Async(tensor + 512, 9, bytes - 511, stream));
  say("memset of rows", cuMemsetD2D8(tensor, 4096, 9, 100, bytes / 4096 + 2));
  const CUDA_MEMCPY2D copy = rows(tensor, other, bytes / 4096 + 2);
  say("copy of rows", cuMemcpy2DAsync(&copy, stream));
  say("to the end", cuMemsetD8(tensor + 512, 7, bytes - 512));
}

void on_no_memory(CUdeviceptr tensor, CUstream stream) {
  CUdeviceptr freed = 0;
  CHECK(cuMemAlloc(&freed, kLarge));
  CHECK(cuMemsetD8(freed, 1, kLarge));
  CHECK(cuMemFree(freed));
  std::vector<char> host(kSmall);
  const auto pageable = reinterpret_cast<CUdeviceptr>(host.data());
  say("copy to freed memory", cuMemcpyDtoD(freed, tensor, 100));
  say("memset of freed memory", cuMemsetD8Async(freed, 3, 100, stream));
  say("memset of host memory", cuMemsetD8(pageable, 3, 100));
  say("copy from host memory as device memory", cuMemcpyDtoDAsync(tensor, pageable, 100, stream));
}

void with_flags(CUstream stream) {
  CUevent event = nullptr;
  CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  say("record", cuEventRecordWithFlags(event, stream, 6));
  CHECK(cuEventRecord(event, stream));
  say("wait", cuStreamWaitEvent(stream, event, 6));
  CHECK(cuStreamWaitEvent(stream, event, 0));
  CHECK(cuEventDestroy(event));
}

// The graph stays empty.
void in_a_capture(CUdeviceptr tensor, size_t bytes, CUdeviceptr other, CUstream stream) {
  CUgraph graph = nullptr;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  say("captured copy", cuMemcpyDtoDAsync(tensor, other, bytes + 8, stream));
  say("captured memset", cuMemsetD8Async(tensor, 9, bytes + 8, stream));
  const CUDA_MEMCPY2D copy = rows(tensor, other, bytes / 4096 + 2);
  say("captured copy of rows", cuMemcpy2DAsync(&copy, stream));
  CHECK(cuStreamEndCapture(stream, &graph));
  size_t count = 0;
  CHECK(cuGraphGetNodes(graph, nullptr, &count));
  std::printf("%zu nodes\n", count);
  CHECK(cuGraphDestroy(graph));
}

void print(CUdeviceptr tensor, size_t bytes) {
  std::vector<unsigned char> host(bytes);
  CHECK(cuMemcpyDtoH(host.data(), tensor, bytes));
  unsigned long long hash = 1469598103934665603u;
  for (const unsigned char byte : host) hash = (hash ^ byte) * 1099511628211u;
  std::printf("%016llx\n", hash);
}

}  // namespace

int main() {
  program::open_device();
  const CUstream stream = program::new_stream();
  CUdeviceptr large[3];
  for (unsigned i = 0; i < 3; ++i) large[i] = program::filled(6, 100 + i);
  CUdeviceptr small = 0;
  CHECK(cuMemAlloc(&small, kSmall));
  CHECK(cuMemsetD8(small, 5, kSmall));
  void* pinned = nullptr;
  CHECK(cuMemHostAlloc(&pinned, kLarge + kMiB, 0));
  std::memset(pinned, 4, kLarge + kMiB);
  CUdeviceptr more = 0;
  CHECK(cuMemAlloc(&more, kLarge + kMiB));
  CHECK(cuMemsetD8(more, 6, kLarge + kMiB));
  CHECK(cuCtxSynchronize());
  for (int i = 0; i < 2; ++i) {
    past_the_end(small, kSmall, large[0], pinned, stream);
    past_the_end(large[1], kLarge, more, pinned, stream);
    on_no_memory(large[2], stream);
    with_flags(stream);
    in_a_capture(small, kSmall, large[0], stream);
    CHECK(cuCtxSynchronize());
  }
  for (const CUdeviceptr tensor : large) print(tensor, kLarge);
  print(small, kSmall);
  return 0;
}
