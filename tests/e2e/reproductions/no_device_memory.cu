// A program that allocates no device memory, as many of NVIDIA's samples: its run log has an end all the same.
//   no_device_memory look|launch|managed|fail|leave|kill
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

__global__ void nothing() {}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "launch";
  const auto is = [&](const char* word) { return std::strcmp(what, word) == 0; };
  int count = 0;
  cudaError_t result = cudaGetDeviceCount(&count);
  if (is("look")) return result == cudaSuccess ? 0 : 1;
  void* memory = nullptr;
  if (is("managed")) result = cudaMallocManaged(&memory, 1 << 20);
  nothing<<<1, 1>>>();
  if (result == cudaSuccess) result = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorString(result));
  std::fflush(stdout);
  if (is("leave")) _exit(0);
  if (is("kill")) raise(SIGKILL);
  return is("fail") ? 3 : 0;
}
