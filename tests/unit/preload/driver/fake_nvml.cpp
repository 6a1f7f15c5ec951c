// A libnvidia-ml.so.1 with one device, of which this process holds 12345 bytes; its entries are the larger ones that
// some builds of driver 535 have.
#include <unistd.h>

#include <cstring>

#include "preload/driver/nvml.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

using namespace reprise;  // NOLINT(google-build-using-namespace)

static bool initialised = false;

EXPORTED int nvmlInit_v2() {
  initialised = true;
  return nvml::kSuccess;
}

EXPORTED int nvmlDeviceGetHandleByUUID(const char* name, nvml::Device* device) {
  if (!initialised) return nvml::kUninitialized;
  if (std::strcmp(name, "GPU-000102ff-0405-0607-0809-0a0b0c0d0e00") != 0) return nvml::kNotFound;
  *device = reinterpret_cast<nvml::Device>(&initialised);
  return nvml::kSuccess;
}

EXPORTED int nvmlDeviceGetComputeRunningProcesses_v2(nvml::Device, unsigned* count, nvml::ProcessInfo* infos) {
  std::memset(infos, 0, *count * nvml::kMostBytesOfAnEntry);
  *infos = {static_cast<unsigned>(getpid()), 12345, nvml::kNoInstance, nvml::kNoInstance};
  *count = 1;
  return nvml::kSuccess;
}
