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
// With --loose N, each free of an iteration's own tensor comes up to N ops behind the last use, elsewhere each time,
// some behind the iteration's end, half of them from another thread, which the caller waits for (--unwaited: not
// always). With
// --diverge-every K, each K-th iteration is the usual one but for an op or two at random (recipe.h).
//
// random_program CUBIN SEED ITERATIONS [--replaced N] [--streams N] [--persistent N] [--ops N] [--odd-every K]
// [--async] [--max-kib N] [--spread 1] [--grows-at N] [--loose N] [--unwaited] [--diverge-every K]
// [--resize N] [--retry]
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "tests/e2e/bend/recipe.h"
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
  std::fprintf(stderr, "error: %s: %s\n", what, program::name_of(result));
  if (retries && is_lasting(result)) expect_errors_only();
  std::fflush(stdout);
  std::exit(program::kFailed);
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
  program::Sizes sizes;
  int grows_at = -1;
  int loose = 0;
  bool unwaited = false;
  int diverge_every = 0;
  int resize = 0;  // an iteration's tensors have so many eighths of their sizes, at most, and at least one
};

struct Tensor {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  int last_stream = -1;  // the stream of the last work on the tensor
};

// Frees what it is handed.
class Collector {
 public:
  explicit Collector(CUcontext context) : thread_([this, context] { work(context); }) {}
  ~Collector() {
    hand_over(0, false);
    thread_.join();
  }

  void free(CUdeviceptr address, bool wait) { hand_over(address, wait); }

 private:
  void hand_over(CUdeviceptr address, bool wait) {
    std::unique_lock lock(mutex_);
    queue_.push_back(address);
    changed_.notify_all();
    if (wait) changed_.wait(lock, [this] { return queue_.empty(); });
  }

  void work(CUcontext context) {
    CHECK(cuCtxSetCurrent, context);
    for (std::unique_lock lock(mutex_);; queue_.pop_front(), changed_.notify_all()) {
      changed_.wait(lock, [this] { return !queue_.empty(); });
      const CUdeviceptr address = queue_.front();
      if (address == 0) return;
      lock.unlock();
      CHECK(cuMemFree, address);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<CUdeviceptr> queue_;  // 0: the end. What is being freed is the first one.
  std::thread thread_;
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
    if (options.loose > 0) collector_.emplace(context_);
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
    collector_.reset();
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

  Tensor allocate(size_t bytes) {
    Tensor tensor;
    tensor.bytes = bytes;
    CHECK(cuMemAlloc, &tensor.address, bytes);
    return tensor;
  }
  Tensor allocate(std::mt19937_64& random) { return allocate(program::draw_bytes(random, options_.sizes)); }

  size_t resized(size_t bytes) const { return (bytes * eighths_ / 8 + 1023) / 1024 * 1024; }

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

  // One iteration: the same calls for the same seed; only `salt` (a kernel parameter) differs from one to the next, and
  // what is drawn from `own`.
  void iterate(uint64_t seed, unsigned salt, bool odd) {
    std::mt19937_64 random(seed);
    std::mt19937_64 own(options_.seed * 1000003 + salt);
    const program::Shape shape = {persistent_.size(), streams_.size(), options_.sizes};
    program::Ops ops =
        program::draw_ops(random, shape, odd ? options_.ops / 3 : options_.ops, static_cast<unsigned>(seed));
    if (options_.resize > 0) eighths_ = 1 + own() % static_cast<unsigned>(options_.resize);
    for (program::Op& op : ops) op.bytes = resized(op.bytes);
    const auto every = static_cast<unsigned>(options_.diverge_every);
    for (uint64_t times = every > 0 && salt % every == every - 1 ? 1 + own() % 2 : 0; times > 0; --times) {
      program::diverge(own, shape, &ops);
    }
    std::vector<program::LateFree> late;
    if (options_.loose > 0) {
      late = program::loosen(own, shape, static_cast<size_t>(options_.loose), !options_.unwaited, &ops);
    }
    std::map<size_t, Tensor> transient;
    for (size_t i = 0; i < ops.size(); ++i) {
      if (options_.serial) CHECK(cuCtxSynchronize);
      free_late(i);
      perform(ops[i], transient, salt);
    }
    free_late(SIZE_MAX);
    replace(random, salt);
    for (const auto& free : late) {
      const auto tensor = transient.find(free.op.tensors[0]);
      late_.push_back({tensor->second.address, free});
      transient.erase(tensor);
    }
    for (const auto& left : transient) CHECK(cuMemFree, left.second.address);
  }

  void perform(const program::Op& op, std::map<size_t, Tensor>& transient, unsigned salt) {
    if (op.what == program::What::fill) transient[op.tensors[0]] = allocate(op.bytes);
    std::vector<Tensor*> tensors;
    for (const size_t id : op.tensors) {
      tensors.push_back(id < persistent_.size() ? &persistent_[id] : &transient.at(id));
    }
    const CUstream stream = streams_[static_cast<size_t>(op.stream)];
    switch (op.what) {
      case program::What::fill:
        use(*tensors[0], op.stream);
        CHECK(cuMemsetD32Async, tensors[0]->address, op.value, op.bytes / 4, stream);
        break;
      case program::What::release:
        free(tensors[0]->address, op.by);
        transient.erase(op.tensors[0]);
        break;
      case program::What::copy:
        for (Tensor* tensor : tensors) use(*tensor, op.stream);
        CHECK(cuMemcpyDtoDAsync, tensors[1]->address, tensors[0]->address,
              std::min(tensors[0]->bytes, tensors[1]->bytes) / 8 * 4, stream);
        break;
      case program::What::mix:
        mix(tensors, op.stream, salt + op.value);
        break;
      case program::What::read:
        program::print("early", read_back(*tensors[0]));
        break;
    }
  }

  void free(CUdeviceptr address, program::By by) {
    if (by == program::By::caller) {
      CHECK(cuMemFree, address);
    } else {
      collector_->free(address, by == program::By::other_thread);
    }
  }

  // What the last iteration left for after `ops` ops of this one.
  void free_late(size_t ops) {
    const auto due =
        std::partition(late_.begin(), late_.end(), [&](const auto& free) { return free.second.before > ops; });
    for (auto free_now = due; free_now != late_.end(); ++free_now) free(free_now->first, free_now->second.op.by);
    late_.erase(due, late_.end());
  }

  // What the last iteration left behind is read, then its successor is made of it, then it goes.
  void replace(std::mt19937_64& random, unsigned salt) {
    for (size_t i = 0; i < static_cast<size_t>(options_.replaced); ++i) {
      const int stream = static_cast<int>(random() % streams_.size());
      Tensor next = allocate(resized(program::draw_bytes(random, options_.sizes)));
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
  size_t eighths_ = 8;  // of their sizes, that this iteration's tensors have
  std::vector<std::pair<CUdeviceptr, program::LateFree>> late_;
  uint32_t* pinned_ = nullptr;
  std::optional<Collector> collector_;
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
                  {"--max-kib", &options.sizes.max_kib},
                  {"--spread", &options.sizes.spread},
                  {"--grows-at", &options.grows_at},
                  {"--loose", &options.loose},
                  {"--diverge-every", &options.diverge_every},
                  {"--resize", &options.resize}},
                 {{"--serial", &options.serial},
                  {"--retry", &retries},
                  {"--async", &options.async},
                  {"--unwaited", &options.unwaited}});
  Program program(options);
  program.run();
  return 0;
}
