// second_device HOW [STEPS]: model parallelism in one process (as of huggingface's device_map). Device 0 comes first,
// so Reprise manages it. On device 1 each kernel's operand is freed right behind its launch, HOW: malloc or async.
#include <cstring>

#include "tests/e2e/reproductions/runtime_program.h"

int main(int argc, char** argv) {
  const bool async = argc > 1 && std::strcmp(argv[1], "async") == 0;
  const int steps = argc > 2 ? std::atoi(argv[2]) : 6;
  const size_t n = 1 << 20;
  const size_t bytes = n * sizeof(float);
  const auto get = [&] {
    void* made = nullptr;
    CHECK(async ? cudaMallocAsync(&made, bytes, nullptr) : cudaMalloc(&made, bytes));
    return static_cast<float*>(made);
  };
  const auto put = [&](float* tensor) { CHECK(async ? cudaFreeAsync(tensor, nullptr) : cudaFree(tensor)); };
  CHECK(cudaSetDevice(0));
  float* a = get();
  float* b = get();
  CHECK(cudaMemset(a, 1, bytes));
  CHECK(cudaMemset(b, 1, bytes));
  for (int step = 0; step < steps; ++step) {
    CHECK(cudaSetDevice(0));
    LAUNCH(mix<<<blocks(n), 256>>>(a, b, a, n));
    CHECK(cudaSetDevice(1));
    float* x = get();
    float* y = get();
    CHECK(cudaMemsetAsync(x, step + 1, bytes, nullptr));
    CHECK(cudaMemsetAsync(y, step + 2, bytes, nullptr));
    for (int layer = 0; layer < 8; ++layer) {
      float* z = get();
      LAUNCH(mix<<<blocks(n), 256>>>(z, x, y, n));
      put(x);
      x = y;
      y = z;
    }
    print("step", y, n);
    put(x);
    put(y);
  }
  CHECK(cudaSetDevice(0));
  print("device 0", a, n);
  return 0;
}
