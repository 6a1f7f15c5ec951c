// The _ptsz and _ptds forms: the legacy form, in which NULL means the calling thread's default stream.
#include "tools/device/base/cuda_api.h"
#include "tools/device/streams/stream.h"

extern "C" {

#define REPRISE_SIM_PER_THREAD(symbol, legacy, parameters, arguments)        \
  CUresult symbol parameters {                                               \
    const reprise::sim::PerThreadDefault scope(__builtin_return_address(0)); \
    return legacy arguments;                                                 \
  }
#include "tools/device/api/per_thread.def"
#undef REPRISE_SIM_PER_THREAD

}  // extern "C"
