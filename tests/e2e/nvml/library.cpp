// Named as NVIDIA's library is, with a few of its functions: what the library in front of it forwards to. The numbers
// of the device's memory are its own.
#include <cstdio>

#include "preload/driver/nvml.h"

namespace nvml = reprise::nvml;
#define NVML extern "C" __attribute__((visibility("default"))) int

NVML nvmlInit_v2() { return nvml::kSuccess; }
NVML nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml::Device* device) {
  *device = reinterpret_cast<nvml::Device>(static_cast<uintptr_t>(index) + 1);
  return nvml::kSuccess;
}
// Device 0 is the simulated device 0; device 1 is none that CUDA knows.
NVML nvmlDeviceGetUUID(nvml::Device device, char* name, unsigned bytes) {
  const char* const digits = reinterpret_cast<uintptr_t>(device) == 1 ? "72657072-6973-652d-7369-6d2d64657600" : "0";
  return std::snprintf(name, bytes, "GPU-%s", digits) > 0 ? nvml::kSuccess : nvml::kInvalidArgument;
}
NVML nvmlDeviceGetMemoryInfo(nvml::Device, nvml::MemoryFigures* memory) {
  *memory = {1000 << 20, 900 << 20, 100 << 20};
  return nvml::kSuccess;
}
NVML nvmlDeviceGetMemoryInfo_v2(nvml::Device, nvml::MemoryFiguresV2* memory) {
  *memory = {memory->version, 1000 << 20, 10 << 20, 890 << 20, 100 << 20};
  return nvml::kSuccess;
}
// Six arguments, all of which arrive.
NVML nvmlDeviceGetRemappedRows(nvml::Device device, unsigned* a, unsigned* b, unsigned* c, unsigned* d) {
  *a = static_cast<unsigned>(reinterpret_cast<uintptr_t>(device));
  *b = *c = *d = 7;
  return nvml::kSuccess;
}
