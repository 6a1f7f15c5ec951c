// A driver-API program of many host threads that share nothing but the device: each has streams of its own, and over
// and over allocates, fills, copies, launches, orders by events, synchronises, reads back and frees. Every round of a
// thread must leave the same bytes as its first one; a line a thread says which. So the lines do not depend on how many
// rounds there were or on the order of the threads, and are those of any other run.
//
// threads_program CUBIN THREADS MILLISECONDS
#include <cuda.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

CUcontext context = nullptr;
CUfunction mix2 = nullptr;
CUfunction mix3 = nullptr;

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "error: %s: %s\n", what, name == nullptr ? "?" : name);
  std::_Exit(3);
}
#define DO(call) check((call), #call)

class Worker {
 public:
  explicit Worker(unsigned number) : number_(number) {}

  // Until the time is up, but two rounds at least. False: a round left other bytes than the first one.
  bool run(std::chrono::steady_clock::time_point end) {
    DO(cuCtxSetCurrent(context));
    DO(cuStreamCreate(&streams_[0], CU_STREAM_NON_BLOCKING));
    DO(cuStreamCreate(&streams_[1], number_ % 2 == 0 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
    DO(cuMemAlloc(&kept_, kKept));
    for (rounds_ = 0; rounds_ < 2 || std::chrono::steady_clock::now() < end; ++rounds_) {
      const uint64_t hash = round();
      if (rounds_ == 0) first_ = hash;
      if (hash != first_) return false;
    }
    DO(cuMemFree(kept_));
    for (CUstream stream : streams_) DO(cuStreamDestroy(stream));
    return true;
  }
  uint64_t hash() const { return first_; }
  uint64_t rounds() const { return rounds_; }

 private:
  static constexpr size_t kKept = 256u << 10;

  void launch(CUfunction function, CUstream stream, std::vector<CUdeviceptr> tensors, size_t bytes) {
    unsigned salt = number_;
    auto words = static_cast<unsigned>(bytes / 4);
    std::vector<void*> parameters;
    for (CUdeviceptr& tensor : tensors) parameters.push_back(&tensor);
    parameters.push_back(&salt);
    parameters.push_back(&words);
    DO(cuLaunchKernel(function, (words + 255) / 256, 1, 1, 256, 1, 1, 0, stream, parameters.data(), nullptr));
  }

  // What is issued on the second stream from here on waits for what was on the first.
  void order() {
    CUevent event = nullptr;
    DO(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    DO(cuEventRecord(event, streams_[0]));
    DO(cuStreamWaitEvent(streams_[1], event, 0));
    DO(cuEventDestroy(event));
  }

  uint64_t round() {
    const size_t bytes = (64u + 16u * (number_ % 8)) << 10;
    CUdeviceptr a = 0;
    CUdeviceptr b = 0;
    CUdeviceptr c = 0;
    std::vector<uint32_t> content(bytes / 4);
    for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<uint32_t>(i * 2654435761u + number_);
    DO(cuMemAlloc(&a, bytes));
    DO(cuMemAlloc(&b, bytes));
    DO(cuMemsetD32Async(kept_, number_, kKept / 4, streams_[0]));
    DO(cuMemsetD32Async(a, number_ * 3 + 1, bytes / 4, streams_[0]));
    DO(cuMemcpyHtoDAsync(b, content.data(), bytes, streams_[0]));
    launch(mix2, streams_[0], {a, b}, bytes);
    order();
    DO(cuMemAlloc(&c, bytes));
    DO(cuMemcpyDtoDAsync(c, a, bytes, streams_[1]));
    launch(mix3, streams_[1], {kept_, b, c}, bytes);
    DO(cuMemcpyDtoHAsync(content.data(), c, bytes, streams_[1]));
    DO(cuStreamSynchronize(streams_[1]));
    uint64_t hash = 1469598103934665603ull;
    for (const uint32_t word : content) hash = (hash ^ word) * 1099511628211ull;
    DO(cuMemcpyDtoH(content.data(), a, bytes));
    for (const uint32_t word : content) hash = (hash ^ word) * 1099511628211ull;
    for (const CUdeviceptr one : {a, b, c}) DO(cuMemFree(one));
    return hash;
  }

  unsigned number_;
  CUstream streams_[2] = {};
  CUdeviceptr kept_ = 0;
  uint64_t first_ = 0;
  uint64_t rounds_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto count = static_cast<unsigned>(std::atoi(argv[2]));
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(std::atoi(argv[3]));
  DO(cuInit(0));
  DO(cuDevicePrimaryCtxRetain(&context, 0));
  DO(cuCtxSetCurrent(context));
  CUmodule module = nullptr;
  DO(cuModuleLoad(&module, argv[1]));
  DO(cuModuleGetFunction(&mix2, module, "mix2"));
  DO(cuModuleGetFunction(&mix3, module, "mix3"));
  std::vector<Worker> workers;
  for (unsigned i = 0; i < count; ++i) workers.emplace_back(i);
  std::atomic<bool> good = true;
  std::vector<std::thread> threads;
  for (Worker& worker : workers) {
    threads.emplace_back([&] {
      if (!worker.run(end)) good = false;
    });
  }
  for (std::thread& thread : threads) thread.join();
  uint64_t rounds = 0;
  for (unsigned i = 0; i < count; ++i) {
    std::printf("thread %u %016llx\n", i, static_cast<unsigned long long>(workers[i].hash()));
    rounds += workers[i].rounds();
  }
  std::fprintf(stderr, "rounds: %llu\n", static_cast<unsigned long long>(rounds));
  return good ? 0 : 1;
}
