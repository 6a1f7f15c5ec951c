// A weak definition of every exported function. What another file defines wins; what nobody wrote says so, is counted,
// and answers CUDA_ERROR_NOT_SUPPORTED. cuda.h is not included: these have no parameters, and need none.
#include "tools/sim/api/unsupported.h"

extern "C" {

#define REPRISE_SIM_STUB(symbol) \
  __attribute__((weak, visibility("default"))) int symbol() { return reprise::sim::unsupported(#symbol); }
#define REPRISE_SIM_ENTRY(base, version, symbol) REPRISE_SIM_STUB(symbol)
#define REPRISE_SIM_ENTRY_PAIR(base, version, symbol, own_version, own_symbol) \
  REPRISE_SIM_STUB(symbol) REPRISE_SIM_STUB(own_symbol)
#include "tools/sim/api/procaddress.def"

}  // extern "C"
