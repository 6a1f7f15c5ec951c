// A program as training with batches of different lengths is one: in each iteration activations of another size are
// made layer by layer, with scratch memory in between, and freed backwards. Its memory comes as in PyTorch: through a
// caching allocator over cuMemAlloc, from cuMemAllocAsync if PYTORCH_CUDA_ALLOC_CONF says backend:cudaMallocAsync, or
// from cuMemAlloc itself with PYTORCH_NO_CUDA_MEMORY_CACHING=1. Each tensor is filled and looked at before it is freed.
// Prints a digest of what it saw; out of memory: says so and ends with 1. Knows nothing of Reprise.
//
// With --threads each thread does so with memory and a stream of its own.
//
// fragmenting_program [--unit KIB] [--layers N] [--iterations N] [--longest QUARTERS] [--seed N] [--threads N]
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/victims/caching_allocator.h"

namespace {

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::printf("error: %s: %d\n", what, static_cast<int>(result));
  std::exit(3);
}

struct Options {
  uint64_t unit = 64 << 10;
  int layers = 8;
  int iterations = 40;
  uint64_t longest = 96;  // of an activation, in quarters of a unit
  uint64_t seed = 1;
  uint64_t threads = 1;
};

// One tensor's memory: cached, stream-ordered, or the driver's.
class Memory {
 public:
  explicit Memory(uint64_t unit)
      : caching_({[](uint64_t bytes) { return allocate_now(bytes); }, [](uint64_t address) { cuMemFree(address); }},
                 unit) {
    const char* settings = std::getenv("PYTORCH_CUDA_ALLOC_CONF");
    const char* uncached = std::getenv("PYTORCH_NO_CUDA_MEMORY_CACHING");
    if (settings != nullptr && std::strstr(settings, "backend:cudaMallocAsync") != nullptr) kind_ = Kind::async;
    if (uncached != nullptr && std::strcmp(uncached, "1") == 0) kind_ = Kind::driver;
  }

  uint64_t allocate(uint64_t bytes, CUstream stream) {
    CUdeviceptr address = 0;
    if (kind_ == Kind::caching) return caching_.allocate(bytes);
    if (kind_ == Kind::driver) return allocate_now(bytes);
    return cuMemAllocAsync(&address, bytes, stream) == CUDA_SUCCESS ? address : 0;
  }
  void free(uint64_t address, CUstream stream) {
    if (kind_ == Kind::caching) return caching_.free(address);
    if (kind_ == Kind::driver) return check(cuMemFree(address), "cuMemFree");
    check(cuMemFreeAsync(address, stream), "cuMemFreeAsync");
  }

 private:
  enum class Kind { caching, async, driver };
  static uint64_t allocate_now(uint64_t bytes) {
    CUdeviceptr address = 0;
    return cuMemAlloc(&address, bytes) == CUDA_SUCCESS ? address : 0;
  }
  Kind kind_ = Kind::caching;
  reprise::CachingAllocator caching_;
};

struct Tensor {
  uint64_t address = 0;
  uint64_t bytes = 0;
  unsigned char value = 0;
};

class Program {
 public:
  explicit Program(const Options& options) : options_(options), memory_(options.unit), random_(options.seed) {
    CUcontext context = nullptr;
    check(cuInit(0), "cuInit");
    check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    if (options.threads > 1) check(cuStreamCreate(&stream_, CU_STREAM_DEFAULT), "cuStreamCreate");
  }

  void run() {
    std::vector<Tensor> weights;
    weights.reserve(static_cast<size_t>(options_.layers));
    for (int layer = 0; layer < options_.layers; ++layer) weights.push_back(make(options_.unit * 4));
    for (iteration_ = 0; iteration_ < options_.iterations; ++iteration_) iterate();
    for (const Tensor& weight : weights) drop(weight);
  }

  void print() const {
    std::printf("digest %016llx, at most %llu bytes live\n", static_cast<unsigned long long>(digest_),
                static_cast<unsigned long long>(peak_));
  }

 private:
  // Lengths differ from batch to batch, as those of sentences do.
  void iterate() {
    const uint64_t length = options_.longest / 3 + random_() % (options_.longest * 2 / 3);
    std::vector<Tensor> kept;
    for (int layer = 0; layer < options_.layers; ++layer) {
      const Tensor scratch = make(length * options_.unit / 4 * (2 + random_() % 2));
      kept.push_back(make(length * options_.unit / 4));
      kept.push_back(make(length * options_.unit / 16));
      drop(scratch);
    }
    while (!kept.empty()) {
      const Tensor gradient = make(kept.back().bytes);
      drop(kept.back());
      kept.pop_back();
      drop(gradient);
    }
  }

  Tensor make(uint64_t bytes) {
    Tensor tensor{memory_.allocate(bytes, stream_), bytes, static_cast<unsigned char>(random_())};
    if (tensor.address == 0) {
      std::printf("out of memory in iteration %d: %llu bytes live, %llu wanted\n", iteration_,
                  static_cast<unsigned long long>(live_), static_cast<unsigned long long>(bytes));
      std::exit(1);
    }
    live_ += bytes;
    peak_ = live_ > peak_ ? live_ : peak_;
    check(cuMemsetD8Async(tensor.address, tensor.value, bytes, stream_), "cuMemsetD8Async");
    return tensor;
  }

  void drop(const Tensor& tensor) {
    for (const uint64_t at : {uint64_t{0}, tensor.bytes / 2, tensor.bytes - 1}) {
      unsigned char seen = 0;
      check(cuMemcpyDtoH(&seen, tensor.address + at, 1), "cuMemcpyDtoH");
      if (seen != tensor.value) std::exit(4);
      digest_ = (digest_ ^ seen) * 1099511628211ull;
    }
    memory_.free(tensor.address, stream_);
    live_ -= tensor.bytes;
  }

  const Options options_;
  Memory memory_;
  std::mt19937_64 random_;
  CUstream stream_ = nullptr;
  int iteration_ = 0;
  uint64_t live_ = 0;
  uint64_t peak_ = 0;
  uint64_t digest_ = 0x9e3779b97f4a7c15ull;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--unit") options.unit = value << 10;
    if (name == "--layers") options.layers = static_cast<int>(value);
    if (name == "--iterations") options.iterations = static_cast<int>(value);
    if (name == "--longest") options.longest = value;
    if (name == "--seed") options.seed = value;
    if (name == "--threads") options.threads = value;
  }
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<Program>> programs(options.threads);
  threads.reserve(options.threads);
  for (uint64_t i = 0; i < options.threads; ++i) {
    threads.emplace_back([&, i] {
      Options own = options;
      own.seed += i;
      programs[i] = std::make_unique<Program>(own);
      programs[i]->run();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& program : programs) program->print();
  return 0;
}
