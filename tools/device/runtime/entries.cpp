// The functions of the runtime that are not simulated: each says so, once, and answers cudaErrorNotSupported, so that a
// program that names one can be loaded. CUDA's headers are not included: these definitions need no parameters.
#include "tools/device/runtime/unsupported.h"

extern "C" {
#define ENTRY(name)                                         \
  __attribute__((visibility("default"))) int name() {       \
    static bool told = false;                               \
    return reprise::sim::runtime::unsupported(#name, told); \
  }
#include "tools/device/runtime/entries.def"
#undef ENTRY
}
