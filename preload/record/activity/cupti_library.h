// CUPTI's entry points, opened at run time: its version must fit the driver's, and most programs need none. Callers:
// the CUPTI source.
#pragma once
#include <cupti.h>

namespace reprise {

struct CuptiLibrary {
  decltype(&cuptiGetVersion) get_version;
  decltype(&cuptiGetTimestamp) get_timestamp;
  decltype(&cuptiSubscribe) subscribe;
  decltype(&cuptiUnsubscribe) unsubscribe;
  decltype(&cuptiGetCallbackName) callback_name;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks;
  decltype(&cuptiActivityEnable) enable;
  decltype(&cuptiActivityDisable) disable;
  decltype(&cuptiActivityEnableDriverApi) enable_driver_call;
  decltype(&cuptiActivityFlushAll) flush_all;
  decltype(&cuptiActivityGetNextRecord) next_record;
  decltype(&cuptiActivityPushExternalCorrelationId) push;
  decltype(&cuptiActivityPopExternalCorrelationId) pop;

  // false: there is none that this code knows.
  bool load() noexcept;

  // Records of the driver calls that do work on the device, and of no others: a thread that polls events fills buffers.
  // The number of kinds of calls.
  uint32_t enable_driver_calls(bool wanted) const noexcept;
};

}  // namespace reprise
