#include "tools/lab/workloads/llama_backward.h"

#include <fmt/core.h>

namespace reprise::tools::workloads {
namespace {

std::vector<const Linear*> adapted(const LlamaLayer& layer) {
  return {&layer.q, &layer.k, &layer.v, &layer.gate, &layer.up, &layer.down};
}

}  // namespace

LlamaBackward::LlamaBackward(Builder& builder, Llama& model, const LlamaRun& run)
    : builder_(builder), model_(model), run_(run) {
  moments_.resize(run.shape.layers);
  for (uint64_t layer = 0; layer < run.shape.layers; ++layer) {
    for (uint32_t device = 0; device < run.devices; ++device) {
      builder.on(device);
      uint64_t bytes = 0;
      for (const Linear* linear : adapted(model.layer(layer, device))) {
        bytes += builder.bytes(linear->a) + builder.bytes(linear->b);
      }
      moments_[layer].push_back({builder.state(fmt::format("adam_m.{}", layer), bytes),
                                 builder.state(fmt::format("adam_v.{}", layer), bytes)});
    }
  }
}

std::string LlamaBackward::of(const char* op) const { return fmt::format("{}.{}", op, layer_); }

Tensors LlamaBackward::through(uint64_t layer, const Tensors& x, const Tensors& dy) {
  layer_ = layer;
  std::vector<LlamaActivations> left;
  model_.forward(layer, x, left, "_again", false);
  std::vector<Gradients> gradients(run_.devices);
  Spread partial(run_.devices);
  for (uint32_t d = 0; d < run_.devices; ++d) {
    builder_.on(d);
    const LlamaLayer& at = model_.layer(layer, d);
    const LlamaActivations& a = left[d];
    const Tensor dlow = adapter("down", at.down, {a.product}, a.down_low, {dy[d]}, gradients[d]);
    const Tensor dproduct = input("down", at.down, {dy[d]}, dlow, {}, 1).front();
    const Tensor dgate = builder_.tensor(of("dgate"), builder_.bytes(a.gate));
    const Tensor dup = builder_.tensor(of("dup"), builder_.bytes(a.up));
    builder_.kernel(of("dsilu"), {a.gate, a.up, dproduct}, {dgate, dup});
    const Tensor gate_low = adapter("gate", at.gate, {a.h2}, a.gate_low, {dgate}, gradients[d]);
    const Tensor up_low = adapter("up", at.up, {a.h2}, a.up_low, {dup}, gradients[d]);
    const Tensors sum = input("gate", at.gate, {dgate}, gate_low, {}, 1);
    partial[d] = input("up", at.up, {dup}, up_low, sum, run_.devices);
  }
  const Spread dh2 = all_reduce(builder_, of("dffn_sum"), partial);
  Tensors dx1;
  for (uint32_t d = 0; d < run_.devices; ++d) {
    builder_.on(d);
    const LlamaLayer& at = model_.layer(layer, d);
    const LlamaActivations& a = left[d];
    Tensors inputs = dh2[d];
    inputs.insert(inputs.end(), {a.x1, at.norm2, dy[d]});
    dx1.push_back(norm(of("dnorm2"), inputs, a.x1));
    const Tensor dattended = input("o", at.o, {dx1[d]}, 0, {}, 1).front();
    const AttentionGradients attended = attention(of("dattention"), a, dattended);
    const Tensor dq = builder_.make(of("drotate_q"), attended.q, builder_.bytes(a.q));
    const Tensor dk = builder_.make(of("drotate_k"), attended.k, builder_.bytes(a.k));
    const Tensor q_low = adapter("q", at.q, {a.h1}, a.q_low, {dq}, gradients[d]);
    const Tensor k_low = adapter("k", at.k, {a.h1}, a.k_low, {dk}, gradients[d]);
    const Tensor v_low = adapter("v", at.v, {a.h1}, a.v_low, attended.v, gradients[d]);
    if (layer == 0) continue;
    Tensors sum = input("q", at.q, {dq}, q_low, {}, 1);
    sum = input("k", at.k, {dk}, k_low, sum, 1);
    partial[d] = input("v", at.v, attended.v, v_low, sum, run_.devices);
  }
  Tensors dx;
  const Spread dh1 = layer == 0 ? Spread() : all_reduce(builder_, of("dattention_sum"), partial);
  for (uint32_t d = 0; d < dh1.size(); ++d) {
    builder_.on(d);
    Tensors inputs = dh1[d];
    inputs.insert(inputs.end(), {x[d], model_.layer(layer, d).norm1, dx1[d]});
    dx.push_back(norm(of("dnorm1"), inputs, x[d]));
  }
  update(layer, gradients);
  return dx;
}

Tensor LlamaBackward::norm(const std::string& name, const Tensors& inputs, Tensor like) {
  return builder_.make(name, inputs, builder_.bytes(like));
}

Tensor LlamaBackward::adapter(const std::string& name, const Linear& linear, const Tensors& x, Tensor low,
                              const Tensors& dy, Gradients& gradients) {
  const auto named = [&](const char* op) { return fmt::format("{}_{}.{}", op, name, layer_); };
  Tensors inputs = dy;
  inputs.push_back(low);
  const Work wide{Llama::matrix(run_.rows(), run_.rank, linear.out)};
  const Tensor gradient_b = builder_.make(named("grad_b"), inputs, builder_.bytes(linear.b), wide);
  inputs.back() = linear.b;
  const Tensor dlow = builder_.make(named("dlow"), inputs, model_.row_bytes(run_.rank), wide);
  inputs = x;
  inputs.push_back(dlow);
  const Work narrow{Llama::matrix(run_.rows(), run_.rank, linear.in)};
  const Tensor gradient_a = builder_.make(named("grad_a"), inputs, builder_.bytes(linear.a), narrow);
  gradients.own.push_back(linear.by_rows ? gradient_a : gradient_b);
  gradients.shared.push_back(linear.by_rows ? gradient_b : gradient_a);
  return dlow;
}

Tensors LlamaBackward::input(const std::string& name, const Linear& linear, const Tensors& dy, Tensor dlow,
                             const Tensors& sum, uint64_t pieces) {
  Tensors inputs = dy;
  inputs.push_back(linear.weight);
  inputs.insert(inputs.end(), sum.begin(), sum.end());
  const Work work{Llama::matrix(run_.rows(), linear.in, linear.out)};
  const uint64_t bytes = model_.row_bytes(linear.in);
  const Tensor base = builder_.make(fmt::format("dx_{}.{}", name, layer_), inputs, bytes, work);
  if (!linear.adapted) return {base};
  Tensors outputs;
  const std::string low = fmt::format("dx_{}_low.{}", name, layer_);
  for (uint64_t i = 0; i < pieces; ++i) {
    outputs.push_back(builder_.tensor(pieces == 1 ? low : fmt::format("{}#{}", low, i), bytes / pieces));
  }
  builder_.kernel(low, {base, dlow, linear.a}, outputs, {Llama::matrix(run_.rows(), linear.in, run_.rank)});
  return outputs;
}

LlamaBackward::AttentionGradients LlamaBackward::attention(const std::string& name, const LlamaActivations& a,
                                                           Tensor dattended) {
  if (run_.plain_attention) return plain_attention(name, a, dattended);
  const uint64_t part = run_.split(run_.shape.width);
  const Tensor dq = builder_.tensor(of("dq"), builder_.bytes(a.q));
  const Tensor dk = builder_.tensor(of("dk"), builder_.bytes(a.k));
  const Tensor dv = builder_.tensor(of("dv"), builder_.bytes(a.v));
  // Five products of tokens x tokens instead of the forward pass's two.
  builder_.kernel(name, {a.q, a.k, a.v, a.attended.front(), dattended}, {dq, dk, dv},
                  {2.5 * Llama::matrix(run_.rows(), run_.tokens, part)});
  return {{dq}, {dk}, {dv}};
}

LlamaBackward::AttentionGradients LlamaBackward::plain_attention(const std::string& name, const LlamaActivations& a,
                                                                 Tensor dattended) {
  const uint64_t square = run_.rows() * run_.tokens * builder_.element();
  const uint64_t slice = model_.row_bytes(run_.head_width());
  const double flops = Llama::matrix(run_.rows(), run_.tokens, run_.head_width());
  const Work product{flops, 1, static_cast<double>(square + 2 * slice)};
  AttentionGradients result;
  for (uint64_t head = 0; head < run_.own_heads(); ++head) {
    const auto named = [&](const char* op) { return fmt::format("{}_{}_h{}", name, op, head); };
    const Tensor probability = a.probabilities[head];
    result.v.push_back(builder_.make(named("dv"), {probability, dattended}, slice, product));
    const Tensor dprobability = builder_.make(named("dsoftmax"), {dattended, a.v}, square, product);
    const Tensor dscores = builder_.make(named("dscores"), {probability, dprobability}, square);
    result.q.push_back(builder_.make(named("dq"), {dscores, a.k}, slice, product));
    result.k.push_back(builder_.make(named("dk"), {dscores, a.q}, slice, product));
  }
  return result;
}

// Gradients of matrices that every device has travel together, one bucket for each layer.
void LlamaBackward::update(uint64_t layer, const std::vector<Gradients>& gradients) {
  Spread shared;
  for (uint32_t d = 0; d < run_.devices; ++d) {
    if (run_.devices == 1) {
      shared.push_back(gradients[d].shared);
      continue;
    }
    builder_.on(d);
    uint64_t bytes = 0;
    for (const Tensor gradient : gradients[d].shared) bytes += builder_.bytes(gradient);
    Tensors bucket;
    for (uint32_t i = 0; i < run_.devices; ++i) {
      bucket.push_back(builder_.tensor(fmt::format("bucket.{}#{}", layer, i), bytes / run_.devices));
    }
    builder_.kernel(of("bucket"), gradients[d].shared, bucket);
    shared.push_back(bucket);
  }
  shared = all_reduce(builder_, of("bucket_sum"), shared);
  for (uint32_t d = 0; d < run_.devices; ++d) {
    builder_.on(d);
    Tensors updated = moments_[layer][d];
    for (const Linear* linear : adapted(model_.layer(layer, d))) updated.insert(updated.end(), {linear->a, linear->b});
    Tensors inputs = updated;
    inputs.insert(inputs.end(), gradients[d].own.begin(), gradients[d].own.end());
    inputs.insert(inputs.end(), shared[d].begin(), shared[d].end());
    builder_.kernel(of("adam"), inputs, updated);
  }
}

}  // namespace reprise::tools::workloads
