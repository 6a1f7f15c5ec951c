// The entry points of forwards.def. Each is defined by its name alone, without its parameters: a jump to a function
// whose parameters are those that CUDA's header declares.
#include <cuda_profiler_api.h>

#include "tools/device/runtime/forward.h"

namespace reprise::sim::runtime {
namespace {

template <typename EntryPoint, auto Function>
struct Forward;
template <typename... Parameters, auto Function>
struct Forward<cudaError_t (*)(Parameters...), Function> {
  static cudaError_t call(Parameters... parameters) { return forward(Function, parameters...); }
};

template <typename Parameter>
Parameter with_per_thread(Parameter parameter) {
  if constexpr (std::is_same_v<Parameter, cudaStream_t>) {
    return per_thread(parameter);
  } else {
    return parameter;
  }
}

template <auto Legacy>
struct PerThread;
template <typename... Parameters, cudaError_t (*Legacy)(Parameters...)>
struct PerThread<Legacy> {
  static cudaError_t call(Parameters... parameters) { return Legacy(with_per_thread(parameters)...); }
};

}  // namespace
}  // namespace reprise::sim::runtime

#define JUMP(symbol, type, ...)                                                                                \
  extern "C" [[gnu::used, gnu::visibility("hidden")]] constinit decltype(&::type) const reprise_sim_##symbol = \
      &reprise::sim::runtime::__VA_ARGS__::call;                                                               \
  asm(".pushsection .text\n.globl " #symbol "\n.type " #symbol ", @function\n.p2align 4\n" #symbol             \
      ":\n  endbr64\n  jmp *reprise_sim_" #symbol "(%rip)\n.size " #symbol ", . - " #symbol "\n.popsection\n");
#define FORWARD(symbol, function) \
  JUMP(symbol, symbol, Forward<decltype(&::symbol), &reprise::sim::runtime::Driver::function>)
#define PER_THREAD(legacy, form) JUMP(legacy##_##form, legacy, PerThread<&::legacy>)
#include "tools/device/runtime/forwards.def"
