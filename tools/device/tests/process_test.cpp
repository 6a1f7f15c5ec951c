// Processes: before cuInit, forks, exits, aborts. Each case runs in a child, so that it starts with a driver untouched.
#include "tools/device/tests/driver.h"

namespace reprise::sim_test {
namespace {

// The status of a child that runs `body` and exits with its result.
int in_child(int (*body)()) {
  const pid_t child = fork();
  if (child == 0) std::exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// Where nothing is mapped; the compiler shall not know.
volatile int* nowhere() {
  static volatile uintptr_t address = 8;
  return reinterpret_cast<volatile int*>(address);
}

CUcontext start() {
  CUcontext context = nullptr;
  if (CU(cuInit)(0) != CUDA_SUCCESS) return nullptr;
  CU(cuCtxCreate)(&context, nullptr, 0, 0);
  return context;
}

TEST(Process, NothingWorksBeforeInit) {
  EXPECT_EQ(0, in_child([] {
              int count = 0;
              CUcontext context = nullptr;
              if (CU(cuDeviceGetCount)(&count) != CUDA_ERROR_NOT_INITIALIZED) return 1;
              if (CU(cuCtxGetCurrent)(&context) != CUDA_ERROR_NOT_INITIALIZED) return 2;
              return CU(cuDriverGetVersion)(&count) == CUDA_SUCCESS && count >= 13000 ? 0 : 3;
            }));
}

TEST(Process, NothingWorksInAForkOfAUser) {
  EXPECT_EQ(0, in_child([] {
              if (start() == nullptr) return 1;
              const pid_t child = fork();
              if (child == 0) {
                CUdeviceptr memory = 0;
                if (CU(cuMemAlloc)(&memory, 16) != CUDA_ERROR_NOT_INITIALIZED) _exit(1);
                _exit(CU(cuInit)(0) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 2);
              }
              int status = 0;
              waitpid(child, &status, 0);
              CUdeviceptr memory = 0;
              if (CU(cuMemAlloc)(&memory, 16) != CUDA_SUCCESS) return 2;
              return status;
            }));
}

TEST(Process, ExitsWhileAKernelRuns) {
  EXPECT_EQ(0, in_child([] {
              if (start() == nullptr) return 1;
              CUmodule module = nullptr;
              CUfunction hold = nullptr;
              void* gate = nullptr;
              if (CU(cuModuleLoad)(&module, cubin()) != CUDA_SUCCESS) return 2;
              if (CU(cuModuleGetFunction)(&hold, module, "hold") != CUDA_SUCCESS) return 3;
              CU(cuMemHostAlloc)(&gate, 4, 0);
              *static_cast<int*>(gate) = 0;
              void* parameters[] = {&gate};
              // A real device waits for it, or kills it, at exit; the simulated one leaves with it.
              if (!simulated()) *static_cast<int*>(gate) = 1;
              return CU(cuLaunchKernel)(hold, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) == CUDA_SUCCESS ? 0
                                                                                                                 : 4;
            }));
}

TEST(Process, TheProgramsOwnFaultsStayItsOwn) {
  const int status = in_child([] {
    if (start() == nullptr) return 1;
    signal(SIGABRT, SIG_DFL);
    *nowhere() = 1;
    return 0;
  });
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  EXPECT_NE(0, status);
#else
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(SIGSEGV, WTERMSIG(status));
#endif
}

TEST(Process, AHandlerThatWasThereIsCalled) {
  EXPECT_EQ(7 << 8, in_child([] {
              struct sigaction action = {};
              action.sa_handler = [](int) { _exit(7); };
              sigaction(SIGSEGV, &action, nullptr);
              if (start() == nullptr) return 1;
              *nowhere() = 1;
              return 0;
            }));
}

TEST(Process, StatsAreWrittenAtExit) {
  if (!simulated()) GTEST_SKIP() << "asks the simulated driver for its own counters and settings";
  const std::string path = ::testing::TempDir() + "sim_stats_" + std::to_string(getpid()) + ".json";
  setenv("REPRISE_SIM_STATS", path.c_str(), 1);
  EXPECT_EQ(0, in_child([] {
              if (start() == nullptr) return 1;
              CUdeviceptr memory = 0;
              CU(cuMemAlloc)(&memory, 1 << 20);
              CU(cuMemFree)(memory);
              return 0;
            }));
  unsetenv("REPRISE_SIM_STATS");
  EXPECT_TRUE(has(read_file(path), "\"peak_bytes\": 2097152"));
  unlink(path.c_str());
}

// NVIDIA's runtimes ask for private tables; who did is said once.
TEST(Process, ARuntimeThatCannotRunHereIsNamed) {
  if (!simulated()) GTEST_SKIP() << "a real driver has the tables";
  testing::internal::CaptureStderr();
  EXPECT_EQ(0, in_child([] {
              const void* table = nullptr;
              const CUuuid name = {};
              for (int i = 0; i < 2; ++i) {
                if (CU(cuGetExportTable)(&table, &name) != CUDA_ERROR_NOT_FOUND) return 1;
              }
              return 0;
            }));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("reprise: simulated device: "), 0u) << said;
  EXPECT_TRUE(has(said, " is a CUDA runtime of NVIDIA's or contains one"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST(Process, StrictModeAbortsOnWhatNobodyWrote) {
  if (!simulated()) GTEST_SKIP() << "asks the simulated driver for its own counters and settings";
  setenv("REPRISE_SIM_STRICT", "1", 1);
  const int status = in_child([] {
    if (start() == nullptr) return 1;
    CUarray array = nullptr;
    CUDA_ARRAY_DESCRIPTOR descriptor = {};
    CU(cuArrayCreate)(&array, &descriptor);
    return 0;
  });
  unsetenv("REPRISE_SIM_STRICT");
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(SIGABRT, WTERMSIG(status));
}

TEST(Process, ContextsStackPerThread) {
  EXPECT_EQ(0, in_child([] {
              const CUcontext first = start();
              CUcontext second = nullptr, current = nullptr;
              CU(cuCtxCreate)(&second, nullptr, 0, 0);
              CU(cuCtxGetCurrent)(&current);
              if (current != second) return 1;
              CUcontext popped = nullptr;
              CU(cuCtxPopCurrent)(&popped);
              CU(cuCtxGetCurrent)(&current);
              if (popped != second || current != first) return 2;
              int result = 0;
              std::thread other([&] {
                CUdeviceptr memory = 0;
                if (CU(cuMemAlloc)(&memory, 16) != CUDA_ERROR_INVALID_CONTEXT) result = 3;
              });
              other.join();
              CU(cuCtxPopCurrent)(nullptr);
              if (CU(cuCtxPopCurrent)(nullptr) != CUDA_ERROR_INVALID_CONTEXT) return 4;
              return result;
            }));
}

TEST(Process, PrimaryContextEndsWithItsLastUser) {
  EXPECT_EQ(0, in_child([] {
              if (CU(cuInit)(0) != CUDA_SUCCESS) return 1;
              CUcontext one = nullptr, two = nullptr;
              unsigned flags = 0;
              int active = -1;
              CU(cuDevicePrimaryCtxGetState)(0, &flags, &active);
              if (active != 0) return 2;
              CU(cuDevicePrimaryCtxRetain)(&one, 0);
              CU(cuDevicePrimaryCtxRetain)(&two, 0);
              if (one != two) return 3;
              CU(cuCtxSetCurrent)(one);
              CUdeviceptr memory = 0;
              if (CU(cuMemAlloc)(&memory, 1 << 20) != CUDA_SUCCESS) return 4;
              CU(cuDevicePrimaryCtxRelease)(0);
              CU(cuDevicePrimaryCtxGetState)(0, &flags, &active);
              if (active != 1) return 5;
              CU(cuDevicePrimaryCtxRelease)(0);
              CU(cuDevicePrimaryCtxGetState)(0, &flags, &active);
              if (active != 0) return 6;
              if (CU(cuDevicePrimaryCtxRelease)(0) != CUDA_ERROR_INVALID_CONTEXT) return 7;
              CU(cuDevicePrimaryCtxRetain)(&one, 0);
              CU(cuCtxSetCurrent)(one);
              return CU(cuMemAlloc)(&memory, 1 << 20) == CUDA_SUCCESS ? 0 : 8;
            }));
}

}  // namespace
}  // namespace reprise::sim_test
