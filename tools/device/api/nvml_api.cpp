// What the simulated device offers of NVML: which process holds how much of a device. The driver's library has it, and
// no libnvidia-ml.so.1: frameworks would take that for all of NVML.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "preload/driver/nvml.h"
#include "tools/device/base/device_uuid.h"
#include "tools/device/base/settings.h"
#include "tools/device/engines/device.h"

namespace reprise::sim {
namespace {

std::atomic<bool> initialised{false};

// "GPU-72657072-6973-652d-7369-6d2d64657600"; without dashes: the digits of what CUDA tells.
bool is_name_of(const char* name, int device) {
  if (std::strncmp(name, "GPU-", 4) != 0) return false;
  const CUuuid uuid = device_uuid(device);
  const char* at = name + 4;
  for (int i = 0; i < 16; ++i) {
    if ((i == 4 || i == 6 || i == 8 || i == 10) && *at++ != '-') return false;
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])));
    if (std::strncmp(at, digits, 2) != 0) return false;
    at += 2;
  }
  return *at == 0;
}

// Handles count from 1: none is NULL. -1: it is none.
int device_of(nvml::Device handle) {
  const auto number = reinterpret_cast<uintptr_t>(handle);
  return number >= 1 && number <= settings().devices ? static_cast<int>(number) - 1 : -1;
}

}  // namespace
}  // namespace reprise::sim

extern "C" {
using namespace reprise;  // NOLINT(google-build-using-namespace)
#pragma GCC visibility push(default)

// Needs no cuInit; another one is as good as the first.
int nvmlInit_v2() {
  sim::initialised.store(true);
  return nvml::kSuccess;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, nvml::Device* device) {
  if (!sim::initialised.load()) return nvml::kUninitialized;
  if (uuid == nullptr || device == nullptr) return nvml::kInvalidArgument;
  for (int i = 0; i < static_cast<int>(sim::settings().devices); ++i) {
    if (!sim::is_name_of(uuid, i)) continue;
    *device = reinterpret_cast<nvml::Device>(static_cast<uintptr_t>(i) + 1);
    return nvml::kSuccess;
  }
  return nvml::kNotFound;
}

// `count`: entries that there is room for, then those that there are, as many as they are. With room for none `infos`
// may be NULL.
int nvmlDeviceGetComputeRunningProcesses_v3(nvml::Device handle, unsigned* count, nvml::ProcessInfo* infos) {
  if (!sim::initialised.load()) return nvml::kUninitialized;
  const int device = sim::device_of(handle);
  if (device < 0 || count == nullptr || (*count != 0 && infos == nullptr)) return nvml::kInvalidArgument;
  const sim::Device* const found = sim::find_device(device);  // none before cuInit, and no context then
  std::vector<sim::DeviceProcess> all;
  if (found != nullptr && sim::settings().tells_processes) all = found->processes();
  const unsigned room = *count;
  *count = static_cast<unsigned>(all.size());
  if (room < all.size()) return nvml::kInsufficientSize;
  for (const sim::DeviceProcess& process : all) {
    *infos++ = {process.number, process.bytes, nvml::kNoInstance, nvml::kNoInstance};
  }
  return nvml::kSuccess;
}

#pragma GCC visibility pop
}  // extern "C"
