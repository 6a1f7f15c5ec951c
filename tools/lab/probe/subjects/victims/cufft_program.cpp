// Calls cuFFT: complex transforms there and back, of a power of two and of a length that needs another algorithm.
#include <cufft.h>

#include "tools/lab/probe/subjects/victims/library_program.h"

int main() {
  void* library = victim::open_library("libcufft.so.12");
  const victim::Device device;
  const auto plan = VICTIM_FUNCTION(library, cufftPlan1d);
  const auto execute = VICTIM_FUNCTION(library, cufftExecC2C);
  const auto destroy = VICTIM_FUNCTION(library, cufftDestroy);
  constexpr int kBatch = 64;
  const CUdeviceptr data = device.allocate_random(size_t{2} * 65536 * kBatch);
  for (const int length : {65536, 30030}) {
    cufftHandle handle = 0;
    victim::expect(plan(&handle, length, CUFFT_C2C, kBatch), "cufftPlan1d");
    auto* values = reinterpret_cast<cufftComplex*>(data);
    for (int i = 0; i < 20; ++i)
      victim::expect(execute(handle, values, values, i % 2 == 0 ? CUFFT_FORWARD : CUFFT_INVERSE), "cufftExecC2C");
    device.synchronize();
    victim::expect(destroy(handle), "cufftDestroy");
  }
  int version = 0;
  VICTIM_FUNCTION(library, cufftGetVersion)(&version);
  std::printf("{\"cufft\": %d}\n", version);
  return 0;
}
