// flooding_launches [PAIRS]: four threads launch an empty kernel as fast as they can, each on a stream of its own,
// while the main thread allocates and frees. A call that waits until all that the others have called is done counts as
// starved: told by how many launches went by, not by a clock.
#include <atomic>
#include <thread>

#include "tests/e2e/reproductions/runtime_program.h"

__global__ void nothing() {}

int main(int argc, char** argv) {
  const long pairs = argc > 1 ? std::atol(argv[1]) : 100;
  std::atomic<bool> go{true};
  std::atomic<long> launches{0};
  float* first = zeros(1 << 14);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      cudaStream_t stream = nullptr;
      CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      for (; go; ++launches) LAUNCH(nothing<<<1, 1, 0, stream>>>());
      CHECK(cudaStreamDestroy(stream));
    });
  }
  while (launches < 40000) std::this_thread::yield();
  const long before = launches;
  for (long i = 0; i < pairs; ++i) {
    void* memory = nullptr;
    CHECK(cudaMalloc(&memory, 1 << 16));
    CHECK(cudaFree(memory));
  }
  const long meanwhile = launches - before;
  go = false;
  for (std::thread& thread : threads) thread.join();
  std::fprintf(stderr, "%ld launches a pair\n", meanwhile / pairs);
  print("first", first, 1 << 14);
  return 0;
}
