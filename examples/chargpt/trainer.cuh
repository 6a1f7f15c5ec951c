// Batches in, losses out: what happens around the model. The next batch is copied on a stream of its own while the
// optimizer works; the loss is read back at the end of every step.
#pragma once
#include <cstring>

#include "model.cuh"
#include "text.h"

class Trainer {
 public:
  Trainer(const Options& options, const Text& text)
      : options_(options),
        text_(text),
        device_(options),
        model_(device_, options, text.classes()),
        count_(static_cast<size_t>(2 * options.batch * options.context)),
        random_(options.seed + 1),
        batch_(device_, count_) {
    check(cudaMallocHost(&host_batch_, count_ * sizeof(int)), "cudaMallocHost");
    check(cudaMallocHost(&host_loss_, sizeof(float)), "cudaMallocHost");
    check(cudaEventCreateWithFlags(&copied_, cudaEventDisableTiming), "cudaEventCreate");
    check(cudaEventCreateWithFlags(&used_, cudaEventDisableTiming), "cudaEventCreate");
    // The batch was allocated, and the weights were set, on other streams than those that use them.
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  ~Trainer() {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check(cudaEventDestroy(used_), "cudaEventDestroy");
    check(cudaEventDestroy(copied_), "cudaEventDestroy");
    check(cudaFreeHost(host_loss_), "cudaFreeHost");
    check(cudaFreeHost(host_batch_), "cudaFreeHost");
  }
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  void train();
  // The largest relative difference between gradients and finite differences over all parameters.
  double check_gradients();
  // FNV-1a over the bytes of all weights.
  uint64_t checksum();
  Device& device() { return device_; }

 private:
  // Takes a batch from the text and copies it beside whatever the compute stream does.
  void send_batch(bool evaluation) {
    check(cudaEventSynchronize(copied_), "cudaEventSynchronize");  // the host's buffer is free again
    text_.sample(random_, options_.batch, options_.context, evaluation, host_batch_);
    check(cudaStreamWaitEvent(device_.copy, used_, 0), "cudaStreamWaitEvent");
    check(cudaMemcpyAsync(batch_.data(), host_batch_, count_ * sizeof(int), cudaMemcpyHostToDevice, device_.copy),
          "cudaMemcpyAsync");
    check(cudaEventRecord(copied_, device_.copy), "cudaEventRecord");
  }
  void await_batch() { check(cudaStreamWaitEvent(device_.compute, copied_, 0), "cudaStreamWaitEvent"); }
  void batch_used() { check(cudaEventRecord(used_, device_.compute), "cudaEventRecord"); }

  float read_loss(const Tensor& loss) {
    check(cudaMemcpyAsync(host_loss_, loss.data(), sizeof(float), cudaMemcpyDeviceToHost, device_.compute),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(device_.compute), "cudaStreamSynchronize");
    return *host_loss_;
  }

  float evaluate();
  float loss_now() {
    const Model::Pass pass = model_.forward(batch_.data(), false);
    return read_loss(pass.loss);
  }

  const Options& options_;
  const Text& text_;
  Device device_;
  Model model_;
  size_t count_;
  std::mt19937 random_;
  Array<int> batch_;
  int* host_batch_ = nullptr;
  float* host_loss_ = nullptr;
  cudaEvent_t copied_ = nullptr;
  cudaEvent_t used_ = nullptr;
};

// The loss on four batches that training does not see.
inline float Trainer::evaluate() {
  constexpr int kBatches = 4;
  float sum = 0;
  for (int i = 0; i < kBatches; ++i) {
    send_batch(true);
    await_batch();
    sum += loss_now();
    batch_used();
  }
  device_.free_now();
  return sum / kBatches;
}

inline void Trainer::train() {
  send_batch(false);
  for (int step = 1; step <= options_.steps; ++step) {
    await_batch();
    Model::Pass pass = model_.forward(batch_.data(), true);
    const Tensor loss = std::move(pass.loss);
    const bool evaluation = options_.eval_every > 0 && step % options_.eval_every == 0;
    model_.backward(std::move(pass), batch_.data(), [&] {
      batch_used();
      if (!evaluation && step < options_.steps) send_batch(false);
    });
    model_.optimize(options_.learning_rate, step);
    const float value = read_loss(loss);
    if (step % options_.print_every == 0) std::printf("step %d loss %.9g\n", step, static_cast<double>(value));
    if (!evaluation) continue;
    std::printf("step %d evaluation %.9g\n", step, static_cast<double>(evaluate()));
    if (step < options_.steps) send_batch(false);
  }
}

inline double Trainer::check_gradients() {
  send_batch(false);
  await_batch();
  model_.backward(model_.forward(batch_.data(), true), batch_.data(), [this] { batch_used(); });
  double worst = 0;
  for (auto& parameter : model_.parameters()) {
    std::vector<float> gradient(parameter->gradient.count());
    check(cudaStreamSynchronize(device_.compute), "cudaStreamSynchronize");
    check(cudaMemcpy(gradient.data(), parameter->gradient.data(), gradient.size() * sizeof(float),
                     cudaMemcpyDeviceToHost),
          "cudaMemcpy");
    // The steepest element: there the difference of two losses has the most digits.
    const auto steeper = [](float a, float b) { return std::fabs(a) < std::fabs(b); };
    const auto at = std::max_element(gradient.begin(), gradient.end(), steeper) - gradient.begin();
    float* weight = parameter->weights.data() + at;
    float value = 0;
    check(cudaMemcpy(&value, weight, sizeof value, cudaMemcpyDeviceToHost), "cudaMemcpy");
    const auto loss_at = [&](float shifted) {
      check(cudaMemcpy(weight, &shifted, sizeof shifted, cudaMemcpyHostToDevice), "cudaMemcpy");
      // It may return before the bytes are there, and the compute stream does not wait for them.
      check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      return static_cast<double>(loss_now());
    };
    // Five points; the flatter the loss, the farther they are, so that its difference stands out of rounding.
    const float expected = gradient[static_cast<size_t>(at)];
    const float distance = std::min(std::max(0.003f / std::fabs(expected), 0.005f), 0.05f);
    const auto difference_at = [&](float shift) { return loss_at(value + shift) - loss_at(value - shift); };
    const double slope = (8.0 * difference_at(distance) - difference_at(2.0f * distance)) / (12.0 * distance);
    loss_at(value);
    const double difference = std::fabs(slope - expected) / std::max(std::fabs(static_cast<double>(expected)), 1e-3);
    std::printf("%s[%ld] gradient %.6g difference quotient %.6g\n", parameter->name.c_str(), static_cast<long>(at),
                static_cast<double>(expected), slope);
    worst = std::max(worst, difference);
  }
  return worst;
}

inline uint64_t Trainer::checksum() {
  check(cudaStreamSynchronize(device_.compute), "cudaStreamSynchronize");
  uint64_t hash = 0xcbf29ce484222325ull;
  for (auto& parameter : model_.parameters()) {
    std::vector<unsigned char> bytes(parameter->weights.count() * sizeof(float));
    check(cudaMemcpy(bytes.data(), parameter->weights.data(), bytes.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3ull;
  }
  return hash;
}
