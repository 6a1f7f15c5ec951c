// A driver-API program with a random but repeating iteration: allocations, launches, copies and memsets on several
// streams, ordered by events, with frees in any order. It prints a hash of what it reads back each iteration and of all
// persistent tensors at the end. Knows nothing of Reprise. Run plain and under a budget, it must print the same.
//
// With --replaced N, N tensors are replaced in each iteration: the new one is allocated and filled before the old one
// is freed, as in "loss = model(batch)".
//
// With --spread 1, sizes are as often of one order of magnitude as of another, from 4 KiB on. With --grows-at N, half
// as many persistent tensors are added before iteration N.
//
// random_program CUBIN SEED ITERATIONS [--replaced N] [--streams N] [--persistent N] [--ops N] [--odd-every K]
// [--async] [--max-kib N] [--spread 1] [--grows-at N] [--retry]
#include <algorithm>
#include <random>

#include "tests/e2e/support/driver_program.h"

namespace {

bool retries = false;  // --retry
CUdeviceptr known_memory = 0;

// After an error that has ended the context, every call has to say so.
void expect_errors_only() {
  uint32_t word = 0;
  const CUresult results[] = {cuMemcpyDtoH(&word, known_memory, sizeof word), cuCtxSynchronize(),
                              cuStreamQuery(nullptr), cuMemcpyHtoD(known_memory, &word, sizeof word)};
  for (const CUresult result : results) {
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY) std::printf("silent: the error was told once only\n");
  }
}

// The codes of which CUDA says that the context is unusable afterwards.
bool is_lasting(CUresult result) {
  return result == CUDA_ERROR_ILLEGAL_ADDRESS || result == CUDA_ERROR_LAUNCH_TIMEOUT || result == CUDA_ERROR_ASSERT ||
         (result >= CUDA_ERROR_HARDWARE_STACK_ERROR && result <= CUDA_ERROR_LAUNCH_FAILED);
}

// A call that failed is told; under --retry it is made once more, as by a program that can live with an error.
template <typename Call>
void check(Call call, const char* what) {
  CUresult result = call();
  if (result == CUDA_SUCCESS) return;
  if (retries && !is_lasting(result)) {
    std::fprintf(stderr, "told: %s: %s\n", what, program::name_of(result));
    result = call();
    if (result == CUDA_SUCCESS) return;
  }
  std::printf("error: %s: %s\n", what, program::name_of(result));
  if (retries && is_lasting(result)) expect_errors_only();
  std::exit(3);
}

#undef CHECK
#define CHECK(name, ...) check([&] { return name(__VA_ARGS__); }, #name)

struct Options : program::RandomOptions {
  int streams = 2;
  int persistent = 12;
  int ops = 60;
  int replaced = 0;
  int odd_every = 0;  // every K-th iteration runs another sequence: an evaluation
  bool async = false;
  bool serial = false;  // synchronise after every operation: the order that all others must be equal to
  int max_kib = 512;
  int spread = 0;
  int grows_at = -1;
};

struct Tensor {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  int last_stream = -1;  // the stream of the last work on the tensor
};

class Program {
 public:
  explicit Program(const Options& options) : options_(options) {
    CHECK(cuInit, 0);
    CHECK(cuDevicePrimaryCtxRetain, &context_, 0);
    CHECK(cuCtxSetCurrent, context_);
    CUmodule module = nullptr;
    CHECK(cuModuleLoad, &module, options.cubin.c_str());
    CHECK(cuModuleGetFunction, &mix2_, module, "mix2");
    CHECK(cuModuleGetFunction, &mix3_, module, "mix3");
    CHECK(cuModuleGetFunction, &bundle_, module, "mix_bundle");
    for (int i = 0; i < options.streams; ++i) {
      CUstream stream = nullptr;
      if (i > 0) CHECK(cuStreamCreate, &stream, i % 2 == 0 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING);
      streams_.push_back(stream);
    }
    CHECK(cuMemHostAlloc, reinterpret_cast<void**>(&pinned_), kReadBytes, 0);
    std::mt19937_64 random(options.seed);
    add_persistent(random, options.persistent);
    known_memory = persistent_[0].address;
  }

