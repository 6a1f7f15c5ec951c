#include "preload/driver/own_memory.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "preload/driver/driver.h"
#include "preload/driver/outside_captures.h"
#include "preload/driver/resolve.h"

namespace reprise {
namespace {

constexpr int kDevices = 64;
constexpr unsigned kMostProcesses = 128;
constexpr int kMostTrials = 3;  // other threads of the program may take memory during one

pthread_once_t load_once = PTHREAD_ONCE_INIT;
constinit nvml::Functions loaded{};
constinit std::atomic<const nvml::Functions*> instead{nullptr};
constinit std::atomic<uint64_t> asked_ns{0};

enum class Known : uint8_t { nothing, yes, no };
struct DeviceState {
  std::atomic<Known> found{Known::nothing};
  std::atomic<nvml::Device> handle{nullptr};
  std::atomic<Known> follows{Known::nothing};
  std::atomic<bool> trying{false};
  std::atomic<int> trials{0};
};
constinit DeviceState states[kDevices];

template <typename Function>
bool take(void* library, const char* name, Function** function) noexcept {
  // The simulated device has them beside its driver's: PyTorch takes a library of NVML's name for all of NVML.
  void* const symbol = library != nullptr ? library_symbol(library, name) : driver_symbol(name);
  *function = reinterpret_cast<Function*>(symbol);
  return symbol != nullptr;
}

bool take_all(void* library, nvml::Functions* functions) noexcept {
  return take(library, "nvmlInit_v2", &functions->init) &&
         take(library, "nvmlDeviceGetHandleByUUID", &functions->device_of) &&
         (take(library, "nvmlDeviceGetComputeRunningProcesses_v3", &functions->processes) ||
          take(library, "nvmlDeviceGetComputeRunningProcesses_v2", &functions->processes));
}

void load() {
  nvml::Functions functions{};
  bool complete = take_all(nullptr, &functions);
  if (void* const library = complete ? nullptr : load_library("libnvidia-ml.so.1"); library != nullptr) {
    complete = take_all(library, &functions);
  }
  if (complete && functions.init() == nvml::kSuccess) loaded = functions;
}

// nullptr: there is no NVML.
const nvml::Functions* functions() noexcept {
  if (const nvml::Functions* const given = instead.load(std::memory_order_acquire); given != nullptr) return given;
  pthread_once(&load_once, load);
  return loaded.processes != nullptr ? &loaded : nullptr;
}

// CUDA's numbers of devices are not NVML's (CUDA_VISIBLE_DEVICES), and a part of a device (MIG) has a name of its own.
nvml::Device find(const nvml::Functions& functions, CUdevice device) noexcept {
  for (const char* kind : nvml::kKinds) {
    nvml::Name name;
    nvml::Device found = nullptr;
    if (!nvml_name(device, kind, &name)) return nullptr;
    if (functions.device_of(name.data(), &found) == nvml::kSuccess && found != nullptr) return found;
  }
  return nullptr;
}

nvml::Device handle_of(const nvml::Functions& functions, CUdevice device) noexcept {
  DeviceState& state = states[device];
  if (state.found.load(std::memory_order_acquire) == Known::nothing) {  // whoever comes meanwhile finds the same
    state.handle.store(find(functions, device));
    state.found.store(state.handle.load() != nullptr ? Known::yes : Known::no, std::memory_order_release);
  }
  return state.handle.load(std::memory_order_relaxed);
}

std::optional<uint64_t> ask(const nvml::Functions& functions, nvml::Device device) noexcept {
  alignas(nvml::ProcessInfo) unsigned char room[kMostProcesses * nvml::kMostBytesOfAnEntry];
  unsigned count = kMostProcesses;
  if (functions.processes(device, &count, reinterpret_cast<nvml::ProcessInfo*>(room)) != nvml::kSuccess) return {};
  const auto own = static_cast<unsigned>(getpid());
  std::optional<uint64_t> bytes;
  for (unsigned i = 0; i < count && i < kMostProcesses; ++i) {
    nvml::ProcessInfo info;
    std::memcpy(&info, room + i * sizeof info, sizeof info);
    if (info.pid != own) continue;
    if (bytes || info.used_bytes == nvml::kNotAvailable) return {};  // twice: which part of the device is ours?
    bytes = info.used_bytes;
  }
  return bytes;
}

uint64_t now_ns() noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

// Before, while there is a chunk of ours, and after it.
bool follows_a_chunk(CUdevice device) noexcept {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  size_t bytes = 0;
  CUmemGenericAllocationHandle chunk = 0;
  const std::optional<uint64_t> before = own_bytes(device);
  if (!before ||
      driver().cuMemGetAllocationGranularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS ||
      driver().cuMemCreate(&chunk, bytes, &properties, 0) != CUDA_SUCCESS) {
    return false;
  }
  const std::optional<uint64_t> with = own_bytes(device);
  driver().cuMemRelease(chunk);
  const std::optional<uint64_t> after = own_bytes(device);
  return with && after && *with == *before + bytes && *after == *before;
}

}  // namespace

bool nvml_name(CUdevice device, const char* kind, nvml::Name* name) noexcept {
  CUuuid uuid;
  if (driver().cuDeviceGetUuid(&uuid, device) != CUDA_SUCCESS) return false;
  int length = std::snprintf(name->data(), name->size(), "%s", kind);
  for (int i = 0; i < 16; ++i) {
    const char* const dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
    const auto byte = static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i]));
    length += std::snprintf(name->data() + length, name->size() - static_cast<size_t>(length), "%s%02x", dash, byte);
  }
  return true;
}

std::optional<uint64_t> own_bytes(CUdevice device) noexcept {
  if (device < 0 || device >= kDevices || asked_ns.load(std::memory_order_relaxed) > kMostAskingNs) return {};
  const nvml::Functions* const nvml = functions();
  const nvml::Device handle = nvml != nullptr ? handle_of(*nvml, device) : nullptr;
  if (handle == nullptr) return {};
  const uint64_t start = now_ns();
  const std::optional<uint64_t> bytes = ask(*nvml, handle);
  asked_ns.fetch_add(now_ns() - start, std::memory_order_relaxed);
  return bytes;
}

bool own_bytes_follow(CUdevice device) noexcept {
  if (device < 0 || device >= kDevices) return false;
  DeviceState& state = states[device];
  const Known known = state.follows.load(std::memory_order_acquire);
  if (known != Known::nothing || state.trying.exchange(true)) return known == Known::yes;
  const OutsideCaptures outside;
  const bool follows = follows_a_chunk(device);
  const bool last = state.trials.fetch_add(1) + 1 >= kMostTrials;
  if (follows || last) state.follows.store(follows ? Known::yes : Known::no, std::memory_order_release);
  state.trying.store(false);
  return follows;
}

uint64_t held_by_process(CUdevice device, uint64_t known) noexcept {
  size_t free = 0;
  size_t total = 0;
  if (driver().cuMemGetInfo(&free, &total) != CUDA_SUCCESS) return known;
  const uint64_t taken = total - free;  // by all processes
  const std::optional<uint64_t> own = own_bytes(device);
  if (own && *own != known && *own <= taken && own_bytes_follow(device)) return *own;
  return known < taken ? known : taken;
}

void detail::take_nvml(const nvml::Functions* functions) noexcept {
  instead.store(functions, std::memory_order_release);
  asked_ns.store(0);
  for (DeviceState& state : states) {
    state.found.store(Known::nothing);
    state.handle.store(nullptr);
    state.follows.store(Known::nothing);
    state.trials.store(0);
  }
}

}  // namespace reprise
