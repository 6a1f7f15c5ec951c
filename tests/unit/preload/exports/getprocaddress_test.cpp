// Which function cuGetProcAddress gives: ours for what is hooked, by the driver's address or by name, version and
// flags.
#include "preload/exports/getprocaddress.h"

#include <cuda.h>

#include "preload/driver/device_observer.h"
#include "preload/exports/rows.h"
#include "tests/support/test.h"
#include "tests/unit/preload/scripted/recording_handler.h"
#include "tests/unit/preload/scripted/scripted.h"

#undef cuGetProcAddress
extern "C" CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags);

namespace reprise {
namespace {

constexpr cuuint64_t kDefault = CU_GET_PROC_ADDRESS_DEFAULT;
constexpr cuuint64_t kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

size_t row_of(const char* symbol) {
  size_t count = 0;
  const Row* table = rows(&count);
  for (size_t i = 0; i < count; ++i) {
    if (std::strcmp(table[i].symbol, symbol) == 0) return i;
  }
  ADD_FAILURE() << symbol;
  return 0;
}
void* ours(const char* symbol) { return exported_address(row_of(symbol)); }
void* drivers(const char* symbol) { return driver_address(row_of(symbol)); }

void* ask(const char* symbol, int version, cuuint64_t flags, const char* answer) {
  scripted().reset();
  scripted().procaddress(answer);
  void* function = reinterpret_cast<void*>(1);
  CUdriverProcAddressQueryResult status;
  EXPECT_EQ(cuGetProcAddress_v2(symbol, &function, version, flags, &status), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
  return function;
}

TEST(GetProcAddress, ReplacesHookedFunctionsByTheirAddress) {
  EXPECT_EQ(ask("cuMemAlloc", 3020, kDefault, "cuMemAlloc_v2"), ours("cuMemAlloc_v2"));
  EXPECT_EQ(ask("cuLaunchKernel", 7000, kPerThread, "cuLaunchKernel_ptsz"), ours("cuLaunchKernel_ptsz"));
  EXPECT_EQ(ask("cuLaunchKernel", 4000, kDefault, "cuLaunchKernel"), ours("cuLaunchKernel"));
  EXPECT_NE(ours("cuLaunchKernel"), ours("cuLaunchKernel_ptsz"));
  EXPECT_EQ(ask("cuMemcpyBatchAsync", 12080, kDefault, "cuMemcpyBatchAsync"), ours("cuMemcpyBatchAsync"));
  EXPECT_EQ(ask("cuMemcpyBatchAsync", 13000, kDefault, "cuMemcpyBatchAsync_v2"), ours("cuMemcpyBatchAsync_v2"));
}

TEST(GetProcAddress, GivesItselfInTheFormOfTheVersion) {
  EXPECT_EQ(ask("cuGetProcAddress", 11030, kDefault, "cuGetProcAddress"), ours("cuGetProcAddress"));
  EXPECT_EQ(ask("cuGetProcAddress", 12000, kDefault, "cuGetProcAddress_v2"), ours("cuGetProcAddress_v2"));
}

TEST(GetProcAddress, LeavesHarmlessFunctionsToTheDriver) {
  EXPECT_EQ(ask("cuDeviceGetCount", 2000, kDefault, "cuDeviceGetCount"), drivers("cuDeviceGetCount"));
}

TEST(GetProcAddress, ReplacesOrderedFunctions) {
  EXPECT_EQ(ask("cuCtxSetLimit", 3010, kDefault, "cuCtxSetLimit"), ours("cuCtxSetLimit"));
}

// A driver may give an address that its own symbol table does not have.
TEST(GetProcAddress, FallsBackToNameVersionAndFlags) {
  void* unknown = reinterpret_cast<void*>(&row_of);
  EXPECT_EQ(replacement_for("cuMemAlloc", 13000, false, unknown), ours("cuMemAlloc_v2"));
  EXPECT_EQ(replacement_for("cuMemcpyHtoDAsync", 13000, true, unknown), ours("cuMemcpyHtoDAsync_v2_ptsz"));
  EXPECT_EQ(replacement_for("cuMemcpyHtoD", 13000, true, unknown), ours("cuMemcpyHtoD_v2_ptds"));
  EXPECT_EQ(replacement_for("cuMemcpyHtoDAsync", 6000, true, unknown), ours("cuMemcpyHtoDAsync_v2"));
  EXPECT_EQ(replacement_for("cuMemcpyBatchAsync", 12090, false, unknown), ours("cuMemcpyBatchAsync"));
  EXPECT_EQ(replacement_for("cuStreamBeginCapture", 10000, false, unknown), ours("cuStreamBeginCapture"));
  EXPECT_EQ(replacement_for("cuStreamBeginCapture", 12000, false, unknown), ours("cuStreamBeginCapture_v2"));
  EXPECT_EQ(replacement_for("cuMemFree", 13000, true, unknown), ours("cuMemFree_v2"));  // has no per-thread form
  EXPECT_EQ(replacement_for("cuDeviceGetCount", 13000, false, unknown), unknown);
  EXPECT_EQ(replacement_for("cuSomethingNew", 13000, false, unknown), unknown);
}

TEST(GetProcAddress, InventsNothing) {
  EXPECT_EQ(ask("cuMemAlloc", 3020, kDefault, nullptr), nullptr);
  scripted().reset();
  scripted().answer("cuGetProcAddress_v2", CUDA_ERROR_INVALID_VALUE);
  void* function = reinterpret_cast<void*>(1);
  EXPECT_EQ(cuGetProcAddress_v2("cuMemAlloc", &function, 99000, kDefault, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(function, reinterpret_cast<void*>(1));
}

TEST(GetProcAddress, TakesNullStatusAndTheOldForm) {
  scripted().reset();
  scripted().procaddress("cuMemAlloc_v2");
  void* function = nullptr;
  EXPECT_EQ(cuGetProcAddress_v2("cuMemAlloc", &function, 3020, kDefault, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(function, ours("cuMemAlloc_v2"));
  function = nullptr;
  EXPECT_EQ(cuGetProcAddress("cuMemAlloc", &function, 3020, kDefault), CUDA_SUCCESS);
  EXPECT_EQ(function, ours("cuMemAlloc_v2"));
}

// A driver of CUDA 13.2: its version, names and forms that no row has. Any function that no row has will do.
class NewerDriver : public testing::Test {
 protected:
  void SetUp() override { scripted().reset(); }
  void TearDown() override { stop_watching(); }
  static void* ask(const char* symbol, int version, CUdriverProcAddressQueryResult* status) {
    void* function = reinterpret_cast<void*>(1);
    EXPECT_EQ(cuGetProcAddress_v2(symbol, &function, version, kDefault, status), CUDA_SUCCESS);
    return function;
  }
  static int version() {
    int found = 0;
    EXPECT_EQ(cuDriverGetVersion(&found), CUDA_SUCCESS);
    return found;
  }
  CUdriverProcAddressQueryResult status_ = CU_GET_PROC_ADDRESS_SUCCESS;
};

// Only the simulated device knows how many mappings it may have.
TEST_F(NewerDriver, TellsNoLimitOfMappings) { EXPECT_EQ(most_mappings(), UINT64_MAX); }

TEST_F(NewerDriver, IsItselfWhereNothingIsManagedOrRecorded) {
  scripted().procaddress("scripted_reset");
  EXPECT_NE(ask("cuSomethingNew", 13020, &status_), nullptr);
  EXPECT_EQ(status_, CU_GET_PROC_ADDRESS_SUCCESS);
  EXPECT_EQ(version(), 13020);
}

TEST_F(NewerDriver, HasNoNamesThatNoRowHasWhileCallsAreWatched) {
  watch(kWatching);
  scripted().procaddress("scripted_reset");
  EXPECT_EQ(ask("cuSomethingNew", 13020, &status_), nullptr);
  EXPECT_EQ(status_, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(ask("cuSomethingNew", 13020, nullptr), nullptr);
  void* function = reinterpret_cast<void*>(1);
  EXPECT_EQ(cuGetProcAddress("cuSomethingNew", &function, 13020, kDefault), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(function, nullptr);
  EXPECT_NE(ask("scripted_reset", 13020, &status_), nullptr);  // no name of the driver's API
}

TEST_F(NewerDriver, HasNoFormsThatNoRowHasAndKeepsTheOthers) {
  watch(kWatching | kManaging);
  scripted().procaddress("cuLaunchHostFunc");
  EXPECT_EQ(ask("cuLaunchHostFunc", 13020, &status_), ours("cuLaunchHostFunc"));
  EXPECT_EQ(status_, CU_GET_PROC_ADDRESS_SUCCESS);
  scripted().newer_procaddress("scripted_reset");  // as cuLaunchHostFunc_v2 of CUDA 13.2 is
  EXPECT_EQ(ask("cuLaunchHostFunc", 13000, &status_), ours("cuLaunchHostFunc"));
  EXPECT_EQ(ask("cuLaunchHostFunc", 13020, &status_), nullptr);
  EXPECT_EQ(status_, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

TEST_F(NewerDriver, TellsTheVersionThatIsKnown) {
  watch(kWatching);
  EXPECT_EQ(version(), kNewestVersion);
  scripted().answer("cuDriverGetVersion", CUDA_ERROR_INVALID_VALUE);
  int found = 7;
  EXPECT_EQ(cuDriverGetVersion(&found), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(found, 7);
}

}  // namespace
}  // namespace reprise
