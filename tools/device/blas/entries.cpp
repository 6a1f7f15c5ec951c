// Weak definitions of the functions of cuBLAS that are not simulated. A definition in another file wins; a function
// without one says so, once, and answers CUBLAS_STATUS_NOT_SUPPORTED: a program that names it can be loaded. cuBLAS's
// headers are not included: the weak definitions need no parameters.
#include "tools/device/blas/unsupported.h"

extern "C" {
#define ENTRY(name) \
  __attribute__((weak, visibility("default"))) int name() { return reprise::sim::blas::unsupported(#name); }
#include "tools/device/blas/entries.def"
#undef ENTRY
}
