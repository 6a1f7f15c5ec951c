// A driver-API program that trains a chain of layers and does something else besides: it evaluates, saves, accumulates
// gradients, grows. Everything in it is the same in every run; it prints a hash of what it reads back after each phase.
// Knows nothing of Reprise. Run plain and under a budget, it must print the same.
//
//     steps      step after step
//     evaluate   five steps, then an evaluation of four batches
//     save       seven steps, then one pass over the weights
//     accumulate four micro-steps, then an update
//     alternate  three steps, then one of larger batches
//     grow       a third of the steps, then steps of larger batches and more weights
//     shrink     a third of the steps of huge batches, then steps
//     other      a third of the steps, then evaluations for good
//     keep       a third of the steps, then one that keeps an activation for another third
//     loss       as save, but the last step's loss is freed when the next one's is there
//     odd        steps that differ in the middle from one to the next
//     reset      half of the steps, then the device is reset, and all begins anew
//     half       five steps in fixed buffers, then three evaluations, which make the first half of a step's calls
//     turns      steps that take turns with two buffers; some early ones read back besides
//     rotate     steps with work on a side stream, the next of 32 each time
//     fresh      ... a new one each time, which is destroyed then
//     random     ... two of three at random
//     slices     steps on slices of a data set that stays on the device
//     moved      every eight steps all tensors go to the host and come back in another order
//     sizes      twelve steps of a size, then twelve of the next smaller one
//     lengths    steps of one of five sizes, in any order
//     varied     steps of any size, mostly small ones
//     rising     ... of which the largest so far is larger every few steps
//     micros     three or four micro-steps, as it comes, then an update
//     skips      steps, some of which do not update
//     evals      three to seven steps, then an evaluation of two to five batches
//     collected  steps whose frees another thread makes, some launches later and in another order each time
//
// phases_program CUBIN KIND ROUNDS
#include <thread>
#include <utility>

#include "tests/e2e/support/driver_program.h"

namespace {

constexpr size_t kKib = 1024;
constexpr size_t kWeight = 192 * kKib;
constexpr size_t kBatch = 320 * kKib;
constexpr size_t kLargeBatch = 512 * kKib;
constexpr size_t kHugeBatch = 2048 * kKib;
constexpr size_t kSmall = 4 * kKib;

struct Tensor {
  CUdeviceptr address = 0;
  size_t bytes = 0;
};

class Program {
 public:
  explicit Program(const char* cubin) : cubin_(cubin) {
    program::leave = std::exit;
    begin();
  }

  void begin() {
    program::open_device();
    const CUmodule module = program::load(cubin_);
    mix2_ = program::function(module, "mix2");
    mix3_ = program::function(module, "mix3");
    add_layers(8);
  }

  void run(const std::string& kind, int rounds) {
    for (int round = 0; round < rounds; ++round) {
      if (kind == "steps") step(kBatch);
      if (kind == "evaluate") evaluate_every(5);
      if (kind == "save") save_every(7);
      if (kind == "accumulate") accumulate(4);
      if (kind == "alternate") step(round % 4 == 3 ? kLargeBatch : kBatch);
      if (kind == "grow" && round == rounds / 3) add_layers(4);
      if (kind == "grow") step(round < rounds / 3 ? kBatch : kLargeBatch);
      if (kind == "shrink") step(round < rounds / 3 ? kHugeBatch : kBatch);
      if (kind == "other") round < rounds / 3 ? step(kBatch) : evaluate(kLargeBatch);
      if (kind == "loss") save_every(7, true);
      if (kind == "keep" && round == rounds * 2 / 3) release_kept();
      if (kind == "keep") step(kBatch, 0, round == rounds / 3);
      if (kind == "odd") step(kBatch, round % 5);
      if (kind == "reset" && round == rounds / 2) reset();
      if (kind == "reset") step(kBatch);
      if (kind == "half") half_every(5);
      if (kind == "turns") take_turns(round);
      if (kind == "rotate") beside({side(round % 32)});
      if (kind == "fresh") beside({nullptr});
      if (kind == "random") beside({side(random() % 3), side(random() % 3)});
      if (kind == "slices") step_on_slice(round);
      if (kind == "moved" && round % 8 == 7) move();
      if (kind == "moved") step(kBatch);
      if (kind == "micros") accumulate(3 + random() % 2);
      if (kind == "skips") step_and_skip(random() % 4 == 0);
      if (kind == "evals") evaluate_every(3 + random() % 5, 2 + random() % 4);
      if (kind == "collected") step_and_collect();
      if (kind == "lengths") step((8 + static_cast<size_t>(random() % 5) * 3) * 16 * kKib);
      if (kind == "varied")
        step((4 + static_cast<size_t>(random() % 17) * static_cast<size_t>(random() % 17) / 16) * 16 * kKib);
      if (kind == "rising") step((4 + static_cast<size_t>(round / 5 + random() % 3)) * 16 * kKib);
      if (kind == "sizes") step(kBatch - static_cast<size_t>(round / 12) * 16 * kKib);
    }
    collect(0);
    for (const Tensor& weight : weights_) print("final", weight);
  }

