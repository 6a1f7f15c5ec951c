// lastread [WORDS]: ends with a launch that needs three tensors at once and a synchronous read of what it wrote. Where
// not all three fit, the read is the last chance to say so.
#include "tests/e2e/reproductions/runtime_program.h"

int main(int argc, char** argv) {
  const size_t n = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1 << 16;
  float* a = random_values(n, 1);
  float* b = random_values(n, 2);
  float* c = random_values(n, 3);
  LAUNCH(mix3<<<blocks(n), 256>>>(a, a, a, a, n));
  CHECK(cudaDeviceSynchronize());
  LAUNCH(mix3<<<blocks(n), 256>>>(a, b, c, a, n));
  print("a", a, n);
  return 0;
}
