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
  const Work work{2.0 * static_cast<double>(batch_ * window.out * height * width) * static_cast<double>(each)};
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

// Keeps its input, and each channel's mean and deviation.
Value Training::batch_norm(const std::string& name, const Value& x) {
  const Tensor weight = parameter(name, 2 * x.channels);  // scale and shift
  const Tensor running = builder_.state("running." + name, 8 * x.channels);
  const Tensor statistics = builder_.tensor("statistics." + name, 8 * x.channels);
  const Value y = value(builder_.tensor(name, bytes(x)), {x.channels, x.height, x.width});
  names_.back() = name;
  builder_.kernel(name, {x.tensor, weight, running}, {y.tensor, statistics, running});
  later([this, name, x, y, weight, statistics] {
    const Tensor dx = builder_.tensor("d" + name, bytes(x));
    const Tensor change = builder_.tensor("gradient." + name, builder_.bytes(weight));
    builder_.kernel("d" + name, {x.tensor, weight, statistics, gradient(y)}, {dx, change});
    builder_.kernel("apply." + name, {weight, change}, {weight});
    give(x, dx);
  });
  return y;
}

Value Training::relu(const std::string& name, const Value& x) {
  builder_.kernel(name, {x.tensor}, {x.tensor});
  const Value y = value(x.tensor, {x.channels, x.height, x.width});
  names_.back() = name;
  later([this, name, x, y] { give_new("d" + name, x, {y.tensor, gradient(y)}); });
  return y;
}

Value Training::max_pool(const std::string& name, const Value& x, uint64_t size, uint64_t stride, uint64_t pad,
                         bool ceil) {
  const uint64_t height = slid(x.height, size, stride, pad, ceil);
  const Value y = make(name, {x.tensor}, {x.channels, height, slid(x.width, size, stride, pad, ceil)});
  later([this, name, x, y] { give_new("d" + name, x, {x.tensor, y.tensor, gradient(y)}); });
  return y;
}

Value Training::average_pool(const std::string& name, const Value& x) {
  const Value y = make(name, {x.tensor}, {x.channels, x.height, x.width});
  later([this, name, x, y] { give_new("d" + name, x, {gradient(y)}); });
  return y;
}

Value Training::global_average(const std::string& name, const Value& x) {
  const Value y = make(name, {x.tensor}, {x.channels, 1, 1});
  later([this, name, x, y] { give_new("d" + name, x, {gradient(y)}); });
  return y;
}

Value Training::scale(const std::string& name, const Value& x, const Value& gate) {
  const Value y = make(name, {x.tensor, gate.tensor}, {x.channels, x.height, x.width});
  later([this, name, x, gate, y] {
    const Tensor dy = gradient(y);
    give_new("d" + name, x, {dy, gate.tensor});
    give_new("d" + name + "_gate", gate, {dy, x.tensor});
  });
  return y;
}

}  // namespace reprise::tools::workloads
