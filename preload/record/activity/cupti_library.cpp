#include "preload/record/activity/cupti_library.h"

#include <cstring>
#include <initializer_list>

#include "preload/driver/resolve.h"

namespace reprise {
namespace {

// CUDA 12.9: before it, CUPTI crashes when a buffer is declined (its release notes). What comes after CUDA 13 is
// unknown.
constexpr uint32_t kOldestVersion = 27;
constexpr uint32_t kNewestVersion = 139999;

// What the shim brackets for a device time, in all of its forms. CUPTI's own names are asked, so newer ones count, too.
constexpr const char* kPrefixes[] = {"cuLaunchKernel", "cuLaunchCooperativeKernel", "cuMemcpy", "cuMemset",
                                     "cuGraphLaunch"};
constexpr CUpti_CallbackId kMostCalls = 4096;

template <typename Function>
bool find(void* library, const char* name, Function** entry) noexcept {
  *entry = reinterpret_cast<Function*>(library_symbol(library, name));
  return *entry != nullptr;
}

bool works_on_device(const char* call) noexcept {
  for (const char* prefix : kPrefixes) {
    if (std::strncmp(call, prefix, std::strlen(prefix)) == 0) return true;
  }
  return false;
}

}  // namespace

bool CuptiLibrary::load() noexcept {
  for (const char* name : {"libcupti.so.13", "libcupti.so", "libcupti.so.12"}) {
    void* library = load_library(name);
    uint32_t version = 0;
    if (library != nullptr && find(library, "cuptiGetVersion", &get_version) &&
        find(library, "cuptiGetTimestamp", &get_timestamp) && find(library, "cuptiSubscribe", &subscribe) &&
        find(library, "cuptiUnsubscribe", &unsubscribe) && find(library, "cuptiGetCallbackName", &callback_name) &&
        find(library, "cuptiActivityRegisterCallbacks", &register_callbacks) &&
        find(library, "cuptiActivityEnable", &enable) && find(library, "cuptiActivityDisable", &disable) &&
        find(library, "cuptiActivityEnableDriverApi", &enable_driver_call) &&
        find(library, "cuptiActivityFlushAll", &flush_all) &&
        find(library, "cuptiActivityGetNextRecord", &next_record) &&
        find(library, "cuptiActivityPushExternalCorrelationId", &push) &&
        find(library, "cuptiActivityPopExternalCorrelationId", &pop) && get_version(&version) == CUPTI_SUCCESS &&
        version >= kOldestVersion && version <= kNewestVersion) {
      return true;
    }
  }
  return false;
}

uint32_t CuptiLibrary::enable_driver_calls(bool wanted) const noexcept {
  uint32_t count = 0;
  for (CUpti_CallbackId call = 0; call < kMostCalls; ++call) {
    const char* name = nullptr;
    if (callback_name(CUPTI_CB_DOMAIN_DRIVER_API, call, &name) != CUPTI_SUCCESS || name == nullptr) continue;
    if (works_on_device(name) && enable_driver_call(call, wanted ? 1 : 0) == CUPTI_SUCCESS) ++count;
  }
  return count;
}

}  // namespace reprise