 private:
  void reset() {
    CHECK(cuDevicePrimaryCtxReset(0));
    weights_.clear();
    gradients_.clear();
    biases_.clear();
    begin();
  }

  Tensor allocate(size_t bytes) {
    Tensor tensor;
    tensor.bytes = bytes;
    CHECK(cuMemAlloc(&tensor.address, bytes));
    return tensor;
  }

  void free(const Tensor& tensor) {
    if (!collects_) {
      CHECK(cuMemFree(tensor.address));
      return;
    }
    garbage_.push_back({tensor, random() % 5});
  }

  // What has been there for so many launches, in any order. At most `left` stay.
  void collect(size_t left) {
    std::vector<Tensor> due;
    for (size_t i = garbage_.size(); i-- > 0;) {
      if (--garbage_[i].second >= 0 && garbage_.size() <= left) continue;
      due.insert(due.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(random()) % (due.size() + 1)),
                 garbage_[i].first);
      garbage_.erase(garbage_.begin() + static_cast<ptrdiff_t>(i));
    }
    if (due.empty()) return;
    CUcontext context = nullptr;
    CHECK(cuCtxGetCurrent(&context));
    std::thread([&] {
      CHECK(cuCtxSetCurrent(context));
      for (const Tensor& tensor : due) CHECK(cuMemFree(tensor.address));
    }).join();
  }

  void step_and_collect() {
    collects_ = true;
    step(kBatch);
    collect(random() % 4 == 0 ? 1 : 0);
  }

  // A layer's weight, its gradient, and a small one.
  void add_layers(int count) {
    for (int i = 0; i < count; ++i) {
      for (auto* tensors : {&weights_, &gradients_}) {
        tensors->push_back(allocate(kWeight));
        fill(tensors->back(), static_cast<unsigned>(tensors->size()));
      }
      biases_.push_back(allocate(kSmall));
      fill(biases_.back(), 7);
    }
  }

  void fill(const Tensor& tensor, unsigned value) {
    CHECK(cuMemsetD32Async(tensor.address, value, tensor.bytes / 4, nullptr));
  }

  void launch(CUfunction function, size_t words, void** parameters) {
    const auto blocks = static_cast<unsigned>((words + 255) / 256);
    CHECK(cuLaunchKernel(function, blocks, 1, 1, 256, 1, 1, 0, stream_, parameters, nullptr));
    if (collects_) collect(garbage_.size());
  }

  void mix(Tensor to, Tensor from, unsigned salt) {
    auto words = static_cast<unsigned>((to.bytes < from.bytes ? to.bytes : from.bytes) / 4);
    void* parameters[] = {&to.address, &from.address, &salt, &words};
    launch(mix2_, words, parameters);
  }

  void mix(Tensor to, Tensor from, Tensor with, unsigned salt) {
    size_t bytes = to.bytes < from.bytes ? to.bytes : from.bytes;
    if (with.bytes < bytes) bytes = with.bytes;
    auto words = static_cast<unsigned>(bytes / 4);
    void* parameters[] = {&to.address, &from.address, &with.address, &salt, &words};
    launch(mix3_, words, parameters);
  }

