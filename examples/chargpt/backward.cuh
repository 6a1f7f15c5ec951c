// The backward pass and the optimizer. Included by model.cuh.
#pragma once
#include "model.cuh"

// Gradients of weights and bias, and the gradient of the input, which is dropped.
inline Tensor Model::linear_backward(Tensor& in, const Tensor& gradient, Parameter* weights, Parameter* bias, int inner,
                                     int columns) {
  weights->gradient = matmul_transposed_left(device_, in, gradient, rows_, inner, columns);
  in.drop();
  if (bias != nullptr) bias->gradient = sum_rows(device_, gradient, rows_, columns);
  return matmul_transposed_right(device_, gradient, weights->weights, rows_, inner, columns);
}

inline Tensor Model::norm_backward(Tensor gradient, Tensor in, Normalised& norm, Parameter* gain, Parameter* shift) {
  Tensor result(device_, in.count());
  device_.launch(layer_norm_backward, row_grid(rows_), kBlock, gradient.data(), in.data(), gain->weights.data(),
                 norm.means.data(), norm.scales.data(), result.data(), width_);
  const int chunk = chunk_rows_of(rows_);
  const int chunks = rows_ / chunk;
  Tensor gain_parts(device_, static_cast<size_t>(chunks) * width_);
  Tensor shift_parts(device_, static_cast<size_t>(chunks) * width_);
  dim3 grid = element_grid(width_ + kPerThread - 1);
  grid.y = static_cast<unsigned>(chunks);
  device_.launch(layer_norm_weights_backward, grid, kBlock, gradient.data(), in.data(), norm.means.data(),
                 norm.scales.data(), gain_parts.data(), shift_parts.data(), width_, chunk);
  gain->gradient = sum_chunks(device_, gain_parts, chunks, width_);
  shift->gradient = sum_chunks(device_, shift_parts, chunks, width_);
  norm.means.drop();
  norm.scales.drop();
  return result;
}

// From the gradient of the weighted sums to that of queries, keys and values.
inline Tensor Model::attention_backward(Saved& saved, Tensor gradient) {
  const int batches = batch_ * heads_;
  const int square = context_ * context_;
  const int sample = context_ * 3 * width_;
  const float* q = saved.qkv.data();
  const float* k = q + width_;
  const float* v = k + width_;
  Tensor result(device_, saved.qkv.count());
  Tensor to_probabilities(device_, saved.probabilities.count());
  {
    Tensor turned(device_, static_cast<size_t>(rows_) * width_);
    launch_transpose(device_, v, turned.data(), {context_, head_width_, 3 * width_, heads_, sample, head_width_},
                     batches);
    GemmShape shape = head_shape(context_, context_, head_width_);
    shape.a_row = width_, shape.a_column = 1, shape.a_outer = context_ * width_, shape.a_inner = head_width_;
    shape.b_row = context_, shape.b_outer = context_ * width_, shape.b_inner = context_ * head_width_;
    shape.c_row = context_, shape.c_outer = heads_ * square, shape.c_inner = square;
    launch_gemm(device_, gradient.data(), turned.data(), nullptr, to_probabilities.data(), shape, batches);
  }
  // A square matrix (transposed where `turned`) times columns of a head: into the gradients of q, k or v.
  const auto product = [&](const Tensor& matrix, bool turned, const float* in, int in_row, int in_outer, float* out) {
    GemmShape shape = head_shape(context_, head_width_, context_);
    shape.a_row = turned ? 1 : context_, shape.a_column = turned ? context_ : 1;
    shape.a_outer = heads_ * square, shape.a_inner = square;
    shape.b_row = in_row, shape.b_outer = in_outer, shape.b_inner = head_width_;
    shape.c_row = 3 * width_, shape.c_outer = sample, shape.c_inner = head_width_;
    launch_gemm(device_, matrix.data(), in, nullptr, out, shape, batches);
  };
  product(saved.probabilities, true, gradient.data(), width_, context_ * width_, result.data() + 2 * width_);
  gradient.drop();
  Tensor to_scores(device_, to_probabilities.count());
  device_.launch(causal_softmax_backward, row_grid(batches * context_), kBlock, saved.probabilities.data(),
                 to_probabilities.data(), to_scores.data(), context_,
                 1.0f / std::sqrt(static_cast<float>(head_width_)));
  saved.probabilities.drop();
  to_probabilities.drop();
  product(to_scores, false, k, 3 * width_, sample, result.data());
  product(to_scores, true, q, 3 * width_, sample, result.data() + width_);
  saved.qkv.drop();
  return result;
}

