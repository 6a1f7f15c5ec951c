// Parameters and the forward pass. Included by model.cuh.
#pragma once
#include "model.cuh"

// Normally distributed weights, the same on every machine (std::normal_distribution may differ between libraries).
inline Parameter* Model::make(const std::string& name, size_t count, float deviation, float constant) {
  std::vector<float> values(count, constant);
  const auto uniform = [this] { return (static_cast<double>(random_()) + 0.5) / 4294967296.0; };
  for (size_t i = 0; deviation > 0 && i < count; ++i) {
    const double radius = std::sqrt(-2.0 * std::log(uniform()));
    values[i] = deviation * static_cast<float>(radius * std::cos(6.283185307179586 * uniform()));
  }
  auto parameter = std::make_unique<Parameter>();
  parameter->name = name;
  for (Tensor* tensor : {&parameter->weights, &parameter->first_moment, &parameter->second_moment}) {
    *tensor = Tensor(device_, count);
  }
  const size_t bytes = count * sizeof(float);
  check(cudaMemcpy(parameter->weights.data(), values.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  check(cudaMemset(parameter->first_moment.data(), 0, bytes), "cudaMemset");
  check(cudaMemset(parameter->second_moment.data(), 0, bytes), "cudaMemset");
  parameters_.push_back(std::move(parameter));
  return parameters_.back().get();
}

inline Model::Model(Device& device, const Options& options, int classes)
    : device_(device),
      width_(options.width),
      heads_(options.heads),
      head_width_(options.width / options.heads),
      context_(options.context),
      batch_(options.batch),
      rows_(options.batch * options.context),
      classes_(classes),
      random_(options.seed) {
  const auto size = [](int a, int b) { return static_cast<size_t>(a) * static_cast<size_t>(b); };
  const float usual = 0.02f;
  const float residual = usual / std::sqrt(2.0f * static_cast<float>(options.layers));
  tokens_ = make("tokens", size(classes, width_), usual);
  positions_ = make("positions", size(context_, width_), usual);
  for (int i = 0; i < options.layers; ++i) {
    const std::string at = "layer" + std::to_string(i) + ".";
    Layer layer{};
    layer.gain1 = make(at + "gain1", size(width_, 1), 0, 1.0f);
    layer.shift1 = make(at + "shift1", size(width_, 1), 0);
    layer.qkv = make(at + "qkv", size(width_, 3 * width_), usual);
    layer.qkv_bias = make(at + "qkv_bias", size(3 * width_, 1), 0);
    layer.projection = make(at + "projection", size(width_, width_), residual);
    layer.projection_bias = make(at + "projection_bias", size(width_, 1), 0);
    layer.gain2 = make(at + "gain2", size(width_, 1), 0, 1.0f);
    layer.shift2 = make(at + "shift2", size(width_, 1), 0);
    layer.widen = make(at + "widen", size(width_, 4 * width_), usual);
    layer.widen_bias = make(at + "widen_bias", size(4 * width_, 1), 0);
    layer.narrow = make(at + "narrow", size(4 * width_, width_), residual);
    layer.narrow_bias = make(at + "narrow_bias", size(width_, 1), 0);
    layers_.push_back(layer);
  }
  gain_ = make("gain", size(width_, 1), 0, 1.0f);
  shift_ = make("shift", size(width_, 1), 0);
  head_ = make("head", size(width_, classes), usual);
}

// Scores, their softmax, and the weighted sum of values, one batch of matrix products over samples and heads each.
inline void Model::attend(Saved& saved) {
  const int batches = batch_ * heads_;
  const int square = context_ * context_;
  const int sample = context_ * 3 * width_;
  const float* q = saved.qkv.data();
  const float* k = q + width_;
  const float* v = k + width_;
  Tensor scores(device_, static_cast<size_t>(batches) * square);
  {
    Tensor turned(device_, static_cast<size_t>(rows_) * width_);
    launch_transpose(device_, k, turned.data(), {context_, head_width_, 3 * width_, heads_, sample, head_width_},
                     batches);
    GemmShape shape = head_shape(context_, context_, head_width_);
    shape.a_row = 3 * width_, shape.a_column = 1, shape.a_outer = sample, shape.a_inner = head_width_;
    shape.b_row = context_, shape.b_outer = context_ * width_, shape.b_inner = context_ * head_width_;
    shape.c_row = context_, shape.c_outer = heads_ * square, shape.c_inner = square;
    launch_gemm(device_, q, turned.data(), nullptr, scores.data(), shape, batches);
  }
  saved.probabilities = Tensor(device_, scores.count());
  device_.launch(causal_softmax, row_grid(batches * context_), kBlock, scores.data(), saved.probabilities.data(),
                 context_, 1.0f / std::sqrt(static_cast<float>(head_width_)));
  scores.drop();
  saved.attended = Tensor(device_, static_cast<size_t>(rows_) * width_);
  GemmShape shape = head_shape(context_, head_width_, context_);
  shape.a_row = context_, shape.a_column = 1, shape.a_outer = heads_ * square, shape.a_inner = square;
  shape.b_row = 3 * width_, shape.b_outer = sample, shape.b_inner = head_width_;
  shape.c_row = width_, shape.c_outer = context_ * width_, shape.c_inner = head_width_;
  launch_gemm(device_, saved.probabilities.data(), v, nullptr, saved.attended.data(), shape, batches);
}

inline Tensor Model::layer_forward(const Layer& layer, Tensor in, Saved& saved) {
  const int wide = 4 * width_;
  saved.in = std::move(in);
  saved.norm1 = normalise(device_, saved.in, layer.gain1->weights, layer.shift1->weights, rows_, width_);
  saved.qkv = matmul(device_, saved.norm1.out, layer.qkv->weights.data(), layer.qkv_bias->weights.data(), rows_, width_,
                     3 * width_);
  attend(saved);
  {
    const Tensor projected = matmul(device_, saved.attended, layer.projection->weights.data(),
                                    layer.projection_bias->weights.data(), rows_, width_, width_);
    saved.middle = sum(device_, saved.in, projected);
  }
  saved.norm2 = normalise(device_, saved.middle, layer.gain2->weights, layer.shift2->weights, rows_, width_);
  saved.wide = matmul(device_, saved.norm2.out, layer.widen->weights.data(), layer.widen_bias->weights.data(), rows_,
                      width_, wide);
  saved.active = Tensor(device_, saved.wide.count());
  device_.launch(gelu, element_grid(saved.wide.count()), kBlock, saved.wide.data(), saved.active.data(),
                 saved.wide.size());
  const Tensor narrow = matmul(device_, saved.active, layer.narrow->weights.data(), layer.narrow_bias->weights.data(),
                               rows_, wide, width_);
  return sum(device_, saved.middle, narrow);
}

inline Model::Pass Model::forward(const int* tokens, bool keep) {
  Pass pass;
  const int* targets = tokens + rows_;
  Tensor stream(device_, static_cast<size_t>(rows_) * width_);
  device_.launch(embed, element_grid(stream.count()), kBlock, tokens, tokens_->weights.data(),
                 positions_->weights.data(), stream.data(), rows_, context_, width_);
  for (const Layer& layer : layers_) {
    Saved saved;
    stream = layer_forward(layer, std::move(stream), saved);
    if (keep) pass.layers.push_back(std::move(saved));
  }
  pass.last = std::move(stream);
  pass.norm = normalise(device_, pass.last, gain_->weights, shift_->weights, rows_, width_);
  pass.logits = matmul(device_, pass.norm.out, head_->weights.data(), nullptr, rows_, width_, classes_);
  pass.log_sums = Tensor(device_, static_cast<size_t>(rows_));
  const Tensor losses(device_, static_cast<size_t>(rows_));
  device_.launch(cross_entropy, row_grid(rows_), kBlock, pass.logits.data(), targets, losses.data(),
                 pass.log_sums.data(), classes_);
  pass.loss = Tensor(device_, 1);
  device_.launch(mean, dim3(1), 32, losses.data(), pass.loss.data(), rows_);
  if (keep) return pass;
  Pass only_loss;
  only_loss.loss = std::move(pass.loss);
  return only_loss;
}