  // `odd`: so many kernels more in the middle.
  void forward_and_backward(size_t batch, int odd, bool keep = false) {
    std::vector<Tensor> activations = {allocate(batch)};
    fill(activations[0], ++salt_);
    for (size_t i = 0; i < weights_.size(); ++i) {
      activations.push_back(allocate(batch));
      fill(activations.back(), 1);
      mix(activations.back(), activations[i], weights_[i], salt_);
      mix(activations.back(), biases_[i], salt_);
    }
    const Tensor scratch = allocate(kSmall);
    for (int i = 0; i < 1 + odd; ++i) mix(scratch, activations.back(), salt_);
    for (size_t i = weights_.size(); i-- > 0;) {
      mix(gradients_[i], activations[i], activations[i + 1], salt_);
      if (keep && i == 3) {
        kept_.push_back(activations[i + 1]);
      } else {
        free(activations[i + 1]);
      }
    }
    free(scratch);
    free(activations[0]);
  }

  void update() {
    for (size_t i = 0; i < weights_.size(); ++i) mix(weights_[i], gradients_[i], salt_);
  }

  void step(size_t batch, int odd = 0, bool keep = false) {
    forward_and_backward(batch, odd, keep);
    update();
    print("step", weights_[0]);
  }

  void step_and_skip(bool skips) {
    forward_and_backward(kBatch, 0);
    if (!skips) update();
    print("step", gradients_[0]);
  }

  void release_kept() {
    for (const Tensor& tensor : kept_) {
      print("kept", tensor);
      CHECK(cuMemFree(tensor.address));
    }
    kept_.clear();
  }

  void accumulate(int times) {
    for (int i = 0; i < times; ++i) forward_and_backward(kBatch, 0);
    update();
    print("step", weights_[0]);
  }

  int random() {
    random_ = random_ * 1103515245 + 12345;
    return static_cast<int>(random_ >> 16);
  }

  const std::vector<Tensor>& buffers() {
    while (buffers_.size() <= weights_.size()) buffers_.push_back(allocate(kBatch));
    return buffers_;
  }

  void forward() {
    fill(buffers()[0], ++salt_);
    for (size_t i = 0; i < weights_.size(); ++i) mix(buffers_[i + 1], buffers_[i], weights_[i], salt_);
    print("loss", buffers_.back());
  }

  void half_every(int steps) {
    for (int i = 0; i < steps; ++i) {
      forward();
      for (size_t k = weights_.size(); k-- > 0;) mix(gradients_[k], buffers_[k], buffers_[k + 1], salt_);
      update();
    }
    for (int i = 0; i < 3; ++i) forward();
  }

  void take_turns(int round) {
    const Tensor in = buffers()[static_cast<size_t>(round % 2)];
    const Tensor out = buffers_[static_cast<size_t>(1 - round % 2)];
    fill(biases_[0], ++salt_);
    for (const Tensor& weight : weights_) mix(out, in, weight, salt_);
    if (round >= 8 && round < 12) print("out", out);
    for (size_t i = 0; i < weights_.size(); ++i) mix(weights_[i], gradients_[i], out, salt_);
    CHECK(cuCtxSynchronize());
  }

  CUstream side(int which) {
    sides_.resize(32);
    CUstream& stream = sides_[static_cast<size_t>(which)];
    if (stream == nullptr) CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
  }

