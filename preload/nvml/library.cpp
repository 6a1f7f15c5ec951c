// A library of NVML's name in front of NVIDIA's, so that a program which asks NVML for a device's memory is told what
// the budget leaves, as it is by cuMemGetInfo (decision 0061). Everything else goes to NVIDIA's library. The launcher
// preloads it behind libreprise.so and names the real library in REPRISE_NVML; a program finds it by SONAME.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <iterator>

#include "preload/driver/nvml.h"

namespace reprise::nvml {
namespace {

enum class Row : size_t {
#define REPRISE_NVML(class, name) name,
#include "preload/nvml/names.def"
#undef REPRISE_NVML
  count
};
constexpr const char* kNames[] = {
#define REPRISE_NVML(class, name) #name,
#include "preload/nvml/names.def"
#undef REPRISE_NVML
};
static_assert(std::size(kNames) == static_cast<size_t>(Row::count));

pthread_once_t find_once = PTHREAD_ONCE_INIT;

int no_such_function() noexcept { return kFunctionNotFound; }
int no_library() noexcept { return kLibraryNotFound; }

void find_all();

}  // namespace

extern "C" {
extern std::atomic<void*> reprise_nvml_slots[static_cast<size_t>(Row::count)];
void reprise_nvml_find() noexcept;
}

void reprise_nvml_find() noexcept { pthread_once(&find_once, find_all); }

namespace {

void find_all() {
  const char* const path = std::getenv("REPRISE_NVML");
  void* const library = path != nullptr ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  void* const none = reinterpret_cast<void*>(library != nullptr ? &no_such_function : &no_library);
  for (size_t row = 0; row < std::size(kNames); ++row) {
    void* const found = library != nullptr ? dlsym(library, kNames[row]) : nullptr;
    reprise_nvml_slots[row].store(found != nullptr ? found : none, std::memory_order_release);
  }
}

template <typename... Arguments>
int call(Row row, Arguments... arguments) noexcept {
  reprise_nvml_find();
  void* const function = reprise_nvml_slots[static_cast<size_t>(row)].load(std::memory_order_acquire);
  return reinterpret_cast<int (*)(Arguments...)>(function)(arguments...);
}

// What libreprise.so tells of the device with this name; false: what NVML says stands.
bool told(Device device, uint64_t* free, uint64_t* total) noexcept {
  using Told = bool (*)(const char* name, uint64_t* free, uint64_t* total);
  const Told ask = reinterpret_cast<Told>(dlsym(RTLD_DEFAULT, "reprise_told_memory"));
  char name[96];  // NVML_DEVICE_UUID_V2_BUFFER_SIZE
  return ask != nullptr && call(Row::nvmlDeviceGetUUID, device, name, unsigned{sizeof name}) == kSuccess &&
         ask(name, free, total);
}

}  // namespace
}  // namespace reprise::nvml

using namespace reprise::nvml;  // NOLINT(google-build-using-namespace)

extern "C" {

int nvmlDeviceGetMemoryInfo(Device device, MemoryFigures* memory) {
  const int result = call(Row::nvmlDeviceGetMemoryInfo, device, memory);
  if (result == kSuccess && told(device, &memory->free, &memory->total)) memory->used = memory->total - memory->free;
  return result;
}

int nvmlDeviceGetMemoryInfo_v2(Device device, MemoryFiguresV2* memory) {
  const int result = call(Row::nvmlDeviceGetMemoryInfo_v2, device, memory);
  if (result != kSuccess || !told(device, &memory->free, &memory->total)) return result;
  memory->reserved = 0;  // the budget is without what the driver keeps
  memory->used = memory->total - memory->free;
  return result;
}

}  // extern "C"
