// LLaMA up to the first token: weights, activations and logits of the last position. Keys and values are not kept for
// later tokens, for the graph ends there.
#include <fmt/core.h>

#include "tools/lab/workloads/llama.h"

namespace reprise::tools::workloads {

Result<Draft> build_llama_prefill(const Settings& settings) {
  const Result<LlamaRun> checked = llama_run(settings, 0);
  if (!checked.ok()) return checked.status();
  const LlamaRun& run = checked.value();
  Builder builder(fmt::format("LLaMA {}B prefill", run.shape.billions), settings.machine, Precision::fp16, run.devices);
  Llama model(builder, run);
  Tensors x = model.embed();
  std::vector<LlamaActivations> left;
  for (uint64_t layer = 0; layer < run.shape.layers; ++layer) x = model.forward(layer, x, left);
  Tensors logits;
  for (uint32_t device = 0; device < run.devices; ++device) {
    // Only the last position of each sequence goes on.
    builder.on(device);
    const uint64_t bytes = run.batch * run.shape.width * builder.element();
    const double moved = 2.0 * static_cast<double>(bytes);
    const Tensor last = builder.make("last_norm", {x[device], model.final_norm(device)}, bytes, {0, 1, moved});
    const uint64_t part = run.split(run.shape.vocabulary);
    const Work work{Llama::matrix(run.batch, run.shape.width, part)};
    logits.push_back(builder.make("head", {last, model.head(device)}, run.batch * part * builder.element(), work));
  }
  for (Tensor& piece : logits) piece = builder.move(piece, 0);
  builder.on(0);
  builder.make("first_token", logits, run.batch * 4);
  Draft draft = builder.take();
  draft.batch = run.batch;
  return draft;
}

}  // namespace reprise::tools::workloads
