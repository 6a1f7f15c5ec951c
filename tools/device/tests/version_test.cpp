// REPRISE_SIM_VERSION: what a driver of another CUDA version has. Each case runs in a process of its own, which sets
// the variable before it opens the driver.
#include "tools/device/tests/driver.h"

namespace reprise::sim_test {
namespace {

constexpr cuuint64_t kLegacy = CU_GET_PROC_ADDRESS_LEGACY_STREAM;
using CopyWithAttributes = CUresult (*)(CUdeviceptr, CUdeviceptr, size_t, CUmemcpyAttributes*, CUstream);

struct Answer {
  CUresult result;
  void* function;
  CUdriverProcAddressQueryResult status;
};
Answer ask(const char* name, int version) {
  Answer answer{CUDA_SUCCESS, nullptr, CU_GET_PROC_ADDRESS_SUCCESS};
  answer.result = CU(cuGetProcAddress)(name, &answer.function, version, kLegacy, &answer.status);
  return answer;
}

template <typename Body>
void with_version(const char* version, const char* said, Body body) {
  EXPECT_EXIT(
      {
        setenv("REPRISE_SIM_VERSION", version, 1);
        std::exit(body());
      },
      testing::ExitedWithCode(0), said);
}

TEST(Version, AnOlderDriverLacksWhatCameLater) {
  with_version("12040", "REPRISE_SIM_VERSION=12040", [] {
    int version = 0;
    if (CU(cuDriverGetVersion)(&version) != CUDA_SUCCESS || version != 12040) return 1;
    if (control_symbol("cuEventElapsedTime_v2") != nullptr || control_symbol("cuCtxCreate_v4") != nullptr) return 2;
    if (control_symbol("cuEventElapsedTime") == nullptr || control_symbol("cuCtxCreate_v3") == nullptr) return 3;
    if (ask("cuEventElapsedTime", 12040).function != symbol("cuEventElapsedTime")) return 4;
    const Answer unknown = ask("cuMemcpyBatchAsync", 12040);
    if (unknown.result != CUDA_SUCCESS || unknown.function != nullptr) return 5;
    if (unknown.status != CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) return 6;
    return ask("cuEventElapsedTime", 12080).result == CUDA_ERROR_INVALID_VALUE ? 0 : 7;
  });
}

TEST(Version, ANewerDriverHasACopyThatNoTableKnows) {
  with_version("13020", "REPRISE_SIM_VERSION=13020", [] {
    const Answer found = ask("cuMemcpyWithAttributesAsync", 13020);
    if (found.function == nullptr || ask("cuMemcpyWithAttributesAsync", 13000).function != nullptr) return 1;
    CUcontext context = nullptr;
    CUdeviceptr memory = 0;
    if (CU(cuInit)(0) != CUDA_SUCCESS || CU(cuCtxCreate)(&context, nullptr, 0, 0) != CUDA_SUCCESS) return 2;
    if (CU(cuMemAlloc)(&memory, 4) != CUDA_SUCCESS) return 3;
    uint32_t word = 0x12345678;
    CUmemcpyAttributes attributes{};
    const auto copy = reinterpret_cast<CopyWithAttributes>(found.function);
    if (copy(memory, reinterpret_cast<CUdeviceptr>(&word), 4, nullptr, nullptr) != CUDA_ERROR_INVALID_VALUE) return 4;
    if (copy(memory, reinterpret_cast<CUdeviceptr>(&word), 4, &attributes, nullptr) != CUDA_SUCCESS) return 5;
    uint32_t back = 0;
    return CU(cuMemcpyDtoH)(&back, memory, 4) == CUDA_SUCCESS && back == word ? 0 : 6;
  });
}

TEST(Version, TheDriverOfTheTableHasNothingNewer) {
  void* found = &found;
  ASSERT_CU(CU(cuGetProcAddress)("cuMemcpyWithAttributesAsync", &found, 13000, kLegacy, nullptr));
  EXPECT_EQ(nullptr, found);
}

}  // namespace
}  // namespace reprise::sim_test
