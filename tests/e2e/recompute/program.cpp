// A random training loop with the driver API: activations made layer by layer, needed again in the opposite order, with
// temporaries, small tensors, weights that are updated and some that are not. Prints a hash of what it reads back in
// each iteration, and of all persistent tensors at the end. Knows nothing of Reprise.
//
// layered_program CUBIN SEED ITERATIONS [--layers N] [--streams N] [--max-kib N] [--kernels N] [--even PERCENT]
// [--step-kernel 1] [--clear 1] [--dump 1] [--crumbs N] [--crumb-kib N] [--odd-at ITERATION LAUNCH WHAT]
//
// --kernels: of up to eight. --step-kernel 1: the last launch of an iteration is of the last one, no other is. --even:
// so many tensors are of one size, as a kernel writes no more bytes than its smallest operand has.
// --clear: what is allocated in an iteration is set before it is used; else an output that a kernel writes in part has
// undefined bytes. --crumbs: so many small tensors of odd sizes a layer, up to --crumb-kib, each computed from the one
// before it and needed again in the backward pass. --odd-at: before this launch (from 0) of this iteration (from 0)
// something else happens, a row of kOdd. --dump: behind it, all tensors that a kernel has written are read back; where
// the program ends there, by a handler of its own.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <utility>

#include "tests/e2e/support/driver_program.h"

namespace {

// On stdout: what a program is told is of its output.
void tell(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::printf("error: %s: %s\n", what, program::name_of(result));
  std::exit(program::kFailed);
}
#undef CHECK
#define CHECK(name, ...) tell(name(__VA_ARGS__), #name)

struct Options : program::RandomOptions {
  int layers = 6;
  int streams = 1;
  int max_kib = 512;
  int kernels = 8;
  int step_kernel = 0;
  int even = 0;
  int clear = 0;
  int dump = 0;
  int crumbs = 0;
  int crumb_kib = 16;
  int odd_iteration = -1;
  int odd_launch = 0;
  std::string odd;
};

struct Tensor {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  int last_stream = -1;
  bool written = false;
};

class EndOfIteration : public std::runtime_error {
 public:
  EndOfIteration() : std::runtime_error("the iteration ends early") {}
};

class Program {
 public:
  explicit Program(Options options) : options_(std::move(options)) {
    CHECK(cuInit, 0);
    CUcontext context = nullptr;
    CHECK(cuDevicePrimaryCtxRetain, &context, 0);
    CHECK(cuCtxSetCurrent, context);
    CUmodule module = nullptr;
    CHECK(cuModuleLoad, &module, options_.cubin.c_str());
    const auto get = [&](int number) {
      CUfunction function = nullptr;
      CHECK(cuModuleGetFunction, &function, module, ("layer" + std::to_string(number)).c_str());
      kernels_.push_back(function);
    };
    for (int i = 0; i < options_.kernels; ++i) get(i);
    if (options_.step_kernel != 0) get(7);
    for (int i = 0; i < options_.streams; ++i) {
      CUstream stream = nullptr;
      if (i > 0) CHECK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
      streams_.push_back(stream);
    }
    std::mt19937_64 random(options_.seed);
    for (int i = 0; i <= options_.layers; ++i) {
      weights_.push_back(allocate(random));
      std::vector<uint32_t> content(weights_.back().bytes / 4);
      for (uint32_t& word : content) word = static_cast<uint32_t>(random());
      CHECK(cuMemcpyHtoD, weights_.back().address, content.data(), content.size() * 4);
      // It may return before the bytes are there, and streams that do not block do not wait for them.
      CHECK(cuStreamSynchronize, CU_STREAM_LEGACY);
    }
  }

  void run() {
    for (int i = 0; i < options_.iterations && !reset_; ++i) {
      iteration_ = i;
      launches_ = 0;
      live_.clear();
      try {
        iterate();
      } catch (const EndOfIteration&) {
      }
      if (reset_) return;
      for (const Tensor& tensor : live_) {
        if (tensor.address != 0) CHECK(cuMemFree, tensor.address);
      }
      live_.clear();
      std::printf("iteration %d %016llx, %d launches\n", i, read_back(weights_.back()), launches_);
      std::fflush(stdout);
    }
    for (Tensor& weight : weights_) std::printf("final %016llx\n", read_back(weight));
  }

  // The device was reset in the middle: everything on it is gone.
  bool was_reset() const { return reset_; }

  // All tensors that a kernel has written.
  void dump() {
    for (auto* tensors : {&weights_, &live_}) {
      for (Tensor& tensor : *tensors) {
        if (tensor.address != 0 && (tensor.written || tensors == &weights_)) {
          std::printf("bytes %016llx\n", read_back(tensor));
        }
      }
    }
    std::fflush(stdout);
  }

