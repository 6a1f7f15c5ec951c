// per_thread_stream_and_exit stream|exit: words are written by stream memory operations behind copies on the
// per-thread default stream; an exit handler that was installed before the driver started finds it shut down.
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#include <cstring>

#include "tests/e2e/support/driver_program.h"

namespace {

using program::kMiB;
constexpr size_t kBytes = 64 * kMiB;

CUdeviceptr late = 0;

void call_late() {
  unsigned value = 0;
  CUdeviceptr more = 0;
  const CUresult results[] = {cuMemsetD32(late, 1, 16),
                              cuMemsetD32Async(late, 1, 16, nullptr),
                              cuMemcpyDtoH(&value, late, sizeof value),
                              cuMemAlloc(&more, 4 * kMiB),
                              cuStreamSynchronize(nullptr),
                              cuCtxSynchronize(),
                              cuMemFree(late)};
  for (const CUresult result : results) std::printf("at exit: %d\n", static_cast<int>(result));
  std::fflush(stdout);
}

void default_stream() {
  const CUdeviceptr tensor = program::filled(64, 5);
  void* host = nullptr;
  CHECK(cuMemHostAlloc(&host, kBytes, 0));
  std::memset(host, 1, kBytes);
  CHECK(cuCtxSynchronize());
  for (int i = 0; i < 4; ++i) CHECK(cuMemcpyHtoDAsync(tensor, host, kBytes, nullptr));
  // No hook understands a batch.
  CUstreamBatchMemOpParams batch = {};
  batch.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  batch.writeValue.address = tensor + 4;
  batch.writeValue.value = 778;
  CHECK(cuStreamBatchMemOp(nullptr, 1, &batch, 0));
  CHECK(cuStreamWriteValue32(nullptr, tensor, 777, 0));
  CHECK(cuStreamSynchronize(nullptr));
  std::printf("%u %u %u\n", program::word(tensor), program::word(tensor + 4), program::word(tensor + kBytes - 4));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const bool at_exit = std::strcmp(argv[1], "exit") == 0;
  if (at_exit && std::atexit(call_late) != 0) return 2;
  program::open_device();
  if (!at_exit) default_stream();
  if (at_exit) late = program::filled(8, 1);
  CHECK(cuCtxSynchronize());
  return 0;
}
