// One thread's copy blocks until another thread, which works on the device as well, sets a flag.
#include <chrono>
#include <thread>

#include "tests/e2e/support/driver_program.h"

int main() {
  using program::kMiB;
  const CUcontext context = program::open_device();
  const CUdeviceptr read = program::filled(6, 1);
  CUdeviceptr written = 0;
  CHECK(cuMemAlloc(&written, 6 * kMiB));
  unsigned* flag = nullptr;
  CHECK(cuMemHostAlloc(reinterpret_cast<void**>(&flag), 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  *flag = 0;
  CHECK(cuCtxSynchronize());
  CUstream reader = program::new_stream(), writer = program::new_stream();
  unsigned value = 0;
  std::thread blocked([&] {
    CHECK(cuCtxSetCurrent(context));
    const auto address = reinterpret_cast<CUdeviceptr>(flag);
    CHECK(cuStreamWaitValue32(reader, address, 1, CU_STREAM_WAIT_VALUE_EQ));
    CHECK(cuMemcpyDtoHAsync(&value, read, sizeof value, reader));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  std::thread other([&] {
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuMemsetD32Async(written, 2, 6 * kMiB / 4, writer));
    CHECK(cuStreamSynchronize(writer));
    __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
  });
  blocked.join();
  other.join();
  CHECK(cuCtxSynchronize());
  std::printf("%u %u\n", value, program::word(written));
  return 0;
}