 private:
  // A fifth of them small.
  Tensor allocate(std::mt19937_64& random) {
    const auto max_kib = static_cast<uint64_t>(options_.max_kib);
    uint64_t kib = random() % 5 == 0 ? 1 + random() % 24 : 64 + random() % max_kib;
    if (options_.even > 0 && static_cast<int>(random() % 100) < options_.even) kib = 32 + max_kib / 2;
    return allocate_bytes(kib * 1024);
  }
  static Tensor allocate_bytes(size_t bytes) {
    Tensor tensor;
    tensor.bytes = bytes;
    CHECK(cuMemAlloc, &tensor.address, bytes);
    return tensor;
  }

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

  void odd_thing() {
    for (const Odd& odd : kOdd) {
      if (options_.odd != odd.name) continue;
      DumpAtTheEnd dump_behind(this);  // also when an exception comes by
      (this->*odd.thing)();
    }
  }

  class DumpAtTheEnd {
   public:
    explicit DumpAtTheEnd(Program* program) : program_(*program) {}
    ~DumpAtTheEnd() {
      if (program_.options_.dump != 0 && !program_.reset_) program_.dump();
    }

   private:
    Program& program_;
  };

  static void print_answer(const char* what, CUresult result) {
    std::printf("%s: %s\n", what, program::name_of(result));
  }

  void another_launch() { launch(0, weights_[0], weights_[1], weights_[0], 0); }
  void another_tensor() {
    std::mt19937_64 random(9);
    launch(kernels_.size() - 1, extra_ = allocate(random), weights_[0], weights_[1], 0);
  }
  // The oldest of this iteration, before its time.
  void an_early_free() {
    for (Tensor& tensor : live_) {
      if (tensor.address == 0 || !tensor.written) continue;
      use(tensor, 0);
      CHECK(cuMemFree, tensor.address);
      CHECK(cuMemAlloc, &tensor.address, tensor.bytes);
      CHECK(cuMemsetD32, tensor.address, 11, tensor.bytes / 4);
      return;
    }
  }
  void a_read() { std::printf("odd %016llx\n", read_back(weights_.back())); }
  void a_memset() {
    use(weights_.back(), 0);
    CHECK(cuMemsetD32, weights_.back().address, 5, weights_.back().bytes / 4);
  }
  void a_failing_copy() { print_answer("copy", cuMemcpyHtoD(0, nullptr, 64)); }
  void a_failing_launch() {
    print_answer("launch", cuLaunchKernel(kernels_[0], 1, 1, 1, 2048, 1, 1, 0, nullptr, nullptr, nullptr));
  }
  void a_failing_allocation() {
    CUdeviceptr address = 0;
    print_answer("alloc", cuMemAlloc(&address, size_t{1} << 46));
  }
  void a_failing_free() { print_answer("free", cuMemFree(0x1234500)); }
  void an_exception() { throw EndOfIteration(); }
  void an_exit() { std::exit(5); }
  void an_end_without_handlers() {
    std::fflush(stdout);
    _exit(6);
  }
  void an_abort() { std::abort(); }
  void a_reset() {
    print_answer("reset", cuDevicePrimaryCtxReset(0));
    reset_ = true;
    throw EndOfIteration();
  }

  struct Odd {
    const char* name;
    void (Program::*thing)();
  };
  static constexpr Odd kOdd[] = {
      {"launch", &Program::another_launch},
      {"alloc", &Program::another_tensor},
      {"free", &Program::an_early_free},
      {"read", &Program::a_read},
      {"memset", &Program::a_memset},
      {"error", &Program::a_failing_copy},
      {"bad-launch", &Program::a_failing_launch},
      {"bad-alloc", &Program::a_failing_allocation},
      {"bad-free", &Program::a_failing_free},
      {"throw", &Program::an_exception},
      {"exit", &Program::an_exit},
      {"_exit", &Program::an_end_without_handlers},
      {"abort", &Program::an_abort},
      {"reset", &Program::a_reset},
  };

  void launch(size_t kernel, Tensor& out, Tensor& a, Tensor& b, int stream) {
    if (launches_++ == options_.odd_launch && iteration_ == options_.odd_iteration) odd_thing();
    out.written = true;
    for (Tensor* tensor : {&out, &a, &b}) use(*tensor, stream);
    auto salt = static_cast<unsigned>(iteration_);
    auto words = static_cast<unsigned>(std::min({out.bytes, a.bytes, b.bytes}) / 4);
    void* parameters[] = {&out.address, &a.address, &b.address, &salt, &words};
    CHECK(cuLaunchKernel, kernels_[kernel], (words + 255) / 256, 1, 1, 256, 1, 1, 0,
          streams_[static_cast<size_t>(stream)], parameters, nullptr);
  }

  void release(Tensor& tensor) {
    CHECK(cuMemFree, tensor.address);
    tensor.address = 0;
  }

