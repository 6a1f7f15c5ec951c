// entry_points elapsed|newer: looks functions up as runtimes do, by name and by the driver's version. The time between
// two events, by the form that the driver has; a copy that CUDA 13.2 has, and an older one where the driver lacks it.
#include "tests/e2e/support/driver_program.h"

namespace {

using program::filled;
using program::kMiB;
using program::word;

int version() {
  int found = 0;
  CHECK(cuDriverGetVersion(&found));
  return found;
}

void* look_up(const char* name) {
  void* function = nullptr;
  CHECK(cuGetProcAddress(name, &function, version(), CU_GET_PROC_ADDRESS_LEGACY_STREAM, nullptr));
  return function;
}

void elapsed() {
  const auto elapsed_time = reinterpret_cast<CUresult (*)(float*, CUevent, CUevent)>(look_up("cuEventElapsedTime"));
  CUevent events[2];
  for (CUevent& event : events) CHECK(cuEventCreate(&event, CU_EVENT_DEFAULT));
  CHECK(cuEventRecord(events[0], nullptr));
  std::printf("%u\n", word(filled(6, 7)));
  CHECK(cuEventRecord(events[1], nullptr));
  CHECK(cuEventSynchronize(events[1]));
  float milliseconds = -1;
  CHECK(elapsed_time(&milliseconds, events[0], events[1]));
  std::printf("%s\n", milliseconds >= 0 ? "time went on" : "no time");
}

void newer() {
  using CopyWithAttributes = CUresult (*)(CUdeviceptr, CUdeviceptr, size_t, CUmemcpyAttributes*, CUstream);
  constexpr unsigned kTensors = 6;
  const auto newest = reinterpret_cast<CopyWithAttributes>(look_up("cuMemcpyWithAttributesAsync"));
  CUdeviceptr tensors[kTensors];
  for (unsigned i = 0; i < kTensors; ++i) tensors[i] = filled(6, 100 + i);
  CUmemcpyAttributes attributes{};
  for (unsigned i = 1; i < kTensors; ++i) {
    const CUdeviceptr to = tensors[i], from = tensors[i - 1];
    if (newest != nullptr) {
      CHECK(newest(to, from, 3 * kMiB, &attributes, nullptr));
    } else {
      CHECK(cuMemcpyAsync(to, from, 3 * kMiB, nullptr));
    }
  }
  CHECK(cuCtxSynchronize());
  for (const CUdeviceptr tensor : tensors) std::printf("%u %u\n", word(tensor), word(tensor + 4 * kMiB));
}

}  // namespace

int main(int count, char** words) {
  const bool wants_newer = count > 1 && *words[1] == 'n';
  program::open_device();
  wants_newer ? newer() : elapsed();
  return 0;
}
