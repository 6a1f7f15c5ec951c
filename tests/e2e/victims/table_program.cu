// table_program WAY ITERATIONS WORDS: a loop like a training step whose kernels reach some tensors only through tables
// of addresses in memory. WAY says how the table comes about. Prints a hash of every such tensor.
#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "table_kernels.cuh"

namespace {

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorName(result));
  std::exit(9);
}
#define CHECK(call) check(call, #call)
#define LAUNCH(...)                          \
  do {                                       \
    __VA_ARGS__;                             \
    check(cudaGetLastError(), #__VA_ARGS__); \
  } while (0)

constexpr unsigned kCount = 5;  // tensors behind the table

class Program {
 public:
  explicit Program(unsigned words) : n_(words), blocks_((words + 255) / 256) {
    CHECK(cudaStreamCreate(&stream_));
    CHECK(cudaStreamCreateWithFlags(&side_, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&event_));
    for (unsigned j = 0; j < kCount; ++j) hidden_.push_back(tensor(j));
    CHECK(cudaMalloc(&table_, kCount * sizeof(void*)));
    CHECK(cudaMemset(table_, 0, kCount * sizeof(void*)));
    CHECK(cudaMallocHost(&pinned_, kCount * sizeof(void*)));
    std::memset(pinned_, 0, kCount * sizeof(void*));
    CHECK(cudaDeviceSynchronize());
  }

  unsigned* tensor(unsigned seed) {
    unsigned* made = nullptr;
    CHECK(cudaMalloc(&made, n_ * sizeof(unsigned)));
    LAUNCH(fill<<<blocks_, 256, 0, stream_>>>(made, seed, n_));
    return made;
  }
  void build(void** table, const std::vector<unsigned*>& targets, cudaStream_t stream) {
    for (unsigned j = 0; j < targets.size(); ++j) LAUNCH(put<<<1, 32, 0, stream>>>(table, j, targets[j]));
  }
  void use(void** table, unsigned* out) {
    LAUNCH(gather<<<blocks_, 256, 0, stream_>>>(reinterpret_cast<unsigned* const*>(table), out, kCount, n_));
    LAUNCH(scatter<<<blocks_, 256, 0, stream_>>>(reinterpret_cast<unsigned* const*>(table), out, kCount, n_));
  }
  // One iteration: enough tensors that those behind the table have to leave, and in the middle what `middle` does.
  void step(unsigned number, const std::function<void(unsigned*)>& middle) {
    std::vector<unsigned*> layers{tensor(1000 + number % 2)};
    for (int l = 0; l < 7; ++l) {
      layers.push_back(tensor(7));
      LAUNCH(mix<<<blocks_, 256, 0, stream_>>>(layers.back(), layers[layers.size() - 2], layers[0], n_));
    }
    unsigned* out = tensor(3);
    middle(out);
    for (size_t l = layers.size() - 1; l > 0; --l) {
      LAUNCH(mix<<<blocks_, 256, 0, stream_>>>(layers[l - 1], layers[l], out, n_));
    }
    CHECK(cudaStreamSynchronize(stream_));
    for (unsigned* layer : layers) CHECK(cudaFree(layer));
    CHECK(cudaFree(out));
  }
  void print(const std::vector<unsigned*>& tensors) const {
    std::vector<unsigned> words(n_);
    for (const unsigned* one : tensors) {
      CHECK(cudaMemcpy(words.data(), one, n_ * sizeof(unsigned), cudaMemcpyDeviceToHost));
      uint64_t hash = 1469598103934665603u;
      for (const unsigned word : words) hash = (hash ^ word) * 1099511628211u;
      std::printf("%016llx\n", static_cast<unsigned long long>(hash));
    }
  }

  unsigned n_;
  unsigned blocks_;
  cudaStream_t stream_ = nullptr;
  cudaStream_t side_ = nullptr;
  cudaEvent_t event_ = nullptr;
  std::vector<unsigned*> hidden_;
  void** table_ = nullptr;
  void** pinned_ = nullptr;
};

using Way = void (*)(Program&, unsigned iterations);

// Built by a kernel, once.
void once(Program& p, unsigned iterations) {
  p.build(p.table_, p.hidden_, p.stream_);
  for (unsigned i = 0; i < iterations; ++i) p.step(i, [&](unsigned* out) { p.use(p.table_, out); });
}

// The kernels that use it run with an empty table first.
void late(Program& p, unsigned iterations) {
  for (unsigned i = 0; i < iterations; ++i) {
    if (i == 3) p.build(p.table_, p.hidden_, p.stream_);
    p.step(i, [&](unsigned* out) { p.use(p.table_, out); });
  }
}

// A new table for new tensors in each iteration.
void anew(Program& p, unsigned iterations) {
  for (unsigned i = 0; i < iterations; ++i) {
    p.step(i, [&](unsigned* out) {
      std::vector<unsigned*> fresh;
      for (unsigned j = 0; j < kCount; ++j) fresh.push_back(p.tensor(i % 2 * 40 + j));
      void** table = nullptr;
      CHECK(cudaMalloc(&table, kCount * sizeof(void*)));
      CHECK(cudaMemsetAsync(table, 0, kCount * sizeof(void*), p.stream_));
      p.build(table, fresh, p.stream_);
      p.use(table, out);
      for (unsigned j = 0; j < kCount; ++j) {
        LAUNCH(mix<<<p.blocks_, 256, 0, p.stream_>>>(p.hidden_[j], fresh[j], out, p.n_));
      }
      CHECK(cudaStreamSynchronize(p.stream_));
      for (unsigned* one : fresh) CHECK(cudaFree(one));
      CHECK(cudaFree(table));
    });
  }
}

// The tensors are freed and come back at addresses that others had; the order in the table changes, too.
void reused(Program& p, unsigned iterations) {
  for (unsigned i = 0; i < iterations; ++i) {
    const unsigned at = i % kCount;
    CHECK(cudaFree(p.hidden_[at]));
    CHECK(cudaFree(p.hidden_[(at + 2) % kCount]));
    p.hidden_[at] = p.tensor(i);
    p.hidden_[(at + 2) % kCount] = p.tensor(i + 100);
    p.build(p.table_, p.hidden_, p.stream_);
    p.step(i, [&](unsigned* out) { p.use(p.table_, out); });
  }
}

void deep(Program& p, unsigned iterations) {
  void** tables = nullptr;
  CHECK(cudaMalloc(&tables, 3 * sizeof(void*)));
  for (unsigned k = 0; k < 3; ++k) {
    void** inner = nullptr;
    CHECK(cudaMalloc(&inner, 2 * sizeof(void*)));
    p.build(inner, {p.hidden_[k], p.hidden_[k + 2]}, p.stream_);
    LAUNCH(put<<<1, 32, 0, p.stream_>>>(tables, k, inner));
  }
  for (unsigned i = 0; i < iterations; ++i) {
    p.step(i, [&](unsigned* out) {
      LAUNCH(gather_deep<<<p.blocks_, 256, 0, p.stream_>>>(reinterpret_cast<unsigned* const* const*>(tables), out, 3, 2,
                                                           p.n_));
      LAUNCH(mix<<<p.blocks_, 256, 0, p.stream_>>>(p.hidden_[i % kCount], out, out, p.n_));
    });
  }
}

// On another stream, ordered by an event.
void other_stream(Program& p, unsigned iterations) {
  for (unsigned i = 0; i < iterations; ++i) {
    p.step(i, [&](unsigned* out) {
      CHECK(cudaEventRecord(p.event_, p.stream_));
      CHECK(cudaStreamWaitEvent(p.side_, p.event_, 0));
      p.build(p.table_, p.hidden_, p.side_);
      CHECK(cudaEventRecord(p.event_, p.side_));
      CHECK(cudaStreamWaitEvent(p.stream_, p.event_, 0));
      p.use(p.table_, out);
    });
  }
}

struct Fill {
  void** to;
  std::vector<unsigned*>* from;
};
void CUDART_CB fill_from_host(void* user) {
  const auto* what = static_cast<Fill*>(user);
  for (unsigned j = 0; j < kCount; ++j) what->to[j] = (*what->from)[j];
}

// In pinned memory that the kernel reads, by a host function behind other work.
void host_function(Program& p, unsigned iterations) {
  Fill what{p.pinned_, &p.hidden_};
  for (unsigned i = 0; i < iterations; ++i) {
    p.step(i, [&](unsigned* out) {
      CHECK(cudaLaunchHostFunc(p.stream_, fill_from_host, &what));
      p.use(p.pinned_, out);
    });
    std::memset(p.pinned_, 0, kCount * sizeof(void*));
  }
}

// The same, copied to the device behind the host function.
void host_function_copy(Program& p, unsigned iterations) {
  Fill what{p.pinned_, &p.hidden_};
  for (unsigned i = 0; i < iterations; ++i) {
    p.step(i, [&](unsigned* out) {
      CHECK(cudaLaunchHostFunc(p.stream_, fill_from_host, &what));
      CHECK(cudaMemcpyAsync(p.table_, p.pinned_, kCount * sizeof(void*), cudaMemcpyHostToDevice, p.stream_));
      p.use(p.table_, out);
    });
    std::memset(p.pinned_, 0, kCount * sizeof(void*));
  }
}

void managed(Program& p, unsigned iterations) {
  void** table = nullptr;
  CHECK(cudaMallocManaged(&table, kCount * sizeof(void*)));
  for (unsigned i = 0; i < iterations; ++i) {
    for (unsigned j = 0; j < kCount; ++j) table[j] = p.hidden_[(i + j) % kCount];
    p.step(i, [&](unsigned* out) { p.use(table, out); });
  }
}

// A table in the last words of a large one, copied over; and the rows of another one, moved on the device.
void large(Program& p, unsigned iterations) {
  constexpr size_t kWords = 150'000;
  void** table = nullptr;
  CHECK(cudaMalloc(&table, kWords * sizeof(void*)));
  for (unsigned i = 0; i < iterations; ++i) {
    std::vector<void*> host(kWords, nullptr);
    for (unsigned j = 0; j < kCount; ++j) host[kWords - kCount + j] = p.hidden_[(i + j) % kCount];
    CHECK(cudaMemcpy(table, host.data(), kWords * sizeof(void*), cudaMemcpyHostToDevice));
    p.step(i, [&](unsigned* out) { p.use(table + kWords - kCount, out); });
  }
}

void rows(Program& p, unsigned iterations) {
  void** apart = nullptr;
  CHECK(cudaMalloc(&apart, kCount * 4 * sizeof(void*)));
  for (unsigned i = 0; i < iterations; ++i) {
    std::vector<void*> host(p.hidden_.begin(), p.hidden_.end());
    CHECK(cudaMemcpy2D(apart, 32, host.data(), 8, 8, kCount, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy2DAsync(p.table_, 8, apart, 32, 8, kCount, cudaMemcpyDeviceToDevice, p.stream_));
    p.step(i, [&](unsigned* out) { p.use(p.table_, out); });
  }
}

// A graph that uses the table; what it holds changes between its launches.
void graph(Program& p, unsigned iterations) {
  unsigned* out = p.tensor(5);
  cudaGraph_t made = nullptr;
  cudaGraphExec_t executable = nullptr;
  CHECK(cudaStreamBeginCapture(p.stream_, cudaStreamCaptureModeThreadLocal));
  p.use(p.table_, out);
  CHECK(cudaStreamEndCapture(p.stream_, &made));
  CHECK(cudaGraphInstantiate(&executable, made, 0));
  for (unsigned i = 0; i < iterations; ++i) {
    std::vector<unsigned*> targets = p.hidden_;
    targets[i % kCount] = nullptr;
    p.build(p.table_, targets, p.stream_);
    p.step(i, [&](unsigned*) { CHECK(cudaGraphLaunch(executable, p.stream_)); });
  }
}

// A kernel that is opaque by name.
void collective(Program& p, unsigned iterations) {
  for (unsigned i = 0; i < iterations; ++i) {
    p.step(i, [&](unsigned* out) {
      const auto hidden = reinterpret_cast<uintptr_t>(p.hidden_[i % kCount]);
      LAUNCH(ncclDevKernel_sum<<<p.blocks_, 256, 0, p.stream_>>>(static_cast<unsigned>(hidden),
                                                                 static_cast<unsigned>(hidden >> 32), out, p.n_));
      LAUNCH(mix<<<p.blocks_, 256, 0, p.stream_>>>(p.hidden_[i % kCount], out, out, p.n_));
    });
  }
}

std::atomic<unsigned> released{0};
void CUDART_CB wait_for_release(void* user) {
  while (released.load() < reinterpret_cast<uintptr_t>(user)) {
  }
}

// A kernel that cannot run before the launch behind it has returned, and a buffer of both that is small enough to hold
// a table: as with kernels that spin until a later launch.
void held_back(Program& p, unsigned iterations) {
  unsigned* words = nullptr;
  CHECK(cudaMalloc(&words, 256));
  CHECK(cudaMemset(words, 0, 256));
  p.build(p.table_, p.hidden_, p.stream_);
  for (unsigned i = 0; i < iterations; ++i) {
    p.step(i, [&](unsigned* out) { p.use(p.table_, out); });
    CHECK(cudaLaunchHostFunc(p.side_, wait_for_release, reinterpret_cast<void*>(uintptr_t{i} + 1)));
    LAUNCH(set<<<1, 32, 0, p.side_>>>(words, 0, i));
    LAUNCH(set<<<1, 32, 0, p.stream_>>>(words, 1, i));
    released.store(i + 1);
    CHECK(cudaStreamSynchronize(p.side_));
  }
}

const std::map<std::string, Way> kWays = {
    {"once", once},
    {"late", late},
    {"anew", anew},
    {"reused", reused},
    {"deep", deep},
    {"other_stream", other_stream},
    {"managed", managed},
    {"large", large},
    {"host_function", host_function},
    {"rows", rows},
    {"graph", graph},
    {"host_function_copy", host_function_copy},
    {"held_back", held_back},
    {"collective", collective},
};

}  // namespace

int main(int argc, char** argv) {
  const auto way = argc == 4 ? kWays.find(argv[1]) : kWays.end();
  if (way == kWays.end()) {
    std::fprintf(stderr, "usage: table_program WAY ITERATIONS WORDS\n");
    return 2;
  }
  Program program(static_cast<unsigned>(std::atoi(argv[3])));
  way->second(program, static_cast<unsigned>(std::atoi(argv[2])));
  CHECK(cudaDeviceSynchronize());
  program.print(program.hidden_);
  return 0;
}