  // The same calls in each iteration; only the salt differs.
  void iterate() {
    std::mt19937_64 random(options_.seed * 31 + 1);
    const auto layers = static_cast<size_t>(options_.layers);
    live_.reserve((4 + static_cast<size_t>(options_.crumbs)) * layers + 4);
    const auto any_stream = [&] { return static_cast<int>(random() % streams_.size()); };
    const auto kernel = [&] { return random() % static_cast<size_t>(options_.kernels); };
    const auto keep = [&](Tensor made) -> Tensor& {
      Tensor& tensor = live_.emplace_back(made);
      if (options_.clear != 0) {
        tensor.last_stream = 0;
        CHECK(cuMemsetD32Async, tensor.address, 7, tensor.bytes / 4, streams_[0]);
      }
      return tensor;
    };
    const auto fresh = [&]() -> Tensor& { return keep(allocate(random)); };
    std::vector<std::vector<Tensor*>> crumbs(layers);
    const auto scatter = [&](size_t layer, Tensor* from) {
      for (int i = 0; i < options_.crumbs; ++i) {
        Tensor& crumb = keep(allocate_bytes(4 * (1 + random() % (static_cast<size_t>(options_.crumb_kib) * 256))));
        launch(kernel(), crumb, *from, weights_[layer], any_stream());
        crumbs[layer].push_back(from = &crumb);
      }
    };
    // In any order; some live on to the iteration's end.
    const auto gather = [&](size_t layer, Tensor& with) {
      std::shuffle(crumbs[layer].begin(), crumbs[layer].end(), random);
      for (Tensor* crumb : crumbs[layer]) {
        launch(kernel(), weights_[layer], *crumb, with, any_stream());
        if (random() % 3 != 0) release(*crumb);
      }
    };
    std::vector<Tensor*> outputs;
    Tensor* from = &weights_[layers];
    for (size_t i = 0; i < layers; ++i) {
      Tensor& out = fresh();
      if (random() % 3 == 0) {  // by way of a temporary
        Tensor& between = fresh();
        launch(kernel(), between, *from, weights_[i], any_stream());
        launch(kernel(), out, between, *from, any_stream());
        if (random() % 2 == 0) release(between);
      } else {
        launch(kernel(), out, *from, weights_[i], any_stream());
      }
      outputs.push_back(&out);
      from = &out;
      scatter(i, from);
    }
    Tensor* gradient = &fresh();
    launch(kernel(), *gradient, *outputs.back(), weights_[layers], any_stream());
    for (size_t i = layers; i-- > 0;) {
      Tensor& next = fresh();
      launch(kernel(), next, *outputs[i], *gradient, any_stream());
      if (random() % 2 == 0) launch(kernel(), weights_[i], next, *outputs[i], any_stream());
      gather(i, next);
      if (random() % 3 == 0) release(*outputs[i]);
      if (random() % 2 == 0) release(*gradient);
      gradient = &next;
    }
    const size_t drawn = kernel();
    launch(options_.step_kernel != 0 ? kernels_.size() - 1 : drawn, weights_[layers], *gradient, weights_[0],
           any_stream());
  }

  unsigned long long read_back(Tensor& tensor) {
    use(tensor, 0);
    CHECK(cuStreamSynchronize, streams_[0]);
    std::vector<uint32_t> content(tensor.bytes / 4);
    CHECK(cuMemcpyDtoH, content.data(), tensor.address, content.size() * 4);
    return program::hash_of(content);
  }

  Options options_;
  std::vector<CUfunction> kernels_;
  std::vector<CUstream> streams_;
  std::vector<Tensor> weights_;
  std::vector<Tensor> live_;  // of this iteration
  Tensor extra_;
  bool reset_ = false;
  int iteration_ = 0;
  int launches_ = 0;
};

Program* running = nullptr;

// exit() and abort() in the middle of an iteration: the program saves what it has, as programs with handlers do.
void dump_running() {
  if (Program* const program = std::exchange(running, nullptr)) program->dump();
}
void at_abort(int) {
  dump_running();
  _exit(7);
}

void run(const Options& options) {
  Program program(options);
  static const bool once = options.dump != 0 && std::atexit(dump_running) == 0;  // behind cuInit: runs first
  running = once ? &program : nullptr;
  if (once) signal(SIGABRT, at_abort);
  program.run();
  running = nullptr;
  if (!program.was_reset()) return;
  Options rest = options;
  rest.odd_iteration = -1;
  run(rest);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  program::parse(argc, argv, &options,
                 {{"--layers", &options.layers},
                  {"--streams", &options.streams},
                  {"--max-kib", &options.max_kib},
                  {"--kernels", &options.kernels},
                  {"--step-kernel", &options.step_kernel},
                  {"--even", &options.even},
                  {"--clear", &options.clear},
                  {"--dump", &options.dump},
                  {"--crumbs", &options.crumbs},
                  {"--crumb-kib", &options.crumb_kib}});
  options.crumb_kib = std::max(1, options.crumb_kib);
  for (int i = 4; i + 3 < argc; ++i) {
    if (std::string(argv[i]) != "--odd-at") continue;
    options.odd_iteration = std::atoi(argv[i + 1]);
    options.odd_launch = std::atoi(argv[i + 2]);
    options.odd = argv[i + 3];
  }
  run(options);
  return 0;
}
