// Words written by the stream memory operation, to tensors that do not fit beside each other.
#include "tests/e2e/support/driver_program.h"

int main() {
  using program::kMiB;
  program::open_device();
  CUdeviceptr tensors[3];
  for (unsigned i = 0; i < 3; ++i) tensors[i] = program::filled(6, 100 + i);
  CUstream stream = program::new_stream();
  for (unsigned i = 0; i < 3; ++i) {
    for (unsigned k = 0; k < 3; ++k) {
      CHECK(cuStreamWriteValue32(stream, tensors[i] + k * 2 * kMiB, 7000 + 10 * i + k, 0));
      CHECK(cuStreamSynchronize(stream));
    }
  }
  for (const CUdeviceptr tensor : tensors) {
    for (unsigned k = 0; k < 3; ++k) std::printf("%u\n", program::word(tensor + k * 2 * kMiB));
  }
  return 0;
}
