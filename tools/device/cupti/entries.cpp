// A weak definition of every function of CUPTI; a definition in another file wins. CUPTI's headers are not included:
// the weak definitions have no parameters, and need none.
#include "tools/device/cupti/unsupported.h"

extern "C" {
#define ENTRY(name) \
  __attribute__((weak, visibility("default"))) int name() { return reprise::sim::cupti::unsupported(); }
#include "tools/device/cupti/entries.def"
#undef ENTRY
}
