#include "tools/device/tests/driver.h"

#include <dlfcn.h>
#include <spawn.h>

namespace reprise::sim_test {
namespace {

void* library() {
  static void* const handle = [] {
    const char* path = std::getenv("REPRISE_DRIVER");
    const bool named = path != nullptr && *path != 0;
    void* opened = dlopen(named ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) {
      std::fprintf(stderr, "no driver: %s\n", dlerror());
      std::exit(named ? 1 : 77);  // one that was built wrong must not look like a machine without a GPU
    }
    if (std::getenv("SIM_TEST_ON_GPU") != nullptr && dlsym(opened, "repriseSimGetStats") != nullptr) {
      std::fprintf(stderr, "no GPU: this is the simulated device\n");
      std::exit(77);
    }
    return opened;
  }();
  return handle;
}

void initialize() {
  static const bool once = [] {
    int count = 0;
    if (CU(cuInit)(0) != CUDA_SUCCESS || CU(cuDeviceGetCount)(&count) != CUDA_SUCCESS || count == 0) {
      std::fprintf(stderr, "no device\n");
      std::exit(77);
    }
    return true;
  }();
  static_cast<void>(once);
}

bool one_context() {
  static const bool one = !simulated() || std::getenv("SIM_TEST_ONE_CONTEXT") != nullptr;
  return one;
}

CUcontext shared_context = nullptr;

}  // namespace

void* control_symbol(const char* name) { return dlsym(library(), name); }

const char* cubin() {
  const char* path = std::getenv("SIM_TEST_CUBIN");
  if (path == nullptr) {
    std::fprintf(stderr, "SIM_TEST_CUBIN names the kernels; ctest sets it\n");
    std::exit(1);
  }
  return path;
}

bool ran_alone() {
  if (std::getenv("SIM_TEST_ALONE") != nullptr) return false;
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  std::string program = "/proc/self/exe";
  std::string filter = std::string("--gtest_filter=") + test.test_suite_name() + "." + test.name();
  char* arguments[] = {program.data(), filter.data(), nullptr};
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  std::string alone = "SIM_TEST_ALONE=1";
  variables.push_back(alone.data());
  variables.push_back(nullptr);
  std::fflush(nullptr);
  pid_t child = 0;
  int status = -1;
  EXPECT_EQ(0, posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, variables.data()));
  if (child > 0) waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << filter << " ended with status " << status;
  return true;
}

void* symbol(const char* name) {
  void* found = dlsym(library(), name);
  if (found == nullptr) {
    std::fprintf(stderr, "the driver lacks %s\n", name);
    std::abort();
  }
  return found;
}

std::string name_of(CUresult result) {
  const char* name = nullptr;
  return CU(cuGetErrorName)(result, &name) == CUDA_SUCCESS ? name : std::to_string(static_cast<int>(result));
}

void DriverTest::SetUp() {
  initialize();
  ASSERT_CU(CU(cuDeviceGet)(&device_, 0));
  if (one_context() && shared_context != nullptr) {
    context_ = shared_context;
    ASSERT_CU(CU(cuCtxSetCurrent)(context_));
  } else {
    ASSERT_CU(CU(cuCtxCreate)(&context_, nullptr, 0, device_));
    if (one_context()) shared_context = context_;
  }
  ASSERT_CU(CU(cuModuleLoad)(&module_, cubin()));
}

void DriverTest::TearDown() {
  if (context_ == nullptr) return;
  if (one_context()) {  // nothing of this test runs on into the next one
    CU(cuCtxSetCurrent)(context_);
    CU(cuCtxSynchronize)();
    if (module_ != nullptr) CU(cuModuleUnload)(module_);
  }
  // The test may have left others on the thread's stack.
  for (CUcontext top = nullptr; CU(cuCtxPopCurrent)(&top) == CUDA_SUCCESS;) continue;
  if (!one_context()) CU(cuCtxDestroy)(context_);
}

CUfunction DriverTest::function(const char* name) {
  CUfunction found = nullptr;
  EXPECT_CU(CU(cuModuleGetFunction)(&found, module_, name));
  return found;
}

CUdeviceptr DriverTest::allocate(size_t bytes) {
  CUdeviceptr address = 0;
  EXPECT_CU(CU(cuMemAlloc)(&address, bytes));
  return address;
}

CUdeviceptr DriverTest::ints(size_t count, int value) {
  const CUdeviceptr address = allocate(count * sizeof(int));
  const std::vector<int> values(count, value);
  EXPECT_CU(CU(cuMemcpyHtoD)(address, values.data(), count * sizeof(int)));
  // It may return before pageable bytes are there ("API synchronization behavior" of the driver API), and streams that
  // do not block do not wait for them.
  EXPECT_CU(CU(cuStreamSynchronize)(CU_STREAM_LEGACY));
  return address;
}

std::vector<int> DriverTest::read_ints(CUdeviceptr from, size_t count) {
  std::vector<int> values(count, -1);
  EXPECT_CU(CU(cuMemcpyDtoH)(values.data(), from, count * sizeof(int)));
  return values;
}

CUresult DriverTest::launch(const char* name, std::vector<void*> parameters, CUstream stream, unsigned grid,
                            unsigned block) {
  return CU(cuLaunchKernel)(function(name), grid, 1, 1, block, 1, 1, 0, stream, parameters.data(), nullptr);
}

CUresult DriverTest::add(CUdeviceptr values, int by, int count, CUstream stream) {
  return launch("add", {&values, &by, &count}, stream, static_cast<unsigned>((count + 31) / 32), 32);
}

Gate::Gate() {
  void* memory = nullptr;
  EXPECT_CU(CU(cuMemHostAlloc)(&memory, sizeof(int), CU_MEMHOSTALLOC_DEVICEMAP));
  flag_ = static_cast<int*>(memory);
  __atomic_store_n(flag_, 0, __ATOMIC_SEQ_CST);
}

Gate::~Gate() {
  open();
  CU(cuCtxSynchronize)();
  CU(cuMemFreeHost)(flag_);
}

}  // namespace reprise::sim_test

void PrintTo(CUresult result, std::ostream* out) { *out << reprise::sim_test::name_of(result); }