  // A step, of which each of these streams has a part, one behind the other by events. nullptr: a new one.
  void beside(std::vector<CUstream> streams) {
    if (event_ == nullptr) CHECK(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING));
    forward_and_backward(kBatch, 0);
    for (CUstream& given : streams) {
      CUstream stream = given;
      if (given == nullptr) CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
      CHECK(cuEventRecord(event_, nullptr));
      CHECK(cuStreamWaitEvent(stream, event_, 0));
      stream_ = stream;
      for (size_t i = 0; i + 1 < weights_.size(); ++i) mix(gradients_[i], weights_[i + 1], salt_);
      stream_ = nullptr;
      CHECK(cuEventRecord(event_, stream));
      CHECK(cuStreamWaitEvent(nullptr, event_, 0));
      if (given == nullptr) CHECK(cuStreamDestroy(stream));
    }
    update();
    print("step", weights_[0]);
  }

  void step_on_slice(int round) {
    constexpr int kBatches = 12;
    if (data_.address == 0) {
      data_ = allocate(kBatches * kBatch);
      for (int i = 0; i < kBatches; ++i) fill(slice(i), static_cast<unsigned>(i));
    }
    const Tensor batch = slice(round * 5 % kBatches);
    const Tensor copy = allocate(kBatch);
    CHECK(cuMemcpyDtoDAsync(copy.address, slice(round % kBatches).address, kBatch, nullptr));
    mix(gradients_[0], batch, copy, ++salt_);
    mix(batch, copy, salt_);
    CHECK(cuMemFree(copy.address));
    step(kBatch);
  }

  Tensor slice(int which) const { return {data_.address + static_cast<size_t>(which) * kBatch, kBatch}; }

  // Tensors of one size stand among those of another one in a new order each time.
  void move() {
    std::vector<Tensor*> all;
    for (auto* tensors : {&weights_, &gradients_, &biases_}) {
      for (Tensor& tensor : *tensors) all.push_back(&tensor);
    }
    std::vector<std::vector<char>> bytes;
    for (Tensor* tensor : all) {
      bytes.emplace_back(tensor->bytes);
      CHECK(cuMemcpyDtoH(bytes.back().data(), tensor->address, tensor->bytes));
    }
    for (Tensor* tensor : all) CHECK(cuMemFree(tensor->address));
    std::vector<size_t> order(all.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (size_t i = order.size(); --i > 0;) std::swap(order[i], order[static_cast<size_t>(random()) % (i + 1)]);
    for (const size_t i : order) {
      CHECK(cuMemAlloc(&all[i]->address, all[i]->bytes));
      CHECK(cuMemcpyHtoD(all[i]->address, bytes[i].data(), all[i]->bytes));
    }
  }

  void evaluate(size_t batch) {
    Tensor before = allocate(batch);
    fill(before, ++salt_);
    for (const Tensor& weight : weights_) {
      const Tensor now = allocate(batch);
      fill(now, 2);
      mix(now, before, weight, salt_);
      CHECK(cuMemFree(before.address));
      before = now;
    }
    print("evaluated", before);
    CHECK(cuMemFree(before.address));
  }

  void evaluate_every(int steps, int batches = 4) {
    for (int i = 0; i < steps; ++i) step(kBatch);
    for (int i = 0; i < batches; ++i) evaluate(kLargeBatch);
  }

  // As in "loss = model(batch)".
  void new_loss() {
    const Tensor next = allocate(kWeight);
    fill(next, 5);
    mix(next, weights_[0], salt_);
    if (loss_.address != 0) CHECK(cuMemFree(loss_.address));
    loss_ = next;
  }

  void save_every(int steps, bool loss = false) {
    for (int i = 0; i < steps; ++i) {
      if (loss) new_loss();
      step(kBatch);
    }
    for (const Tensor& weight : weights_) print("saved", weight);
    const Tensor whole = allocate(kLargeBatch);
    fill(whole, 3);
    for (const Tensor& gradient : gradients_) mix(whole, gradient, salt_);
    print("saved", whole);
    CHECK(cuMemFree(whole.address));
  }

  void print(const char* what, const Tensor& tensor) {
    std::vector<uint32_t> words(tensor.bytes / 4);
    CHECK(cuMemcpyDtoH(words.data(), tensor.address, tensor.bytes));
    program::print(what, program::hash_of(words));
  }

  const char* cubin_;
  CUfunction mix2_ = nullptr;
  CUfunction mix3_ = nullptr;
  std::vector<Tensor> weights_;
  std::vector<Tensor> gradients_;
  std::vector<Tensor> biases_;
  std::vector<Tensor> kept_;
  std::vector<Tensor> buffers_;
  std::vector<CUstream> sides_;
  CUevent event_ = nullptr;
  CUstream stream_ = nullptr;  // that kernels are launched on
  bool collects_ = false;
  std::vector<std::pair<Tensor, int>> garbage_;  // with launches until it is freed
  Tensor data_;
  Tensor loss_;
  uint32_t random_ = 1;
  unsigned salt_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: phases_program CUBIN KIND ROUNDS\n");
    return 2;
  }
  Program program(argv[1]);
  program.run(argv[2], std::atoi(argv[3]));
  return 0;
}
