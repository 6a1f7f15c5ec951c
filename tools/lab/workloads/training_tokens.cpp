// Layers of encoders.
#include "tools/lab/workloads/training.h"

namespace reprise::tools::workloads {

Value TokenTraining::embedding(const std::string& name, const std::vector<uint64_t>& tables, uint64_t width,
                               uint64_t tokens) {
  const Tensor ids = builder().state("ids", batch() * tokens * 4);
  Tensors inputs = {ids};
  for (size_t i = 0; i < tables.size(); ++i) {
    inputs.push_back(parameter(name + std::to_string(i), tables[i] * width));
  }
  // Only the rows that are looked up are read.
  const double looked_up = static_cast<double>((tables.size() + 1) * batch() * tokens * width * 4);
  const Value y = make(name, inputs, {width, tokens, 1}, {0, 1, looked_up});
  later([this, name, y, inputs] {
    const Tensor dy = gradient(y);
    for (size_t i = 1; i < inputs.size(); ++i) train(name + std::to_string(i - 1), inputs[i], {inputs[0], dy});
  });
  return y;
}

Value TokenTraining::layer_norm(const std::string& name, const Value& x) {
  const Tensor weight = parameter(name, 2 * x.channels);  // scale and shift
  const Value y = make(name, {x.tensor, weight}, {x.channels, x.height, x.width});
  later([this, name, x, y, weight] {
    const Tensor dy = gradient(y);
    give_new("d" + name, x, {x.tensor, weight, dy});
    train(name, weight, {x.tensor, dy});
  });
  return y;
}

// Scores and probabilities are written out, as frameworks without fused attention do.
Value TokenTraining::attention(const std::string& name, const Value& q, const Value& k, const Value& v,
                               uint64_t heads) {
  const uint64_t tokens = q.plane();
  const Work work{2 * rows(q) * static_cast<double>(tokens * q.channels)};
  const Value scores = make(name + "_scores", {q.tensor, k.tensor}, {heads * tokens, tokens, 1}, work);
  const Value weights = make(name + "_softmax", {scores.tensor}, {heads * tokens, tokens, 1});
  const Value y = make(name, {weights.tensor, v.tensor}, {v.channels, v.height, v.width}, work);
  later([this, name, q, k, v, weights, y, work] {
    const Tensor dy = gradient(y);
    give_new("d" + name + "_v", v, {weights.tensor, dy}, work);
    const Tensor dweights = builder().make("d" + name, {v.tensor, dy}, bytes(weights), work);
    const Tensor dscores = builder().make("d" + name + "_softmax", {weights.tensor, dweights}, bytes(weights));
    give_new("d" + name + "_q", q, {dscores, k.tensor}, work);
    give_new("d" + name + "_k", k, {dscores, q.tensor}, work);
  });
  return y;
}

Value TokenTraining::first_token(const std::string& name, const Value& x) {
  const double moved = 2.0 * static_cast<double>(batch() * x.channels * 4);
  const Value y = make(name, {x.tensor}, {x.channels, 1, 1}, {0, 1, moved});
  later([this, name, x, y] { give_new("d" + name, x, {gradient(y)}); });
  return y;
}

// `extra` learned tokens in front, and a learned vector added to every token.
Value TokenTraining::with_positions(const std::string& name, const Value& x, uint64_t extra) {
  const uint64_t tokens = x.plane() + extra;
  const Tensor weight = parameter(name, (tokens + extra) * x.channels);
  const Value y = make(name, {x.tensor, weight}, {x.channels, tokens, 1});
  later([this, name, x, y, weight] {
    const Tensor dy = gradient(y);
    give_new("d" + name, x, {dy});
    train(name, weight, {dy});
  });
  return y;
}

}  // namespace reprise::tools::workloads
