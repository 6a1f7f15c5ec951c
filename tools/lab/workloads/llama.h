// LLaMA's layers on one or more devices, split as Megatron does: the projections into attention and the FFN by columns,
// those out of them by rows, with a sum over all devices behind. Called by the prefill and LoRA workloads.
#pragma once
#include <string>
#include <vector>

#include "preload/trace/status.h"
#include "tools/lab/workloads/collectives.h"
#include "tools/lab/workloads/registry.h"

namespace reprise::tools::workloads {

struct LlamaShape {
  uint64_t billions, width, heads, layers, ffn, vocabulary;
};

struct LlamaRun {
  LlamaShape shape = {};
  uint64_t batch = 1;
  uint64_t tokens = 1;  // of each sequence
  uint32_t devices = 1;
  bool plain_attention = false;
  uint64_t rank = 0;  // of LoRA adapters; 0: none

  uint64_t rows() const { return batch * tokens; }
  uint64_t split(uint64_t whole) const { return whole / devices; }
  uint64_t own_heads() const { return split(shape.heads); }
  uint64_t head_width() const { return shape.width / shape.heads; }
};
Result<LlamaRun> llama_run(const Settings& settings, uint64_t rank);

// One device's part of a projection.
struct Linear {
  Tensor weight = 0;
  uint64_t in = 0;
  uint64_t out = 0;
  bool adapted = false;
  bool by_rows = false;  // of two adapter matrices, this device has part of A and all of B; else the other way round
  Tensor a = 0;
  Tensor b = 0;
};

struct LlamaLayer {
  Tensor norm1 = 0, norm2 = 0;
  Linear q, k, v, o, gate, up, down;
};

// What the forward pass of a layer leaves on one device: only tensors that are read later.
struct LlamaActivations {
  Tensor h1 = 0, q = 0, k = 0, v = 0;                                              // q and k with their positions
  Tensor q_low = 0, k_low = 0, v_low = 0, gate_low = 0, up_low = 0, down_low = 0;  // x A of the adapters
  Tensors probabilities;                                                           // of each head, where written out
  Tensors attended;
  Tensor x1 = 0, h2 = 0, gate = 0, up = 0, product = 0;
};

class Llama {
 public:
  Llama(Builder& builder, const LlamaRun& run);

  // The embedded tokens, a copy on each device.
  Tensors embed();
  // One layer; `x`, the activations and the result are by device. `suffix` is part of the kernels' names. Without
  // `whole` it ends before the last projection: what a backward pass needs.
  Tensors forward(uint64_t layer, const Tensors& x, std::vector<LlamaActivations>& left, const std::string& suffix = "",
                  bool whole = true);
  Tensor normalised(const std::string& name, uint32_t device, Tensor x);

  const LlamaLayer& layer(uint64_t layer, uint32_t device) const { return layers_[layer][device]; }
  Tensor head(uint32_t device) const { return heads_[device]; }
  Tensor final_norm(uint32_t device) const { return final_norms_[device]; }
  uint64_t row_bytes(uint64_t width) const { return run_.rows() * width * builder_.element(); }
  static double matrix(uint64_t rows, uint64_t in, uint64_t out);  // operations of a product

 private:
  LlamaLayer make_layer(const std::string& number, bool first);
  Linear linear(const std::string& name, uint64_t in, uint64_t out, bool adapted, bool by_rows);
  Tensors project(const std::string& name, const Linear& linear, const Tensors& x, uint64_t pieces, Tensor* low);
  void attend(const std::string& name, LlamaActivations& left);
  void attend_plainly(const std::string& name, LlamaActivations& left);
  // x + the sum of all devices' parts.
  Tensors add(const std::string& name, const Tensors& x, const Spread& partial);

  Builder& builder_;
  LlamaRun run_;
  std::vector<std::vector<LlamaLayer>> layers_;  // layer, device
  Tensors embeddings_, heads_, final_norms_, ids_;
};

}  // namespace reprise::tools::workloads
