// A network in training, in fp32 with plain SGD, as G10's graphs have it: each layer adds its forward kernels now and
// its backward kernels later, in reverse, every gradient being applied right behind its kernel. Called by the families
// of convolutional networks and encoders.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tools/lab/workloads/registry.h"

namespace reprise::tools::workloads {

// What a layer makes: for each sample `channels` planes of height x width. For tokens: their width, their number, 1.
struct Value {
  Tensor tensor = 0;
  uint64_t channels = 0, height = 1, width = 1;
  size_t node = 0;
  uint64_t plane() const { return height * width; }
};

struct Window {
  uint64_t out = 0;  // channels
  uint64_t height = 1, width = 1, stride = 1, pad_height = 0, pad_width = 0, groups = 1;
  bool bias = false;
};

// What all networks have: values, gradients, updates, and the layers that both kinds of networks use.
class Training {
 public:
  Training(const std::string& model, const Settings& settings);

  Value images(uint64_t channels, uint64_t size);
  Value convolution(const std::string& name, const Value& x, const Window& window);
  Value linear(const std::string& name, const Value& x, uint64_t out);
  Value add(const std::string& name, const Value& a, const Value& b);
  // Element by element; its gradient is made from what it made (tanh, sigmoid) or from what it read (GELU).
  Value activation(const std::string& name, const Value& x, bool from_output);

  // Loss, backward pass and updates.
  Draft finish(const Value& logits);

 protected:
  struct Shape {
    uint64_t channels, height, width;
  };
  uint64_t batch() const { return batch_; }
  Builder& builder() { return builder_; }
  uint64_t bytes(const Value& value) const { return batch_ * value.channels * value.plane() * 4; }
  double rows(const Value& value) const { return static_cast<double>(batch_ * value.plane()); }
  Value value(const std::string& name, Tensor tensor, const Shape& shape);
  Value make(const std::string& name, const Tensors& inputs, const Shape& shape, const Work& work = {});
  // Called in the backward pass: the sum of what users contributed.
  Tensor gradient(const Value& value);
  void give(const Value& value, Tensor gradient) { gradients_[value.node].push_back(gradient); }
  // dx = what kernel "d<name>" makes of `inputs`.
  void give_new(const std::string& name, const Value& x, const Tensors& inputs, const Work& work = {});
  void later(std::function<void()> backward) { tape_.push_back(std::move(backward)); }
  // Gradient and update of a parameter.
  void train(const std::string& name, Tensor weight, const Tensors& inputs, const Work& work = {});
  Tensor parameter(const std::string& name, uint64_t count) { return builder_.weight("w." + name, count); }

 private:
  Builder builder_;
  uint64_t batch_;
  std::vector<Tensors> gradients_;  // by node
  std::vector<std::string> names_;
  std::vector<bool> wanted_;  // by node: its gradient is needed
  std::vector<std::function<void()>> tape_;
};

class ImageTraining : public Training {
 public:
  using Training::Training;

  Value batch_norm(const std::string& name, const Value& x);
  Value relu(const std::string& name, const Value& x);  // in place
  Value max_pool(const std::string& name, const Value& x, uint64_t size, uint64_t stride, uint64_t pad, bool ceil);
  Value average_pool(const std::string& name, const Value& x);    // 3 x 3, same size
  Value global_average(const std::string& name, const Value& x);  // one number for each channel
  Value concatenate(const std::string& name, const std::vector<Value>& parts);
  Value scale(const std::string& name, const Value& x, const Value& gate);  // each channel by its gate
};

class TokenTraining : public Training {
 public:
  using Training::Training;

  Value embedding(const std::string& name, const std::vector<uint64_t>& tables, uint64_t width, uint64_t tokens);
  Value layer_norm(const std::string& name, const Value& x);
  Value attention(const std::string& name, const Value& q, const Value& k, const Value& v, uint64_t heads);
  // Another view of the same kernels' work: the first token, patches as tokens, tokens with one more in front.
  Value first_token(const std::string& name, const Value& x);
  Value with_positions(const std::string& name, const Value& x, uint64_t extra);
};

}  // namespace reprise::tools::workloads
