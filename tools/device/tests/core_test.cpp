// Memory, copies, kernels: what every program does.
#include "tools/device/tests/driver.h"

namespace reprise::sim_test {
namespace {

class Core : public DriverTest {};

TEST_F(Core, CopiesToTheDeviceAndBack) {
  std::vector<int> values(100'000);
  std::iota(values.begin(), values.end(), 0);
  const CUdeviceptr memory = allocate(values.size() * sizeof(int));
  ASSERT_CU(CU(cuMemcpyHtoD)(memory, values.data(), values.size() * sizeof(int)));
  EXPECT_EQ(values, read_ints(memory, values.size()));
  ASSERT_CU(CU(cuMemFree)(memory));
}

TEST_F(Core, KernelSeesItsParameters) {
  const CUdeviceptr memory = ints(1000, 7);
  ASSERT_CU(add(memory, 5, 999));
  std::vector<int> expected(999, 12);
  expected.push_back(7);
  EXPECT_EQ(expected, read_ints(memory, 1000));
}

TEST_F(Core, ParametersAreCopiedAtTheCall) {
  Gate gate;
  CUdeviceptr flag = 0;
  ASSERT_CU(CU(cuMemHostGetDevicePointer)(&flag, gate.flag(), 0));
  CUdeviceptr memory = ints(1, 0);
  ASSERT_CU(launch("hold", {&flag}));
  CUdeviceptr to = memory;
  int value = 3;
  ASSERT_CU(launch("store", {&to, &value}));
  to = 0;
  value = 9;
  gate.open();
  EXPECT_EQ(std::vector<int>{3}, read_ints(memory, 1));
}

TEST_F(Core, ParametersInOneBuffer) {
  CUdeviceptr memory = ints(4, 1);
  struct {
    CUdeviceptr values;
    int by;
    int count;
  } buffer = {memory, 41, 4};
  size_t bytes = sizeof(buffer);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  ASSERT_CU(CU(cuLaunchKernel)(function("add"), 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, extra));
  EXPECT_EQ((std::vector<int>(4, 42)), read_ints(memory, 4));
}

TEST_F(Core, WideParameters) {
  struct {
    long long words[80];
  } in = {};
  in.words[0] = 5;
  in.words[79] = 37;
  CUdeviceptr out = allocate(8);
  ASSERT_CU(launch("wide", {&in, &out}));
  long long result = 0;
  ASSERT_CU(CU(cuMemcpyDtoH)(&result, out, 8));
  EXPECT_EQ(42, result);
}

TEST_F(Core, GlobalsOfAModule) {
  CUdeviceptr counter = 0;
  size_t bytes = 0;
  ASSERT_CU(CU(cuModuleGetGlobal)(&counter, &bytes, module_, "shared_counter"));
  EXPECT_EQ(4u, bytes);
  EXPECT_EQ(5, read_ints(counter, 1)[0]);
  CUdeviceptr out = allocate(8);
  ASSERT_CU(launch("read_globals", {&out}));
  EXPECT_EQ((std::vector<int>{5, 30}), read_ints(out, 2));
  EXPECT_EQ(77, read_ints(counter, 1)[0]);
}

TEST_F(Core, AFaultingKernelBreaksTheContext) {
  IN_A_PROCESS_OF_ITS_OWN();
  CUdeviceptr nowhere = 0x1000;
  int value = 1;
  ASSERT_CU(launch("store", {&nowhere, &value}));
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuCtxSynchronize)());
  CUdeviceptr memory = 0;
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuMemAlloc)(&memory, 16));
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuStreamQuery)(nullptr));
}

// cuda.h: "This leaves the process in an inconsistent state and any further CUDA work will return the same error."
TEST_F(Core, NoContextIsMadeBehindAFault) {
  IN_A_PROCESS_OF_ITS_OWN();
  CUdeviceptr nowhere = 0x1000;
  int value = 1;
  ASSERT_CU(launch("store", {&nowhere, &value}));
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuCtxSynchronize)());
  CUcontext more = nullptr;
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuCtxCreate)(&more, nullptr, 0, device_));
  CU(cuCtxDestroy)(context_);
  context_ = nullptr;
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuCtxCreate)(&more, nullptr, 0, device_));
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuDevicePrimaryCtxRetain)(&more, device_));
}

TEST_F(Core, AFaultReachesTheContextsThatAreThere) {
  IN_A_PROCESS_OF_ITS_OWN();
  CUcontext other = nullptr;
  ASSERT_CU(CU(cuCtxCreate)(&other, nullptr, 0, device_));
  CUdeviceptr there = allocate(16);
  ASSERT_CU(CU(cuCtxSetCurrent)(context_));
  CUdeviceptr nowhere = 0x1000;
  int value = 1;
  ASSERT_CU(launch("store", {&nowhere, &value}));
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuCtxSynchronize)());
  ASSERT_CU(CU(cuCtxSetCurrent)(other));
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuMemsetD8)(there, 1, 16));
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuCtxSynchronize)());
}

// The default of CUDA_MODULE_LOADING is LAZY: a handle that nobody asked for by name is of a function that is not
// loaded.
TEST_F(Core, EnumeratedFunctionsAreLoadedByNeed) {
  CUmoduleLoadingMode mode;
  ASSERT_CU(CU(cuModuleGetLoadingMode)(&mode));
  if (mode != CU_MODULE_LAZY_LOADING) GTEST_SKIP() << "CUDA_MODULE_LOADING=EAGER";
  unsigned count = 0;
  ASSERT_CU(CU(cuModuleGetFunctionCount)(&count, module_));
  ASSERT_GT(count, 0u);
  std::vector<CUfunction> functions(count);
  ASSERT_CU(CU(cuModuleEnumerateFunctions)(functions.data(), count, module_));
  CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_MAX;
  ASSERT_CU(CU(cuFuncIsLoaded)(&state, functions[0]));
  EXPECT_EQ(CU_FUNCTION_LOADING_STATE_UNLOADED, state);
  if (simulated()) {  // what wants a loaded function is written nowhere
    size_t offset = 0, size = 0;
    EXPECT_EQ(CUDA_ERROR_FUNCTION_NOT_LOADED, CU(cuFuncGetParamInfo)(functions[0], 0, &offset, &size));
  }
  ASSERT_CU(CU(cuFuncLoad)(functions[0]));
  ASSERT_CU(CU(cuFuncIsLoaded)(&state, functions[0]));
  EXPECT_EQ(CU_FUNCTION_LOADING_STATE_LOADED, state);
}

TEST_F(Core, MemoryInfoFollowsAllocations) {
  size_t before = 0, after = 0, total = 0;
  ASSERT_CU(CU(cuMemGetInfo)(&before, &total));
  const CUdeviceptr memory = allocate(64u << 20);
  ASSERT_CU(CU(cuMemGetInfo)(&after, &total));
  EXPECT_EQ(64u << 20, before - after);
  ASSERT_CU(CU(cuMemFree)(memory));
  ASSERT_CU(CU(cuMemGetInfo)(&after, &total));
  EXPECT_EQ(before, after);
  CUdeviceptr never = 0;
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, CU(cuMemAlloc)(&never, total + 1));
}

}  // namespace
}  // namespace reprise::sim_test
