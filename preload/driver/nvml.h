// What is used of NVML, NVIDIA's library for those who look after devices, by its reference (docs.nvidia.com/deploy/
// nvml-api): the packages that the driver API is compiled by have no nvml.h. Callers: own_memory.cpp, the simulated
// device, which has these functions, tests.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace reprise::nvml {

using Device = struct DeviceHandle*;

// nvmlReturn_t
inline constexpr int kSuccess = 0;
inline constexpr int kUninitialized = 1;
inline constexpr int kInvalidArgument = 2;
inline constexpr int kNotFound = 6;
inline constexpr int kInsufficientSize = 7;
inline constexpr int kLibraryNotFound = 12;
inline constexpr int kFunctionNotFound = 13;

// nvmlProcessInfo_t
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance;
  unsigned compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);
inline constexpr unsigned long long kNotAvailable = ~0ull;  // NVML_VALUE_NOT_AVAILABLE
inline constexpr unsigned kNoInstance = ~0u;
// Entries of some builds of driver 535 are larger, under the same name of the function.
inline constexpr size_t kMostBytesOfAnEntry = 40;

// nvmlMemory_t, nvmlMemory_v2_t; bytes
struct MemoryFigures {
  uint64_t total;
  uint64_t free;
  uint64_t used;
};
struct MemoryFiguresV2 {
  unsigned version;
  uint64_t total;
  uint64_t reserved;
  uint64_t free;
  uint64_t used;
};
static_assert(sizeof(MemoryFiguresV2) == 40);

using Name = std::array<char, 64>;  // of a device
inline constexpr std::array<const char*, 2> kKinds = {"GPU", "MIG"};

struct Functions {
  int (*init)();                                    // nvmlInit_v2
  int (*device_of)(const char* uuid, Device* out);  // nvmlDeviceGetHandleByUUID
  // nvmlDeviceGetComputeRunningProcesses_v3
  int (*processes)(Device device, unsigned* count, ProcessInfo* infos);
};

}  // namespace reprise::nvml
