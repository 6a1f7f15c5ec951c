// Memory that the driver takes for itself, beside ours.
#include <cuda.h>

#include "tests/support/test.h"
#include "tests/unit/preload/scripted/recording_handler.h"
#include "tests/unit/preload/scripted/scripted.h"

namespace reprise {
namespace {

// Calls by which the driver takes memory of its own, code above all. Refused, they have done nothing.
TEST(Headroom, CallsThatTakeTheDriversOwnMemoryAreTriedAgain) {
  scripted().reset();
  const auto kernel = reinterpret_cast<CUkernel>(0xa000);
  const auto function = reinterpret_cast<CUfunction>(0xa100);
  const auto library = reinterpret_cast<CUlibrary>(0xabe0);
  const auto module = reinterpret_cast<CUmodule>(0xabc0);
  CUfunction found = nullptr;
  CUmodule module_found = nullptr;
  CUgraphExec executable = nullptr;
  const std::pair<const char*, std::function<CUresult()>> calls[] = {
      {"cuFuncLoad", [&] { return cuFuncLoad(function); }},
      {"cuModuleGetFunction", [&] { return cuModuleGetFunction(&found, module, "a_kernel"); }},
      {"cuKernelGetFunction", [&] { return cuKernelGetFunction(&found, kernel); }},
      {"cuLibraryGetModule", [&] { return cuLibraryGetModule(&module_found, library); }},
      {"cuCtxSetLimit", [&] { return cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 20); }},
      {"cuGraphInstantiateWithFlags", [&] { return cuGraphInstantiateWithFlags(&executable, nullptr, 0); }},
  };
  for (const auto& [name, call] : calls) {
    SCOPED_TRACE(name);
    stop_watching();
    watch(kWatching);
    const uint64_t before = scripted().call(name).count;
    scripted().answer(name, CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(call(), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(handler().refusals, std::vector<int>()) << "nothing of ours is on the device";
    watch(kWatching | kManaging);
    handler().while_making_headroom = [](int refusal) { return refusal < 2; };
    EXPECT_EQ(call(), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(handler().refusals, (std::vector<int>{0, 1, 2})) << "until there is no more to give";
    EXPECT_EQ(scripted().call(name).count - before, 4u);
    handler().while_making_headroom = [name = name](int refusal) {
      if (refusal == 1) scripted().answer(name, CUDA_SUCCESS);
      return true;
    };
    EXPECT_EQ(call(), CUDA_SUCCESS);
    EXPECT_EQ(scripted().call(name).count - before, 7u);
    scripted().answer(name, CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(call(), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(handler().refusals.size(), 5u) << "more memory is no answer to that";
    scripted().answer(name, CUDA_SUCCESS);
  }
  stop_watching();
}

}  // namespace
}  // namespace reprise
