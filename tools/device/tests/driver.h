// The driver under test, opened at run time: REPRISE_DRIVER, else libcuda.so.1. So the same tests run on the simulated
// device and on a real one. Callers: the tests of this folder. CU(cuMemAlloc)(...) is what cuda.h calls cuMemAlloc.
#pragma once
#include <cuda.h>

#include "tests/support/test.h"

#define REPRISE_TEXT_OF(name) #name
#define REPRISE_TEXT(name) REPRISE_TEXT_OF(name)
#define CU(name)                                                                                                    \
  ([]() -> decltype(&::name) {                                                                                      \
    static const auto entry = reinterpret_cast<decltype(&::name)>(::reprise::sim_test::symbol(REPRISE_TEXT(name))); \
    return entry;                                                                                                   \
  }())
// A symbol whose type is that of another: CU_AS("cuMemcpy_ptds", cuMemcpy).
#define CU_AS(text, like) (reinterpret_cast<decltype(&::like)>(::reprise::sim_test::symbol(text)))

#define ASSERT_CU(expression) ASSERT_EQ(CUDA_SUCCESS, (expression))
#define EXPECT_CU(expression) EXPECT_EQ(CUDA_SUCCESS, (expression))
// The first line of a test that makes a kernel fail: nothing of CUDA works in its process afterwards.
#define IN_A_PROCESS_OF_ITS_OWN() \
  if (::reprise::sim_test::ran_alone()) return

namespace reprise::sim_test {

// Ends the program with code 77 (skipped) when there is no driver or no device, or, under SIM_TEST_ON_GPU=1, when the
// driver is the simulated one; fails loudly on a missing symbol.
void* symbol(const char* name);
// nullptr on a real driver.
void* control_symbol(const char* name);
// This folder's kernels: SIM_TEST_CUBIN, which ctest sets.
const char* cubin();
// False in a process that runs the current test alone. Else it starts one, waits for it, and expects that it succeeds.
bool ran_alone();
inline bool simulated() { return control_symbol("repriseSimGetStats") != nullptr; }

// Each test has a context on device 0, and the module of this folder's kernels. The context is a fresh one on the
// simulated device. A real one takes up to half a second for that, so there all tests of a process share one
// (SIM_TEST_ONE_CONTEXT=1: on the simulated device, too), and a test that makes kernels fail has a process of its own.
class DriverTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  CUfunction function(const char* name);
  CUdeviceptr allocate(size_t bytes);
  // `count` ints of device memory, each `value`.
  CUdeviceptr ints(size_t count, int value);
  std::vector<int> read_ints(CUdeviceptr from, size_t count);
  CUresult launch(const char* name, std::vector<void*> parameters, CUstream stream = nullptr, unsigned grid = 1,
                  unsigned block = 1);
  CUresult add(CUdeviceptr values, int by, int count, CUstream stream = nullptr);

  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
};

// A kernel that runs until open(): keeps a stream busy. Opens itself at the end.
class Gate {
 public:
  Gate();
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void open() { __atomic_store_n(flag_, 1, __ATOMIC_SEQ_CST); }
  int* flag() { return flag_; }

 private:
  int* flag_ = nullptr;
};

std::string name_of(CUresult result);

}  // namespace reprise::sim_test

// Results print by name.
void PrintTo(CUresult result, std::ostream* out);