  void run() {
    for (int i = 0; i < options_.iterations; ++i) {
      if (i == options_.grows_at) {
        std::mt19937_64 random(options_.seed + 1);
        add_persistent(random, options_.persistent / 2);
      }
      const bool odd = options_.odd_every > 0 && i % options_.odd_every == options_.odd_every - 1;
      iterate(odd ? options_.seed * 77 + 5 : options_.seed * 31 + 1, static_cast<unsigned>(i), odd);
      program::print("iteration " + std::to_string(i), read_back(persistent_[0]));
    }
    CHECK(cuCtxSynchronize);
    uint64_t total = 0;
    for (auto& tensor : persistent_) {
      std::vector<uint32_t> content(tensor.bytes / 4);
      CHECK(cuMemcpyDtoH, content.data(), tensor.address, tensor.bytes);
      for (const uint32_t word : content) total = total * 1099511628211ull + word;
    }
    program::print("final", total);
  }

 private:
  static constexpr size_t kReadBytes = 4096;

  void add_persistent(std::mt19937_64& random, int count) {
    for (int i = 0; i < count; ++i) {
      persistent_.push_back(allocate(random));
      std::vector<uint32_t> content(persistent_.back().bytes / 4);
      for (auto& word : content) word = static_cast<uint32_t>(random());
      CHECK(cuMemcpyHtoD, persistent_.back().address, content.data(), content.size() * 4);
      // It may return before the bytes are there, and not all streams wait for the legacy one.
      CHECK(cuStreamSynchronize, CU_STREAM_LEGACY);
    }
  }

  // From 4 KiB on, each doubling as often as the next one.
  uint64_t spread_bytes(std::mt19937_64& random) const {
    uint64_t low = 4;
    while (low * 2 <= static_cast<uint64_t>(options_.max_kib) && random() % 5 != 0) low *= 2;
    const uint64_t high = std::min<uint64_t>(low * 2, static_cast<uint64_t>(options_.max_kib));
    return (low + (high > low ? random() % (high - low) : 0)) * 1024;
  }

  Tensor allocate(std::mt19937_64& random) {
    Tensor tensor;
    if (options_.spread != 0) {
      tensor.bytes = spread_bytes(random);
      CHECK(cuMemAlloc, &tensor.address, tensor.bytes);
      return tensor;
    }
    const uint64_t kib = 1 + random() % static_cast<uint64_t>(options_.max_kib);
    tensor.bytes = (random() % 4 == 0 ? 1 + random() % 24 : kib) * 1024;  // a quarter of them small
    CHECK(cuMemAlloc, &tensor.address, tensor.bytes);
    return tensor;
  }

  // Orders stream `stream` after the last work on the tensor, as a correct program must.
  void use(Tensor& tensor, int stream) {
    if (tensor.last_stream >= 0 && tensor.last_stream != stream) {
      CUevent event = nullptr;
      CHECK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
      CHECK(cuEventRecord, event, streams_[static_cast<size_t>(tensor.last_stream)]);
      CHECK(cuStreamWaitEvent, streams_[static_cast<size_t>(stream)], event, 0);
      CHECK(cuEventDestroy, event);
    }
    tensor.last_stream = stream;
  }

  void launch(CUfunction function, int stream, size_t words, void** parameters) {
    const unsigned blocks = static_cast<unsigned>((words + 255) / 256);
    CHECK(cuLaunchKernel, function, blocks, 1, 1, 256, 1, 1, 0, streams_[static_cast<size_t>(stream)], parameters,
          nullptr);
  }

  void mix(std::vector<Tensor*> tensors, int stream, unsigned salt) {
    size_t bytes = tensors[0]->bytes;
    for (Tensor* tensor : tensors) {
      bytes = std::min(bytes, tensor->bytes);
      use(*tensor, stream);
    }
    unsigned words = static_cast<unsigned>(bytes / 4);
    if (tensors.size() == 2) {
      void* parameters[] = {&tensors[0]->address, &tensors[1]->address, &salt, &words};
      launch(mix2_, stream, words, parameters);
    } else if (tensors.size() == 3) {
      void* parameters[] = {&tensors[0]->address, &tensors[1]->address, &tensors[2]->address, &salt, &words};
      launch(mix3_, stream, words, parameters);
    } else {
      // The padding is spelled out: the dataflow hash reads every byte of a parameter.
      struct {
        unsigned salt;
        unsigned padding;
        CUdeviceptr tensors[4];
        unsigned words;
        unsigned more_padding;
      } bundle = {
          salt, 0, {tensors[0]->address, tensors[1]->address, tensors[2]->address, tensors[3]->address}, words, 0};
      void* parameters[] = {&bundle};
      launch(bundle_, stream, words, parameters);
    }
  }

