// A stream that has joined a capture is destroyed before the capture ends, as NVIDIA's graphMemoryNodes does; built as
// a relocatable cubin whose kernels have shared memory, as seven of NVIDIA's samples are.
#include <cuda_runtime.h>

#include <cstdio>

namespace {

constexpr int kWords = 2048;
constexpr size_t kBytes = 64 << 10;

__global__ void turn(int* data) {
  __shared__ int tile[kWords];
  for (unsigned i = threadIdx.x; i < kWords; i += blockDim.x) tile[i] = data[i];
  __syncthreads();
  for (unsigned i = threadIdx.x; i < kWords; i += blockDim.x) data[i] = tile[kWords - 1 - i];
}

int failed(cudaError_t error) {
  if (error != cudaSuccess) std::fprintf(stderr, "error: %s\n", cudaGetErrorName(error));
  return error == cudaSuccess ? 0 : 3;
}

}  // namespace

int main() {
  int* data = nullptr;
  if (const int code = failed(cudaMalloc(&data, kBytes))) return code;
  if (const int code = failed(cudaMemset(data, 7, kBytes))) return code;
  cudaStream_t origin, joined;
  cudaEvent_t fork, join;
  cudaStreamCreateWithFlags(&origin, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&joined, cudaStreamNonBlocking);
  cudaEventCreate(&fork);
  cudaEventCreate(&join);
  cudaDeviceSynchronize();
  cudaStreamBeginCapture(origin, cudaStreamCaptureModeGlobal);
  cudaEventRecord(fork, origin);
  cudaStreamWaitEvent(joined, fork, 0);
  turn<<<1, 128, 0, joined>>>(data);
  cudaEventRecord(join, joined);
  cudaStreamWaitEvent(origin, join, 0);
  cudaStreamDestroy(joined);
  cudaGraph_t graph;
  if (const int code = failed(cudaStreamEndCapture(origin, &graph))) return code;
  cudaGraphExec_t executable;
  if (const int code = failed(cudaGraphInstantiate(&executable, graph, 0))) return code;
  for (int i = 0; i < 4; ++i) {
    if (const int code = failed(cudaGraphLaunch(executable, origin))) return code;
    cudaStreamSynchronize(origin);
    int word = 0;
    cudaMemcpy(&word, data, sizeof word, cudaMemcpyDeviceToHost);
    std::printf("%08x\n", static_cast<unsigned>(word));
  }
  return failed(cudaGetLastError());
}
