// Layers of convolutional networks.
#include "tools/lab/workloads/training.h"

namespace reprise::tools::workloads {
namespace {

uint64_t slid(uint64_t size, uint64_t window, uint64_t stride, uint64_t pad, bool ceil = false) {
  return (size + 2 * pad - window + (ceil ? stride - 1 : 0)) / stride + 1;
}

}  // namespace

Value Training::convolution(const std::string& name, const Value& x, const Window& window) {
  const uint64_t each = x.channels / window.groups * window.height * window.width;  // numbers that make one
  const Tensor weight = parameter(name, each * window.out);
  const uint64_t height = slid(x.height, window.height, window.stride, window.pad_height);
  const uint64_t width = slid(x.width, window.width, window.stride, window.pad_width);
  const Work work{2.0 * static_cast<double>(batch() * window.out * height * width) * static_cast<double>(each)};
  Tensors inputs = {x.tensor, weight};
  if (window.bias) inputs.push_back(parameter(name + "_bias", window.out));
  const Value y = make(name, inputs, {window.out, height, width}, work);
  later([this, name, x, y, inputs, work] {
    const Tensor dy = gradient(y);
    if (inputs.size() > 2) train(name + "_bias", inputs[2], {dy});
    give_new("d" + name, x, {dy, inputs[1]}, work);
    train(name, inputs[1], {x.tensor, dy}, work);
  });
  return y;
}

Value ImageTraining::concatenate(const std::string& name, const std::vector<Value>& parts) {
  Tensors inputs;
  uint64_t channels = 0;
  for (const Value& part : parts) {
    inputs.push_back(part.tensor);
    channels += part.channels;
  }
  const Value y = make(name, inputs, {channels, parts.front().height, parts.front().width});
  later([this, name, parts, y] {
    Tensors outputs;
    const Tensor dy = gradient(y);
    for (const Value& part : parts) {
      outputs.push_back(builder().tensor("d" + name, bytes(part)));
      give(part, outputs.back());
    }
    builder().kernel("d" + name, {dy}, outputs);
  });
  return y;
}

// Keeps its input, and each channel's mean and deviation.
Value ImageTraining::batch_norm(const std::string& name, const Value& x) {
  const Tensor weight = parameter(name, 2 * x.channels);  // scale and shift
  const Tensor running = builder().state("running." + name, 8 * x.channels);
  const Tensor statistics = builder().tensor("statistics." + name, 8 * x.channels);
  const Value y = value(name, builder().tensor(name, bytes(x)), {x.channels, x.height, x.width});
  builder().kernel(name, {x.tensor, weight, running}, {y.tensor, statistics, running});
  later([this, name, x, y, weight, statistics] {
    const Tensor dx = builder().tensor("d" + name, bytes(x));
    const Tensor change = builder().tensor("gradient." + name, builder().bytes(weight));
    builder().kernel("d" + name, {x.tensor, weight, statistics, gradient(y)}, {dx, change});
    builder().kernel("apply." + name, {weight, change}, {weight});
    give(x, dx);
  });
  return y;
}

Value ImageTraining::relu(const std::string& name, const Value& x) {
  builder().kernel(name, {x.tensor}, {x.tensor});
  const Value y = value(name, x.tensor, {x.channels, x.height, x.width});
  later([this, name, x, y] { give_new("d" + name, x, {y.tensor, gradient(y)}); });
  return y;
}

Value ImageTraining::max_pool(const std::string& name, const Value& x, uint64_t size, uint64_t stride, uint64_t pad,
                              bool ceil) {
  const uint64_t height = slid(x.height, size, stride, pad, ceil);
  const Value y = make(name, {x.tensor}, {x.channels, height, slid(x.width, size, stride, pad, ceil)});
  later([this, name, x, y] { give_new("d" + name, x, {x.tensor, y.tensor, gradient(y)}); });
  return y;
}

Value ImageTraining::average_pool(const std::string& name, const Value& x) {
  const Value y = make(name, {x.tensor}, {x.channels, x.height, x.width});
  later([this, name, x, y] { give_new("d" + name, x, {gradient(y)}); });
  return y;
}

Value ImageTraining::global_average(const std::string& name, const Value& x) {
  const Value y = make(name, {x.tensor}, {x.channels, 1, 1});
  later([this, name, x, y] { give_new("d" + name, x, {gradient(y)}); });
  return y;
}

Value ImageTraining::scale(const std::string& name, const Value& x, const Value& gate) {
  const Value y = make(name, {x.tensor, gate.tensor}, {x.channels, x.height, x.width});
  later([this, name, x, gate, y] {
    const Tensor dy = gradient(y);
    give_new("d" + name, x, {dy, gate.tensor});
    give_new("d" + name + "_gate", gate, {dy, x.tensor});
  });
  return y;
}

}  // namespace reprise::tools::workloads
