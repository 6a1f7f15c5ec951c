// An ordinary nvcc program that uses much of the runtime API and checks each result. Exit code: what went wrong,
// counted.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "expect.h"
#include "kernels.cuh"

static void launches() {
  float* data = nullptr;
  OK(cudaMalloc(&data, kBytes));
  fill<<<4, 256>>>(data, kCount, 2.0f);
  OK(cudaGetLastError());
  affine<float><<<dim3(8), dim3(128), 0, cudaStreamPerThread>>>(data, kCount, Affine{0.0, 0});
  OK(cudaDeviceSynchronize());
  EXPECT(read_back(data)[999] == 0.0f);

  fill<<<4, 256>>>(data, kCount, 2.0f);
  const Affine by{3.0, 7};
  int count = kCount;
  void* arguments[] = {&data, &count, const_cast<Affine*>(&by)};
  OK(cudaLaunchKernel(reinterpret_cast<const void*>(&affine<float>), dim3(8), dim3(128), arguments, 0, nullptr));
  EXPECT(read_back(data)[10] == 43.0f);

  cudaLaunchConfig_t config{};
  config.gridDim = dim3(8);
  config.blockDim = dim3(128);
  OK(cudaLaunchKernelEx(&config, &affine<float>, data, kCount, Affine{1.0, 1}));
  EXPECT(read_back(data)[10] == 44.0f);
  OK(cudaFree(data));
  OK(cudaFree(nullptr));
}

static void variables() {
  int value = 0;
  OK(cudaMemcpyFromSymbol(&value, total, sizeof value));
  EXPECT(value == 5);
  value = 2;
  OK(cudaMemcpyToSymbol(total, &value, sizeof value));
  const float changed = 20.0f;
  OK(cudaMemcpyToSymbol(weights, &changed, sizeof changed, sizeof(float)));
  float* out = nullptr;
  OK(cudaMalloc(&out, 3 * sizeof(float)));
  weigh<<<1, 3>>>(out);
  const auto weighed = read_back(out, 3);
  EXPECT(weighed[0] == 2.0f && weighed[1] == 40.0f && weighed[2] == 200.0f);
  count<<<2, 32>>>(10);
  OK(cudaMemcpyFromSymbol(&value, total, sizeof value));
  EXPECT(value == 22);
  size_t bytes = 0;
  void* address = nullptr;
  OK(cudaGetSymbolSize(&bytes, weights));
  OK(cudaGetSymbolAddress(&address, total));
  EXPECT(bytes == 12 && address != nullptr);
  EXPECT(cudaMemcpyToSymbol(weights, &changed, sizeof changed, 12) == cudaErrorInvalidValue);
  OK(cudaFree(out));
}

static void streams_and_events() {
  cudaStream_t first;
  cudaStream_t second;
  cudaEvent_t start;
  cudaEvent_t end;
  OK(cudaStreamCreate(&first));
  OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  OK(cudaEventCreate(&start));
  OK(cudaEventCreate(&end));
  float* data = nullptr;
  float* pinned = nullptr;
  OK(cudaMallocAsync(&data, kBytes, first));
  OK(cudaMallocHost(&pinned, kBytes));
  OK(cudaEventRecord(start, first));
  fill<<<4, 256, 0, first>>>(data, kCount, 1.0f);
  OK(cudaEventRecord(end, first));
  OK(cudaStreamWaitEvent(second, end, 0));
  OK(cudaMemcpyAsync(pinned, data, kBytes, cudaMemcpyDeviceToHost, second));
  OK(cudaStreamSynchronize(second));
  EXPECT(pinned[999] == 1000.0f);
  OK(cudaEventSynchronize(end));
  OK(cudaEventQuery(end));
  float milliseconds = -1.0f;
  OK(cudaEventElapsedTime(&milliseconds, start, end));
  EXPECT(milliseconds >= 0.0f);
  int called = 0;
  OK(cudaLaunchHostFunc(
      second, [](void* flag) { *static_cast<int*>(flag) = 1; }, &called));
  OK(cudaStreamSynchronize(second));
  EXPECT(called == 1);
  OK(cudaMemsetAsync(data, 0, kBytes, first));
  OK(cudaStreamSynchronize(first));
  OK(cudaStreamQuery(first));
  EXPECT(read_back(data)[5] == 0.0f);
  OK(cudaFreeAsync(data, first));
  OK(cudaFreeHost(pinned));
  OK(cudaEventDestroy(start));
  OK(cudaEventDestroy(end));
  OK(cudaStreamDestroy(first));
  OK(cudaStreamDestroy(second));
}

