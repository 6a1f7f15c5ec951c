// A weak definition of every function of the runtime. A definition in another file wins; a function without one says
// so, once, and answers cudaErrorNotSupported: a program that names it can be loaded. CUDA's headers are not included:
// the weak definitions have no parameters, and need none.
#include "tools/device/runtime/unsupported.h"

extern "C" {
#define ENTRY(name)                                         \
  __attribute__((weak, visibility("default"))) int name() { \
    static bool told = false;                               \
    return reprise::sim::runtime::unsupported(#name, told); \
  }
#include "tools/device/runtime/entries.def"
#undef ENTRY
}
