#include "tools/lab/workloads/training.h"

namespace reprise::tools::workloads {

Training::Training(const std::string& model, const Settings& settings)
    : builder_(model, settings.machine, Precision::fp32), batch_(settings["batch"]) {}

Value Training::value(const std::string& name, Tensor tensor, const Shape& shape) {
  gradients_.emplace_back();
  wanted_.push_back(true);
  names_.push_back(name);
  return {tensor, shape.channels, shape.height, shape.width, gradients_.size() - 1};
}

Value Training::make(const std::string& name, const Tensors& inputs, const Shape& shape, const Work& work) {
  const uint64_t size = batch_ * shape.channels * shape.height * shape.width * 4;
  return value(name, builder_.make(name, inputs, size, work), shape);
}

Value Training::images(uint64_t channels, uint64_t size) {
  const Value result = make("load", {}, {channels, size, size});
  wanted_[result.node] = false;
  return result;
}

Tensor Training::gradient(const Value& value) {
  const Tensors& parts = gradients_[value.node];
  if (parts.size() == 1) return parts.front();
  const Tensor sum = builder_.make("sum_gradients." + names_[value.node], parts, bytes(value));
  gradients_[value.node] = {sum};
  return sum;
}

void Training::give_new(const std::string& name, const Value& x, const Tensors& inputs, const Work& work) {
  if (!wanted_[x.node]) return;
  give(x, builder_.make(name, inputs, bytes(x), work));
}

void Training::train(const std::string& name, Tensor weight, const Tensors& inputs, const Work& work) {
  const Tensor change = builder_.make("gradient." + name, inputs, builder_.bytes(weight), work);
  builder_.kernel("apply." + name, {weight, change}, {weight});
}

Value Training::add(const std::string& name, const Value& a, const Value& b) {
  const Value y = make(name, {a.tensor, b.tensor}, {a.channels, a.height, a.width});
  later([this, a, b, y] {
    const Tensor dy = gradient(y);
    give(a, dy);
    give(b, dy);
  });
  return y;
}

Value Training::linear(const std::string& name, const Value& x, uint64_t out) {
  const Tensor weight = parameter(name, x.channels * out);
  const Tensor bias = parameter(name + "_bias", out);
  const Work work{2 * rows(x) * static_cast<double>(x.channels * out)};
  const Value y = make(name, {x.tensor, weight, bias}, {out, x.height, x.width}, work);
  later([this, name, x, y, weight, bias, work] {
    const Tensor dy = gradient(y);
    train(name + "_bias", bias, {dy});
    give_new("d" + name, x, {dy, weight}, work);
    train(name, weight, {x.tensor, dy}, work);
  });
  return y;
}

Value Training::activation(const std::string& name, const Value& x, bool from_output) {
  const Value y = make(name, {x.tensor}, {x.channels, x.height, x.width});
  later([this, name, x, y, from_output] { give_new("d" + name, x, {from_output ? y.tensor : x.tensor, gradient(y)}); });
  return y;
}

Draft Training::finish(const Value& logits) {
  const Tensor targets = builder_.state("targets", batch_ * 4);
  give(logits, builder_.make("loss", {logits.tensor, targets}, bytes(logits)));
  for (auto step = tape_.rbegin(); step != tape_.rend(); ++step) (*step)();
  Draft draft = builder_.take();
  draft.batch = batch_;
  return draft;
}

}  // namespace reprise::tools::workloads
