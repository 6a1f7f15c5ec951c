// driver_headroom managed|lazy|limit: the driver needs memory of its own once more has been allocated than the device
// has: managed memory, the code of modules whose kernels are launched for the first time, a larger buffer of printf.
#include <cstring>
#include <string>
#include <vector>

#include "tests/e2e/reproductions/driver/driver_program.h"

using program::kMiB;

namespace {

// Twins know no such name: the simulated device hashes what the parameter points to.
std::string module_text(int number) {
  return ".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry first_launch_" + std::to_string(number) +
         "(.param .u64 a) { ret; }\n";
}

void lazy(const std::vector<CUdeviceptr>& tensors) {
  for (int i = 0; i < 4; ++i) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CHECK(cuModuleLoadData(&module, module_text(i).c_str()));
    CHECK(cuModuleGetFunction(&function, module, ("first_launch_" + std::to_string(i)).c_str()));
    CUdeviceptr tensor = tensors[static_cast<size_t>(i)];
    void* parameters[] = {&tensor};
    for (int again = 0; again < 2; ++again)
      CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
    CHECK(cuCtxSynchronize());
    std::printf("%08x\n", program::word(tensor));
  }
}

void managed() {
  CUdeviceptr own = 0;
  CHECK(cuMemAllocManaged(&own, 4 * kMiB, CU_MEM_ATTACH_GLOBAL));
  CHECK(cuMemsetD32(own, 42, kMiB));
  std::printf("own %u\n", program::word(own));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  program::open_device();
  std::vector<CUdeviceptr> tensors;
  for (unsigned i = 0; i < 12; ++i) tensors.push_back(program::filled(8, i));
  CHECK(cuCtxSynchronize());
  if (std::strcmp(argv[1], "managed") == 0) managed();
  if (std::strcmp(argv[1], "lazy") == 0) lazy(tensors);
  if (std::strcmp(argv[1], "limit") == 0) CHECK(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 2 * kMiB));
  for (const CUdeviceptr tensor : tensors) std::printf("%08x\n", program::word(tensor));
  return 0;
}
