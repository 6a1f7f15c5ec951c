// The backward pass through LLaMA's layers for LoRA adapters: layer by layer from the last one, each run forward again
// from its input first, its adapters updated right behind. Called by the LoRA workload.
#pragma once
#include "tools/lab/workloads/llama.h"

namespace reprise::tools::workloads {

class LlamaBackward {
 public:
  LlamaBackward(Builder& builder, Llama& model, const LlamaRun& run);

  // `x`: the layer's input, `dy`: the gradient of its output, by device. Returns the gradient of its input, which is
  // not made for the first layer: no kernel reads it.
  Tensors through(uint64_t layer, const Tensors& x, const Tensors& dy);
  // The gradient of an RMS norm's input, plus what goes around it.
  Tensor norm(const std::string& name, const Tensors& inputs, Tensor like);

 private:
  struct Gradients {  // of one layer's adapters on one device
    Tensors own;      // complete
    Tensors shared;   // a part: the sum over all devices is the gradient
  };

  // The adapter's own gradients; returns that of x A.
  Tensor adapter(const std::string& name, const Linear& linear, const Tensors& x, Tensor low, const Tensors& dy,
                 Gradients& gradients);
  // dy W^T + dlow A^T + sum, in `pieces` tensors.
  Tensors input(const std::string& name, const Linear& linear, const Tensors& dy, Tensor dlow, const Tensors& sum,
                uint64_t pieces);
  struct AttentionGradients {
    Tensors q, k, v;
  };
  AttentionGradients attention(const std::string& name, const LlamaActivations& a, Tensor dattended);
  AttentionGradients plain_attention(const std::string& name, const LlamaActivations& a, Tensor dattended);
  void update(uint64_t layer, const std::vector<Gradients>& gradients);
  std::string of(const char* op) const;

  Builder& builder_;
  Llama& model_;
  LlamaRun run_;
  uint64_t layer_ = 0;
  std::vector<std::vector<Tensors>> moments_;  // of Adam: layer, device
};

}  // namespace reprise::tools::workloads
