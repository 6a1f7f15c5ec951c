// A weak definition of every exported function. A definition in another file wins; a function without one says so, is
// counted, and answers CUDA_ERROR_NOT_SUPPORTED. cuda.h is not included: the weak definitions have no parameters, and
// need none.
#include "tools/device/api/unsupported.h"

extern "C" {

// Graphics calls are not exported: this is a driver of a machine without a display.
#define REPRISE_INTEROP_ROW(...)
#define REPRISE_ROW(symbol, ...) \
  __attribute__((weak, visibility("default"))) int symbol() { return reprise::sim::unsupported(#symbol); }
#include "preload/exports/hooks.def"
#undef REPRISE_ROW

}  // extern "C"
