// LLaMA prefill and LoRA: sizes against the published models, work against what follows from them, soundness.
#include "tests/unit/tools/lab/workloads/workload_check.h"
#include "tools/lab/graphs/json_graph.h"

namespace reprise::tools::workloads::test {
namespace {

TEST(LlamaPrefill, HasThePublishedModelsParameters) {
  const Draft small = build("llama-prefill");
  EXPECT_EQ(small.parameters, 6'738'415'616u);  // of the released 7B checkpoint
  const Draft large = build("llama-prefill", {{"size", 65}});
  EXPECT_EQ(large.parameters, 65'285'660'672u);  // of the released 65B checkpoint
  // Two bytes each, and the token ids.
  EXPECT_EQ(persistent_bytes(small), 2 * small.parameters + 4096 * 4);
}

TEST(LlamaPrefill, DoesTwoOperationsForEachParameterAndToken) {
  const Draft draft = build("llama-prefill", {{"tokens", 2048}});
  const double embeddings = 2 * 32000.0 * 4096;
  const double products = 2 * (6'738'415'616.0 - embeddings) * 2048 + 32000 * 4096 * 2;
  const double attention = 32 * 2.0 * 2048 * 2048 * 4096;
  EXPECT_NEAR(draft.flops, products + attention, 0.001 * draft.flops);
}

TEST(LlamaPrefill, TimesFollowTheRoofline) {
  analyzer::Machine machine;
  machine.fp16_flops_per_s = 1e15;
  machine.memory_bytes_per_s = 1e12;
  machine.launch_ns = 1000;
  const Draft draft = build("llama-prefill", {{"tokens", 8192}}, machine);
  // 2 * 8192 * 4096 * 11008 operations at 1e15 a second, against 0.3 GB
  EXPECT_EQ(kernel_named(draft, "gate.3").duration_ns, 738'734u + 1000);
  // 8192 x 4096 numbers of two bytes read and written, and a scale.
  EXPECT_EQ(kernel_named(draft, "norm1.3").duration_ns, 134'226u + 1000);
}

TEST(LlamaPrefill, IsSoundOnAnyNumberOfDevices) {
  for (const uint64_t devices : {1u, 2u, 4u, 8u}) {
    for (const uint64_t plain : {0u, 1u}) {
      const Draft draft = build("llama-prefill", {{"devices", devices}, {"plain-attention", plain}, {"tokens", 512}});
      expect_sound(draft, 1);  // the first token
      EXPECT_EQ(draft.devices, devices);
      EXPECT_EQ(draft.parameters, 6'738'415'616u);
    }
  }
}

TEST(LlamaPrefill, TensorParallelismSplitsTheWorkAndMovesTheActivations) {
  const uint64_t tokens = 1024;
  const Draft one = build("llama-prefill", {{"tokens", tokens}});
  const Draft four = build("llama-prefill", {{"tokens", tokens}, {"devices", 4}});
  EXPECT_NEAR(four.flops, one.flops, 1e-6 * one.flops);
  // Two all-reduces for each layer, each 2 (n - 1) times a device's activations; the embedding once, the logits.
  const uint64_t activations = tokens * 4096 * 2;
  EXPECT_EQ(peer_bytes(four), activations * (32 * 2 * 2 * 3 + 3) + 3 * 8000 * 2);
  EXPECT_EQ(peer_bytes(one), 0u);
}

TEST(LlamaPrefill, PlainAttentionWritesItsScoresOut) {
  const Draft draft = build("llama-prefill", {{"tokens", 2048}, {"plain-attention", 1}, {"batch", 2}});
  const DraftKernel& scores = kernel_named(draft, "attention.31_scores_h31");
  EXPECT_EQ(draft.tensors[scores.outputs.front()].bytes, 2u * 2048 * 2048 * 2);
}

TEST(LlamaLora, TrainsOnlyTheAdapters) {
  const Draft draft = build("llama-lora");
  EXPECT_EQ(draft.parameters, 6'738'415'616u);
  // Rank 16 beside q, k, v (4096 x 4096) and gate, up, down (4096 x 11008), with two moments each, all in fp32.
  const uint64_t adapters = 32 * 16 * (3 * (4096 + 4096) + 3 * (4096 + 11008));
  EXPECT_EQ(persistent_bytes(draft), 4 * (draft.parameters + 3 * adapters) + 2 * 8 * 1024 * 4);
  for (const DraftKernel& kernel : draft.kernels) {
    for (const Tensor output : kernel.outputs) {
      const DraftTensor& tensor = draft.tensors[output];
      if (!tensor.persistent) continue;
      EXPECT_TRUE(tensor.name.starts_with("a_") || tensor.name.starts_with("b_") || tensor.name.starts_with("adam_"))
          << kernel.name << " writes " << tensor.name;
    }
  }
}

TEST(LlamaLora, IsSoundOnAnyNumberOfDevices) {
  for (const uint64_t devices : {1u, 2u, 8u}) {
    for (const uint64_t plain : {0u, 1u}) {
      const Draft draft =
          build("llama-lora", {{"devices", devices}, {"plain-attention", plain}, {"tokens", 64}, {"batch", 2}});
      expect_sound(draft, 0);
    }
  }
}

// Forward, forward again without the last projection, and backward without gradients of frozen weights.
TEST(LlamaLora, WorksThreeTimesAsMuchAsAForwardPass) {
  const Draft draft = build("llama-lora", {{"batch", 1}, {"tokens", 256}});
  const double layers = 2.0 * 256 * 32 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 11008);
  EXPECT_NEAR(draft.flops / layers, 3 - 1 / 6.0, 0.12);
  const Draft four = build("llama-lora", {{"batch", 1}, {"tokens", 256}, {"devices", 4}});
  EXPECT_NEAR(four.flops, draft.flops, 0.01 * draft.flops);
}

// Of the forward pass, only the inputs of the layers are read by the backward pass.
TEST(LlamaLora, KeepsOnlyTheInputsOfLayers) {
  const Draft draft = build("llama-lora", {{"tokens", 128}});
  size_t place = 0;
  for (size_t i = 0; i < draft.kernels.size(); ++i) {
    if (draft.kernels[i].name == "dlogits") place = i;
  }
  ASSERT_GT(place, 0u);
  std::vector<bool> before(draft.tensors.size());
  for (size_t i = 0; i < place; ++i) {
    for (const Tensor output : draft.kernels[i].outputs) before[output] = true;
  }
  std::vector<bool> kept(draft.tensors.size());
  for (size_t i = place + 1; i < draft.kernels.size(); ++i) {
    for (const Tensor input : draft.kernels[i].inputs) kept[input] = before[input];
  }
  EXPECT_EQ(std::count(kept.begin(), kept.end(), true), 32 + 1);  // and the last layer's output, for the final norm
}

TEST(Workloads, WhatTheyWriteIsReadAgain) {
  for (const Row& row : all_workloads()) {
    const Draft draft = build(row.name);
    const Result<analyzer::TaskGraph> graph = parse_graph(to_json(draft, "a \"test\""), kGraphChunk);
    ASSERT_TRUE(graph.ok()) << row.name << ": " << graph.status().message();
    EXPECT_EQ(graph.value().op_count, draft.kernels.size());
    EXPECT_EQ(graph.value().program, draft.model);
    uint64_t time = 0;
    for (const DraftKernel& kernel : draft.kernels) time += kernel.duration_ns;
    EXPECT_EQ(graph.value().compute_ns, time);
  }
}

}  // namespace
}  // namespace reprise::tools::workloads::test
