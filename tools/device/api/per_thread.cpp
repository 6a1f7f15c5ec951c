// The _ptsz and _ptds forms: the legacy form, in which NULL means the calling thread's default stream.
#include "tools/device/base/cuda_api.h"
#include "tools/device/streams/stream.h"

namespace {

template <auto Legacy>
struct PerThread;
template <typename... Parameters, CUresult (*Legacy)(Parameters...)>
struct PerThread<Legacy> {
  static CUresult call(Parameters... parameters) {
    const reprise::sim::PerThreadDefault scope(__builtin_return_address(0));
    return Legacy(parameters...);
  }
};

}  // namespace

// A function that is defined by its name alone, without its parameters: a jump.
#define REPRISE_SIM_PER_THREAD(legacy, symbol)                                                                   \
  extern "C" [[gnu::used, gnu::visibility("hidden")]] constinit decltype(&::legacy) const reprise_sim_##symbol = \
      &PerThread<&::legacy>::call;                                                                               \
  asm(".pushsection .text\n.globl " #symbol "\n.type " #symbol ", @function\n.p2align 4\n" #symbol               \
      ":\n  endbr64\n  jmp *reprise_sim_" #symbol "(%rip)\n.size " #symbol ", . - " #symbol "\n.popsection\n");
#include "per_thread.def"  // of the build: CMakeLists.txt makes it of hooks.def
#undef REPRISE_SIM_PER_THREAD
