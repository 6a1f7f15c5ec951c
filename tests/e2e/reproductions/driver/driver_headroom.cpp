// The driver needs memory of its own (here: managed memory; on a GPU: lazily loaded kernels) once more has been
// allocated than the device has.
#include "tests/e2e/reproductions/driver/driver_program.h"

int main() {
  using program::kMiB;
  program::open_device();
  CUdeviceptr tensors[12];
  for (unsigned i = 0; i < 12; ++i) tensors[i] = program::filled(8, i);
  CHECK(cuCtxSynchronize());
  CUdeviceptr own = 0;
  CHECK(cuMemAllocManaged(&own, 4 * kMiB, CU_MEM_ATTACH_GLOBAL));
  CHECK(cuMemsetD32(own, 42, kMiB));
  std::printf("own %u\n", program::word(own));
  for (const CUdeviceptr tensor : tensors) std::printf("%u\n", program::word(tensor));
  return 0;
}