static void graphs() {
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  float* data = nullptr;
  OK(cudaMalloc(&data, kBytes));
  fill<<<4, 256, 0, stream>>>(data, kCount, 0.0f);
  OK(cudaStreamSynchronize(stream));
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  affine<float><<<8, 128, 0, stream>>>(data, kCount, Affine{1.0, 2});
  cudaStreamCaptureStatus status;
  OK(cudaStreamIsCapturing(stream, &status));
  EXPECT(status == cudaStreamCaptureStatusActive);
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 3; ++i) OK(cudaGraphLaunch(executable, stream));
  OK(cudaStreamSynchronize(stream));
  EXPECT(read_back(data)[7] == 13.0f);
  OK(cudaGraphExecDestroy(executable));
  OK(cudaGraphDestroy(graph));
  OK(cudaFree(data));
  OK(cudaStreamDestroy(stream));
}

static void rows_and_pointers() {
  float* rows = nullptr;
  size_t pitch = 0;
  OK(cudaMallocPitch(&rows, &pitch, 40, 3));
  EXPECT(pitch >= 40);
  const std::vector<float> host(30, 4.0f);
  std::vector<float> back(30);
  OK(cudaMemcpy2D(rows, pitch, host.data(), 40, 40, 3, cudaMemcpyHostToDevice));
  OK(cudaMemcpy2D(back.data(), 40, rows, pitch, 40, 3, cudaMemcpyDeviceToHost));
  EXPECT(host == back);
  cudaPointerAttributes attributes;
  OK(cudaPointerGetAttributes(&attributes, rows));
  EXPECT(attributes.type == cudaMemoryTypeDevice && attributes.device == 0);
  OK(cudaPointerGetAttributes(&attributes, host.data()));
  EXPECT(attributes.type == cudaMemoryTypeUnregistered);
  OK(cudaFree(rows));
  size_t free_bytes = 0, total_bytes = 0;
  OK(cudaMemGetInfo(&free_bytes, &total_bytes));
  EXPECT(free_bytes > 0 && free_bytes <= total_bytes);
}

static void devices() {
  int number = 0;
  OK(cudaGetDeviceCount(&number));
  EXPECT(number >= 1);
  cudaDeviceProp properties;
  OK(cudaGetDeviceProperties(&properties, 0));
  EXPECT(properties.warpSize == 32 && properties.major >= 7 && properties.totalGlobalMem > 0);
  int threads = 0;
  OK(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerBlock, 0));
  EXPECT(threads == properties.maxThreadsPerBlock);
  EXPECT(cudaSetDevice(number) == cudaErrorInvalidDevice);
  EXPECT(cudaGetLastError() == cudaErrorInvalidDevice);
  int version = 0;
  OK(cudaRuntimeGetVersion(&version));
  EXPECT(version == CUDART_VERSION);
  cudaFuncAttributes attributes;
  OK(cudaFuncGetAttributes(&attributes, small_blocks));
  EXPECT(attributes.maxThreadsPerBlock == 64);
  int blocks = 0;
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, small_blocks, 64, 0));
  EXPECT(blocks >= 1);
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult result;
  OK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &entry, 12000, cudaEnableDefault, &result));
  EXPECT(entry != nullptr && result == cudaDriverEntryPointSuccess);
}

static void errors() {
  int* out = nullptr;
  EXPECT(cudaMalloc(&out, size_t{1} << 50) == cudaErrorMemoryAllocation);
  EXPECT(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
  EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation);
  EXPECT(cudaGetLastError() == cudaSuccess);
  EXPECT(std::string(cudaGetErrorName(cudaErrorMemoryAllocation)) == "cudaErrorMemoryAllocation");
  EXPECT(std::string(cudaGetErrorString(cudaErrorMemoryAllocation)) == "out of memory");
  fill<<<1, 5000>>>(nullptr, 0, 0.0f);
  EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
  EXPECT(cudaMemcpyToSymbol(&failures, &failures, 4) == cudaErrorInvalidSymbol);
  EXPECT(cudaFuncSetCacheConfig(reinterpret_cast<const void*>(&errors), cudaFuncCachePreferL1) ==
         cudaErrorInvalidDeviceFunction);
  std::thread([] { EXPECT(cudaGetLastError() == cudaSuccess); }).join();
  EXPECT(cudaGetLastError() == cudaErrorInvalidDeviceFunction);
}

int main() {
  launches();
  variables();
  streams_and_events();
  graphs();
  rows_and_pointers();
  devices();
  errors();
  OK(cudaDeviceReset());
  launches();  // everything comes back after a reset
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
