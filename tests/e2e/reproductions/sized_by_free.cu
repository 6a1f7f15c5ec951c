// sized_by_free [LAYERS [TENTHS [ask]]]: loads weights, asks what is free, and gives TENTHS (9) tenths of it to a cache
// of LAYERS (8) equal tensors, all of which its kernels then work on. ask: prints what is free and what there is, too.
#include <cstring>

#include "tests/e2e/reproductions/runtime_program.h"

namespace {

constexpr size_t kMiB = 1 << 20;
constexpr size_t kWeight = 2 * kMiB;
constexpr size_t kFloats = kWeight / sizeof(float);

size_t tell(const char* when, bool prints) {
  size_t free_bytes = 0, total = 0;
  CHECK(cudaMemGetInfo(&free_bytes, &total));
  if (prints) std::printf("%s: %zu of %zu MiB are free\n", when, free_bytes / kMiB, total / kMiB);
  if (free_bytes > total) std::printf("%s: more is free than there is\n", when);
  return free_bytes;
}

}  // namespace

int main(int argc, char** argv) {
  const size_t layers = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 8;
  const size_t tenths = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 9;
  const bool prints = argc > 3 && std::strcmp(argv[3], "ask") == 0;
  CHECK(cudaFree(nullptr));
  tell("at first", prints);
  float* const x = random_values(kFloats, 1);
  std::vector<float*> weights;
  for (unsigned i = 0; i < layers; ++i) weights.push_back(random_values(kFloats, 2 + i));
  const size_t each = tell("with weights", prints) / 10 * tenths / layers / kWeight * kWeight;
  std::fprintf(stderr, "cache: %zu x %zu MiB\n", layers, each / kMiB);
  if (each < kWeight) {
    std::printf("no room for a cache\n");
    return 1;
  }
  std::vector<float*> cache(layers);
  for (float*& tensor : cache) {
    CHECK(cudaMalloc(&tensor, each));
    CHECK(cudaMemset(tensor, 0, each));
  }
  tell("with a cache", prints);
  for (int request = 0; request < 12; ++request) {
    for (size_t i = 0; i < layers; ++i) {
      LAUNCH(axpy<<<blocks(kFloats), 256>>>(cache[i], x, 0.5f, kFloats));
      LAUNCH(axpy<<<blocks(kFloats), 256>>>(x, weights[i], 0.25f, kFloats));
    }
    float value = 0;
    CHECK(cudaMemcpy(&value, x, sizeof value, cudaMemcpyDeviceToHost));
    std::printf("served %d: %.9g\n", request, static_cast<double>(value));
  }
  tell("at the end", prints);
}
