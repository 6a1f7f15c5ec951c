// A weak definition of every function of cuBLASLt, as in tools/sim/blas/entries.cpp.
#include "tools/sim/blas/unsupported.h"

extern "C" {
#define ENTRY(name) \
  __attribute__((weak, visibility("default"))) int name() { return reprise::sim::blas::unsupported(#name); }
#include "tools/sim/blas/lt/entries.def"
#undef ENTRY
}