  // One iteration: the same calls for the same seed; only `salt` (a kernel parameter) differs from one to the next.
  void iterate(uint64_t seed, unsigned salt, bool odd) {
    std::mt19937_64 random(seed);
    std::vector<Tensor> transient;
    transient.reserve(256);
    const int ops = odd ? options_.ops / 3 : options_.ops;
    for (int i = 0; i < ops; ++i) {
      if (options_.serial) CHECK(cuCtxSynchronize);
      const int stream = static_cast<int>(random() % streams_.size());
      const auto pick = [&]() -> Tensor& {
        const uint64_t all = persistent_.size() + transient.size();
        const uint64_t index = random() % all;
        return index < persistent_.size() ? persistent_[index] : transient[index - persistent_.size()];
      };
      switch (random() % 8) {
        case 0:
        case 1: {
          transient.push_back(allocate(random));
          use(transient.back(), stream);
          CHECK(cuMemsetD32Async, transient.back().address, static_cast<unsigned>(seed) + static_cast<unsigned>(i),
                transient.back().bytes / 4, streams_[static_cast<size_t>(stream)]);
          break;
        }
        case 2: {
          if (transient.empty()) break;
          const size_t victim = random() % transient.size();
          CHECK(cuMemFree, transient[victim].address);
          transient.erase(transient.begin() + static_cast<std::ptrdiff_t>(victim));
          break;
        }
        case 3: {
          Tensor& from = pick();
          Tensor& to = pick();
          if (from.address == to.address) break;
          use(from, stream);
          use(to, stream);
          CHECK(cuMemcpyDtoDAsync, to.address, from.address, std::min(from.bytes, to.bytes) / 8 * 4,
                streams_[static_cast<size_t>(stream)]);
          break;
        }
        default: {
          std::vector<Tensor*> tensors;
          const size_t count = 2 + random() % 3;
          while (tensors.size() < count) {
            Tensor* tensor = &pick();
            bool fresh = true;
            for (const Tensor* other : tensors) fresh = fresh && other != tensor;
            if (fresh) tensors.push_back(tensor);
          }
          mix(tensors, stream, salt + static_cast<unsigned>(i));
          break;
        }
      }
    }
    replace(random, salt);
    for (auto& tensor : transient) CHECK(cuMemFree, tensor.address);
  }

  // What the last iteration left behind is read, then its successor is made of it, then it goes.
  void replace(std::mt19937_64& random, unsigned salt) {
    for (size_t i = 0; i < static_cast<size_t>(options_.replaced); ++i) {
      const int stream = static_cast<int>(random() % streams_.size());
      Tensor next = allocate(random);
      use(next, stream);
      CHECK(cuMemsetD32Async, next.address, salt, next.bytes / 4, streams_[static_cast<size_t>(stream)]);
      mix({&next, &persistent_[i % persistent_.size()]}, stream, salt);
      if (i < replaced_.size()) {
        mix({&next, &replaced_[i]}, stream, salt);
        CHECK(cuMemFree, replaced_[i].address);
        replaced_[i] = next;
      } else {
        replaced_.push_back(next);
      }
      mix({&persistent_[0], &replaced_[i]}, stream, salt);
    }
  }

  uint64_t read_back(Tensor& tensor) {
    use(tensor, 0);
    const size_t bytes = std::min(tensor.bytes, kReadBytes);
    if (options_.async) {
      CHECK(cuMemcpyDtoHAsync, pinned_, tensor.address, bytes, streams_[0]);
      CUevent event = nullptr;
      CHECK(cuEventCreate, &event, 0);
      CHECK(cuEventRecord, event, streams_[0]);
      while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) {
      }
      CHECK(cuEventSynchronize, event);
      CHECK(cuEventDestroy, event);
    } else {
      CHECK(cuStreamSynchronize, streams_[0]);
      CHECK(cuMemcpyDtoH, pinned_, tensor.address, bytes);
    }
    return program::hash_of({pinned_, pinned_ + bytes / 4});
  }

  Options options_;
  CUcontext context_ = nullptr;
  CUfunction mix2_ = nullptr, mix3_ = nullptr, bundle_ = nullptr;
  std::vector<CUstream> streams_;
  std::vector<Tensor> persistent_;
  std::vector<Tensor> replaced_;
  uint32_t* pinned_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  program::parse(argc, argv, &options,
                 {{"--streams", &options.streams},
                  {"--persistent", &options.persistent},
                  {"--ops", &options.ops},
                  {"--replaced", &options.replaced},
                  {"--odd-every", &options.odd_every},
                  {"--max-kib", &options.max_kib},
                  {"--spread", &options.spread},
                  {"--grows-at", &options.grows_at}},
                 {{"--serial", &options.serial}, {"--retry", &retries}, {"--async", &options.async}});
  Program program(options);
  program.run();
  return 0;
}
