// The functions of CUPTI that are not simulated. CUPTI's headers are not included: these definitions need no
// parameters.
#include "tools/device/cupti/unsupported.h"

extern "C" {
#define ENTRY(name) \
  __attribute__((visibility("default"))) int name() { return reprise::sim::cupti::unsupported(); }
#include "tools/device/cupti/entries.def"
#undef ENTRY
}
