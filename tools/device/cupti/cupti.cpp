// NVIDIA's CUPTI asks the driver for tables that only NVIDIA's own has, and calls itself without end where there are
// none. This one answers that it is not supported, and profilers go on without the device's activities, as they do on a
// machine that does not let them see these.
#include <cupti.h>

#include <atomic>
#include <cstdio>

#include "tools/device/cupti/unsupported.h"

namespace reprise::sim::cupti {

int unsupported() noexcept {
  static std::atomic<bool> told{false};
  if (!told.exchange(true)) {
    std::fputs("reprise: simulated device: CUPTI is not supported: a profiler sees nothing of the device\n", stderr);
  }
  return CUPTI_ERROR_NOT_SUPPORTED;
}

}  // namespace reprise::sim::cupti

extern "C" {

CUptiResult cuptiGetVersion(uint32_t* version) {
  if (version == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *version = CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}

// Of what is answered here; CUPTI has names for no more than its own results.
CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  if (text == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  switch (result) {
    case CUPTI_SUCCESS:
      *text = "CUPTI_SUCCESS";
      return CUPTI_SUCCESS;
    case CUPTI_ERROR_INVALID_PARAMETER:
      *text = "CUPTI_ERROR_INVALID_PARAMETER";
      return CUPTI_SUCCESS;
    case CUPTI_ERROR_NOT_SUPPORTED:
      *text = "CUPTI_ERROR_NOT_SUPPORTED";
      return CUPTI_SUCCESS;
    default:
      *text = "an error that the simulated CUPTI does not answer";
      return result < CUPTI_ERROR_UNKNOWN ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
  }
}

CUptiResult cuptiGetErrorMessage(CUptiResult result, const char** text) { return cuptiGetResultString(result, text); }

}  // extern "C"
