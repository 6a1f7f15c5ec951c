// The functions of cuBLASLt that are not simulated, as in tools/device/blas/entries.cpp.
#include "tools/device/blas/unsupported.h"

extern "C" {
#define ENTRY(name) \
  __attribute__((visibility("default"))) int name() { return reprise::sim::blas::unsupported(#name); }
#include "tools/device/blas/lt/entries.def"
#undef ENTRY
}
