// peers context|pool: kernels of the second device touch memory of the first, which the program has allowed it: for all
// of the first one's memory, or for a pool.
#include <cstring>
#include <vector>

#include "tests/e2e/reproductions/driver/driver_program.h"

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

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const bool from_pool = std::strcmp(argv[1], "pool") == 0;
  const CUcontext first = program::open_device();
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
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CHECK(cuModuleLoadData(&module, kModule));
  CHECK(cuModuleGetFunction(&function, module, "of_a_peer"));
  for (int round = 0; round < 3; ++round) {
    for (CUdeviceptr& tensor : tensors) {
      CHECK(cuCtxSetCurrent(second));
      void* parameters[] = {&tensor};
      CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
      CHECK(cuCtxSynchronize());
      CHECK(cuCtxSetCurrent(first));
      std::printf("%08x\n", program::word(tensor));
    }
    tensors.push_back(allocate(from_pool, 100));  // mapped after the second device was allowed
  }
  return 0;
}