inline Tensor Model::layer_backward(const Layer& layer, Saved& saved, Tensor gradient) {
  const int wide = 4 * width_;
  Tensor to_middle;
  {
    Tensor to_active = linear_backward(saved.active, gradient, layer.narrow, layer.narrow_bias, wide, width_);
    Tensor to_wide(device_, saved.wide.count());
    device_.launch(gelu_backward, element_grid(saved.wide.count()), kBlock, saved.wide.data(), to_active.data(),
                   to_wide.data(), saved.wide.size());
    saved.wide.drop();
    to_active.drop();
    Tensor to_norm = linear_backward(saved.norm2.out, to_wide, layer.widen, layer.widen_bias, width_, wide);
    to_wide.drop();
    to_middle = norm_backward(std::move(to_norm), std::move(saved.middle), saved.norm2, layer.gain2, layer.shift2);
  }
  Tensor middle = sum(device_, gradient, to_middle);
  gradient.drop();
  to_middle.drop();
  Tensor to_in;
  {
    Tensor to_attended =
        linear_backward(saved.attended, middle, layer.projection, layer.projection_bias, width_, width_);
    const Tensor to_qkv = attention_backward(saved, std::move(to_attended));
    Tensor to_norm = linear_backward(saved.norm1.out, to_qkv, layer.qkv, layer.qkv_bias, width_, 3 * width_);
    to_in = norm_backward(std::move(to_norm), std::move(saved.in), saved.norm1, layer.gain1, layer.shift1);
  }
  return sum(device_, middle, to_in);
}

inline void Model::backward(Pass pass, const int* tokens, const std::function<void()>& after_tokens) {
  const int* targets = tokens + rows_;
  Tensor to_logits(device_, pass.logits.count());
  device_.launch(cross_entropy_backward, row_grid(rows_), kBlock, pass.logits.data(), targets, pass.log_sums.data(),
                 to_logits.data(), rows_, classes_);
  pass.logits.drop();
  pass.log_sums.drop();
  Tensor to_norm = linear_backward(pass.norm.out, to_logits, head_, nullptr, width_, classes_);
  to_logits.drop();
  Tensor gradient = norm_backward(std::move(to_norm), std::move(pass.last), pass.norm, gain_, shift_);
  device_.free_now();
  for (size_t i = layers_.size(); i-- > 0;) {
    gradient = layer_backward(layers_[i], pass.layers[i], std::move(gradient));
    device_.free_now();
  }
  tokens_->gradient = Tensor(device_, tokens_->weights.count());
  device_.launch(embed_backward_tokens, element_grid(tokens_->weights.count()), kBlock, tokens, gradient.data(),
                 tokens_->gradient.data(), rows_, width_, classes_);
  after_tokens();
  positions_->gradient = Tensor(device_, positions_->weights.count());
  device_.launch(embed_backward_positions, element_grid(positions_->weights.count()), kBlock, gradient.data(),
                 positions_->gradient.data(), rows_, context_, width_);
}

// One launch a parameter.
inline void Model::optimize(float rate, int step) {
  const auto correction = [step](double beta) { return static_cast<float>(1.0 / (1.0 - std::pow(beta, step))); };
  for (auto& parameter : parameters_) {
    const bool matrix = parameter->weights.count() > static_cast<size_t>(4 * width_);
    const AdamWStep settings{rate, matrix ? 0.1f : 0.0f, correction(0.9), correction(0.99)};
    device_.launch(adamw, element_grid(parameter->weights.count()), kBlock, parameter->weights.data(),
                   parameter->gradient.data(), parameter->first_moment.data(), parameter->second_moment.data(),
                   parameter->weights.size(), settings);
    parameter->gradient.drop();
  }
  device_.free_now();
}
