// A driver-API program of many host threads that share nothing but the device: each has streams of its own, and over
// and over allocates, fills, copies, launches, orders by events, synchronises, reads back and frees. Every round of a
// thread must leave the same bytes as its first one; a line a thread says which. So the lines do not depend on how many
// rounds there were or on the order of the threads, and are those of any other run.
//
// threads_program CUBIN THREADS MILLISECONDS
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/e2e/support/driver_program.h"

namespace {

CUcontext context = nullptr;
CUfunction mix2 = nullptr;
CUfunction mix3 = nullptr;

class Worker {
 public:
  explicit Worker(unsigned number) : number_(number) {}

  // Until the time is up, but two rounds at least. False: a round left other bytes than the first one.
  bool run(std::chrono::steady_clock::time_point end) {
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuStreamCreate(&streams_[0], CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&streams_[1], number_ % 2 == 0 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
    CHECK(cuMemAlloc(&kept_, kKept));
    for (rounds_ = 0; rounds_ < 2 || std::chrono::steady_clock::now() < end; ++rounds_) {
      const uint64_t hash = round();
      if (rounds_ == 0) first_ = hash;
      if (hash != first_) return false;
    }
    CHECK(cuMemFree(kept_));
    for (CUstream stream : streams_) CHECK(cuStreamDestroy(stream));
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
    CHECK(cuLaunchKernel(function, (words + 255) / 256, 1, 1, 256, 1, 1, 0, stream, parameters.data(), nullptr));
  }

  uint64_t round() {
    const size_t bytes = (64u + 16u * (number_ % 8)) << 10;
    CUdeviceptr a = 0, b = 0, c = 0;
    std::vector<uint32_t> content(bytes / 4);
    for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<uint32_t>(i * 2654435761u + number_);
    CHECK(cuMemAlloc(&a, bytes));
    CHECK(cuMemAlloc(&b, bytes));
    CHECK(cuMemsetD32Async(kept_, number_, kKept / 4, streams_[0]));
    CHECK(cuMemsetD32Async(a, number_ * 3 + 1, bytes / 4, streams_[0]));
    CHECK(cuMemcpyHtoDAsync(b, content.data(), bytes, streams_[0]));
    launch(mix2, streams_[0], {a, b}, bytes);
    program::order(streams_[0], streams_[1]);  // what is issued on the second one from here on
    CHECK(cuMemAlloc(&c, bytes));
    CHECK(cuMemcpyDtoDAsync(c, a, bytes, streams_[1]));
    launch(mix3, streams_[1], {kept_, b, c}, bytes);
    CHECK(cuMemcpyDtoHAsync(content.data(), c, bytes, streams_[1]));
    CHECK(cuStreamSynchronize(streams_[1]));
    const uint64_t first = program::hash_of(content);
    CHECK(cuMemcpyDtoH(content.data(), a, bytes));
    for (const CUdeviceptr one : {a, b, c}) CHECK(cuMemFree(one));
    return program::hash_of(content, first);
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
  context = program::open_device();
  const CUmodule module = program::load(argv[1]);
  mix2 = program::function(module, "mix2");
  mix3 = program::function(module, "mix3");
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
