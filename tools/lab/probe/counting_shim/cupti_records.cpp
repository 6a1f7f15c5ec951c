#include "tools/lab/probe/counting_shim/cupti_records.h"

#include <cupti.h>
#include <dlfcn.h>

#include <cstdlib>

#include "tools/lab/probe/counting_shim/counts.h"

namespace reprise::count {
namespace {

struct Cupti {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  decltype(&cuptiActivityGetNextRecord) next = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped = nullptr;
  bool on = false;
};
Cupti cupti;

constexpr size_t kBufferBytes = size_t{8} << 20;

void request_buffer(uint8_t** buffer, size_t* bytes, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(64, kBufferBytes));
  *bytes = *buffer ? kBufferBytes : 0;
  *most_records = 0;
}

void take_buffer(CUcontext context, uint32_t stream, uint8_t* buffer, size_t /*bytes*/, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (valid > 0 && cupti.next(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || record->kind == CUPTI_ACTIVITY_KIND_KERNEL) {
      count_record(reinterpret_cast<CUpti_ActivityKernel10*>(record)->name);
    }
  }
  size_t dropped = 0;
  if (cupti.dropped(context, stream, &dropped) == CUPTI_SUCCESS && dropped > 0) count_cupti("on", dropped);
  std::free(buffer);
}

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

void start_records() noexcept {
  const char* path = std::getenv("REPRISE_COUNT_CUPTI");
  if (!path || !*path) return;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return count_cupti(dlerror(), 0);
  if (!find(library, "cuptiActivityRegisterCallbacks", cupti.register_callbacks) ||
      !find(library, "cuptiActivityEnable", cupti.enable) || !find(library, "cuptiActivityFlushAll", cupti.flush) ||
      !find(library, "cuptiActivityGetNextRecord", cupti.next) ||
      !find(library, "cuptiActivityGetNumDroppedRecords", cupti.dropped)) {
    return count_cupti("this CUPTI lacks the activity functions", 0);
  }
  if (cupti.register_callbacks(request_buffer, take_buffer) != CUPTI_SUCCESS)
    return count_cupti("callbacks refused", 0);
  if (cupti.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS)
    return count_cupti("kernel records refused", 0);
  cupti.on = true;
  count_cupti("on", 0);
}

void finish_records() noexcept {
  if (cupti.on) cupti.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

}  // namespace reprise::count
