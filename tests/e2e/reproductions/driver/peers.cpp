// peers context|pool|again|both|forbidden: kernels of the second device touch memory of the first, which the program
// has allowed it: for all of the first one's memory, for a pool, or again after it was disallowed; tensors of both
// devices in one kernel of either; a kernel that was allowed nothing.
#include <cstring>
#include <vector>

#include "tests/e2e/support/driver_program.h"

namespace {

using program::kMiB;

constexpr const char* kModule =
    ".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry of_a_peer(.param .u64 a) { ret; }\n";

CUdeviceptr allocate(bool from_pool, unsigned value) {
  if (!from_pool) return program::filled(8, value);
  CUdeviceptr tensor = 0;
  CHECK(cuMemAllocAsync(&tensor, 8 * kMiB, nullptr));
  CHECK(cuMemsetD32(tensor, value, 2 * kMiB));
  CHECK(cuCtxSynchronize());
  return tensor;
}

CUfunction function_of(const char* text, const char* name) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CHECK(cuModuleLoadData(&module, text));
  CHECK(cuModuleGetFunction(&function, module, name));
  return function;
}

// Kernels without a twin: what both tensors hold afterwards follows from what both held.
constexpr const char* kBoth =
    ".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry of_both(.param .u64 a, .param .u64 b) { ret; }\n";

void launch_on_both(CUfunction function, CUdeviceptr a, CUdeviceptr b) {
  void* parameters[] = {&a, &b};
  CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
  CHECK(cuCtxSynchronize());
}

// Four tensors on either device, twice the budget on the first; each round, kernels of both and copies between them.
void both(CUcontext first) {
  CUcontext second = nullptr;
  CHECK(cuDevicePrimaryCtxRetain(&second, 1));
  std::vector<CUdeviceptr> here, there;
  for (unsigned i = 0; i < 4; ++i) here.push_back(program::filled(8, i));
  CHECK(cuCtxEnablePeerAccess(second, 0));
  const CUfunction by_first = function_of(kBoth, "of_both");
  CHECK(cuCtxSetCurrent(second));
  for (unsigned i = 0; i < 4; ++i) there.push_back(program::filled(8, 10 + i));
  CHECK(cuCtxEnablePeerAccess(first, 0));
  const CUfunction by_second = function_of(kBoth, "of_both");
  for (size_t round = 0; round < 8; ++round) {
    const size_t one = round % 4;
    const size_t other = (round + 1) % 4;
    CHECK(cuCtxSetCurrent(second));
    launch_on_both(by_second, here[one], there[other]);
    CHECK(cuMemcpyPeer(here[other], first, there[one], second, 4 * kMiB));
    CHECK(cuCtxSynchronize());
    CHECK(cuCtxSetCurrent(first));
    launch_on_both(by_first, there[other], here[(round + 2) % 4]);
    CHECK(cuMemcpyDtoD(there[one] + 4 * kMiB, here[one], 4 * kMiB));
    CHECK(cuCtxSynchronize());
    for (size_t i = 0; i < 4; ++i) std::printf("%08x %08x\n", program::word(here[i]), program::word(there[i]));
  }
}

// A program that goes wrong the same way with and without us.
void forbidden() {
  CUcontext second = nullptr;
  CUdeviceptr tensor = program::filled(8, 1);
  CHECK(cuDevicePrimaryCtxRetain(&second, 1));
  CHECK(cuCtxSetCurrent(second));
  const CUfunction function = function_of(kModule, "of_a_peer");
  void* parameters[] = {&tensor};
  CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
  const char* name = nullptr;
  cuGetErrorName(cuCtxSynchronize(), &name);
  std::printf("%s\n", name);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto is = [&](const char* kind) { return std::strcmp(argv[1], kind) == 0; };
  const bool from_pool = is("pool");
  const CUcontext first = program::open_device();
  if (is("both")) return both(first), 0;
  if (is("forbidden")) return forbidden(), 0;
  std::vector<CUdeviceptr> tensors;
  for (unsigned i = 0; i < 4; ++i) tensors.push_back(allocate(from_pool, i));
  CUcontext second = nullptr;
  CHECK(cuDevicePrimaryCtxRetain(&second, 1));
  CHECK(cuCtxSetCurrent(second));
  if (from_pool) {
    CUmemoryPool pool = nullptr;
    CHECK(cuDeviceGetDefaultMemPool(&pool, 0));
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CHECK(cuMemPoolSetAccess(pool, &access, 1));
  } else {
    CHECK(cuCtxEnablePeerAccess(first, 0));
  }
  const CUfunction function = function_of(kModule, "of_a_peer");
  for (int round = 0; round < 3; ++round) {
    for (CUdeviceptr& tensor : tensors) {
      CHECK(cuCtxSetCurrent(second));
      void* parameters[] = {&tensor};
      CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
      CHECK(cuCtxSynchronize());
      CHECK(cuCtxSetCurrent(first));
      std::printf("%08x\n", program::word(tensor));
    }
    if (is("again")) {
      CHECK(cuCtxSetCurrent(second));
      CHECK(cuCtxDisablePeerAccess(first));
      CHECK(cuCtxSetCurrent(first));
    }
    tensors.push_back(allocate(from_pool, 100));  // mapped after the second device was allowed
    if (is("again")) {
      CHECK(cuCtxSetCurrent(second));
      CHECK(cuCtxEnablePeerAccess(first, 0));
    }
    CHECK(cuCtxSetCurrent(first));
  }
  return 0;
}
