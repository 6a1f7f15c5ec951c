// LoRA on LLaMA: the model is frozen, adapters of rank 16 beside K, V, Q and the three matrices of the FFN are trained
// with Adam. Of the forward pass only the layers' inputs are kept; each layer runs forward again before its backward
// pass.
#include <fmt/core.h>

#include "tools/lab/workloads/llama_backward.h"

namespace reprise::tools::workloads {
namespace {

constexpr uint64_t kRank = 16;

// Logits, loss and the gradient of the last layer's output. The vocabulary is split: each row's maximum and sum, and
// its loss, are put together from all devices.
Tensors loss(Builder& builder, Llama& model, LlamaBackward& backward, const LlamaRun& run, const Tensors& x) {
  const uint64_t part = run.split(run.shape.vocabulary);
  const Work product{Llama::matrix(run.rows(), run.shape.width, part)};
  Tensors logits;
  Tensors targets;
  Tensors own;
  for (uint32_t d = 0; d < run.devices; ++d) {
    const Tensor h = model.normalised("norm", d, x[d]);
    targets.push_back(builder.state("targets", run.rows() * 4));
    logits.push_back(builder.make("head", {h, model.head(d)}, model.row_bytes(part), product));
    own.push_back(builder.make("softmax_sums", {logits[d], targets[d]}, run.rows() * 12));
  }
  const Spread sums = all_gather(builder, own);
  Spread partial(run.devices);
  for (uint32_t d = 0; d < run.devices; ++d) {
    builder.on(d);
    Tensors inputs = sums[d];
    inputs.insert(inputs.end(), {logits[d], targets[d]});
    const Tensor dlogits = builder.make("dlogits", inputs, builder.bytes(logits[d]));
    for (uint32_t i = 0; i < run.devices; ++i) {
      partial[d].push_back(builder.tensor(fmt::format("dx_head#{}", i), builder.bytes(x[d]) / run.devices));
    }
    builder.kernel("dx_head", {dlogits, model.head(d)}, partial[d], product);
  }
  const Spread dh = all_reduce(builder, "dhead_sum", partial);
  Tensors dx;
  for (uint32_t d = 0; d < run.devices; ++d) {
    builder.on(d);
    Tensors inputs = dh[d];
    inputs.insert(inputs.end(), {x[d], model.final_norm(d)});
    dx.push_back(backward.norm("dnorm", inputs, x[d]));
  }
  return dx;
}

}  // namespace

Result<Draft> build_llama_lora(const Settings& settings) {
  const Result<LlamaRun> checked = llama_run(settings, kRank);
  if (!checked.ok()) return checked.status();
  const LlamaRun& run = checked.value();
  Builder builder(fmt::format("LLaMA {}B LoRA", run.shape.billions), settings.machine, Precision::fp32, run.devices);
  Llama model(builder, run);
  LlamaBackward backward(builder, model, run);
  std::vector<Tensors> inputs = {model.embed()};
  std::vector<LlamaActivations> left;
  for (uint64_t layer = 0; layer < run.shape.layers; ++layer) {
    inputs.push_back(model.forward(layer, inputs.back(), left));
  }
  Tensors dx = loss(builder, model, backward, run, inputs.back());
  for (uint64_t layer = run.shape.layers; layer-- > 0;) dx = backward.through(layer, inputs[layer], dx);
  Draft draft = builder.take();
  draft.batch = run.batch;
  return draft;
}

}  // namespace reprise::tools::workloads
