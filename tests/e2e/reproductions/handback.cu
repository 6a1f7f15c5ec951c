// handback [WORDS]: polls an event until the answer is anything but cudaErrorNotReady and clears the last error, as
// many programs do: an error that is told only once is swallowed. Every other call and every launch is checked.
#include <time.h>

#include "tests/e2e/reproductions/runtime_program.h"

namespace {

void poll(cudaEvent_t event) {
  while (cudaEventQuery(event) == cudaErrorNotReady) {
  }
}

}  // namespace

int main(int argc, char** argv) {
  const size_t n = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1 << 16;
  float* a = random_values(n, 1);
  float* b = random_values(n, 2);
  float* c = random_values(n, 3);
  cudaEvent_t event;
  CHECK(cudaEventCreate(&event));
  LAUNCH(mix3<<<blocks(n), 256>>>(a, a, a, a, n));
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < 3; ++i) {
    LAUNCH(mix3<<<blocks(n), 256>>>(a, b, c, a, n));
    poll(event);
    const timespec pause = {0, 50'000'000};
    nanosleep(&pause, nullptr);
    poll(event);
    (void)cudaGetLastError();
  }
  print("a", a, n);
  CHECK(cudaDeviceSynchronize());
  return 0;
}
