// The model: parameters, forward pass, backward pass, optimizer. The forward pass keeps what the backward pass needs in
// one allocation each; the backward pass drops each of them right after its last use.
#pragma once
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "operations.cuh"

struct Parameter {
  std::string name;
  Tensor weights, first_moment, second_moment;
  Tensor gradient;  // from its computation to its use by the optimizer
};

struct Layer {
  Parameter *gain1, *shift1, *qkv, *qkv_bias, *projection, *projection_bias;
  Parameter *gain2, *shift2, *widen, *widen_bias, *narrow, *narrow_bias;
};

// What the backward pass of a layer needs.
struct Saved {
  Tensor in, qkv, probabilities, attended, middle, wide, active;
  Normalised norm1, norm2;
};

class Model {
 public:
  Model(Device& device, const Options& options, int classes);

  // Everything for one batch: tokens, targets behind them. Losses and gradients stay on the device.
  struct Pass {
    std::vector<Saved> layers;
    Tensor last, logits, log_sums, loss;
    Normalised norm;
  };
  // Without `keep`, everything but the loss is dropped on the way.
  Pass forward(const int* tokens, bool keep);
  // Leaves a gradient in every parameter. `after_tokens` is called when the tokens are no longer needed.
  void backward(Pass pass, const int* tokens, const std::function<void()>& after_tokens);
  void optimize(float rate, int step);

  std::vector<std::unique_ptr<Parameter>>& parameters() { return parameters_; }

 private:
  Parameter* make(const std::string& name, size_t count, float deviation, float constant = 0.0f);
  Tensor layer_forward(const Layer& layer, Tensor in, Saved& saved);
  void attend(Saved& saved);
  Tensor layer_backward(const Layer& layer, Saved& saved, Tensor gradient);
  Tensor attention_backward(Saved& saved, Tensor gradient);
  Tensor linear_backward(Tensor& in, const Tensor& gradient, Parameter* weights, Parameter* bias, int inner,
                         int columns);
  Tensor norm_backward(Tensor gradient, Tensor in, Normalised& norm, Parameter* gain, Parameter* shift);
  GemmShape head_shape(int m, int n, int k) const { return {m, n, k, 0, 0, 0, 0, heads_, 0, 0, 0, 0, 0, 0}; }

  Device& device_;
  int width_, heads_, head_width_, context_, batch_, rows_, classes_;
  std::mt19937 random_;
  std::vector<std::unique_ptr<Parameter>> parameters_;
  std::vector<Layer> layers_;
  Parameter *tokens_, *positions_, *gain_, *shift_, *head_;
};

#include "backward.cuh"
#include "forward.cuh"
