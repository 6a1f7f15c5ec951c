// Entry points that answer "not supported", so that libraries which were linked to all of them (PyTorch) can be loaded.
// The prototypes do not matter: whatever is passed stays with the caller.
#include <cstdio>

namespace {

int unsupported(const char* function) noexcept {
  constexpr int kNotSupported = 15;  // CUBLAS_STATUS_NOT_SUPPORTED
  std::fprintf(stderr, "reprise: simulated cuBLAS: %s is not supported\n", function);
  return kNotSupported;
}

}  // namespace

extern "C" {
#define UNSUPPORTED(name) \
  int name() { return unsupported(#name); }
#include "tools/sim/blas/unsupported.def"
#undef UNSUPPORTED
}
