#include "tools/lab/workloads/registry.h"

namespace reprise::tools::workloads {
namespace {

constexpr Parameter kSize = {"size", "Parameters in billions: 7 or 65", 7, 7, 65};
constexpr Parameter kDevices = {"devices", "Devices, tensor-parallel: 1, 2, 4 or 8", 1, 1, 8};
constexpr Parameter kPlain = {"plain-attention", "Attention that writes out its scores, head by head", 0, 0, 1};

constexpr Parameter batch(uint64_t preset) { return {"batch", "Samples in a batch", preset, 1, 1 << 20}; }
constexpr Parameter tokens(uint64_t preset, uint64_t most = 1 << 20) {
  return {"tokens", "Tokens in a sequence", preset, 1, most};
}

}  // namespace

const std::vector<Row>& all_workloads() {
  static const std::vector<Row> rows = {
      {"llama-prefill",
       "LLaMA up to its first token, fp16",
       {kSize, batch(1), tokens(4096), kDevices, kPlain},
       build_llama_prefill},
      {"llama-lora",
       "LoRA of rank 16 on LLaMA's K, V, Q and FFN, fp32, activation checkpointing",
       {kSize, batch(8), tokens(1024), kDevices, kPlain},
       build_llama_lora},
      {"gpt",
       "GPT training with Adam, mixed precision (fp32 parameters, bf16 products)",
       {{"layers", "Layers", 24, 1, 1024},
        {"width", "Width of the model", 2048, 128, 65536},
        {"tokens", "Tokens in a batch", 16384, 1, 1 << 24},
        {"sequence", "Tokens in a sequence", 2048, 1, 1 << 20},
        {"early-optimizer", "Each parameter's update right behind its gradient", 0, 0, 1}},
       build_gpt},
      {"bert", "BERT base training, fp32, SGD", {batch(256), tokens(128, 512)}, build_bert},
      {"vit", "ViT training (width 384, patches of 32 x 32), fp32, SGD", {batch(1280)}, build_vit},
      {"resnet152", "ResNet152 training, fp32, SGD", {batch(1280)}, build_resnet152},
      {"inceptionv3", "Inception v3 training, fp32, SGD", {batch(1536)}, build_inceptionv3},
      {"senet154", "SENet154 training, fp32, SGD", {batch(1024)}, build_senet154},
  };
  return rows;
}

const Row* find_workload(const std::string& name) {
  for (const Row& row : all_workloads()) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

Settings presets(const Row& row, const analyzer::Machine& machine) {
  Settings settings;
  settings.machine = machine;
  for (const Parameter& parameter : row.parameters) settings.values[parameter.name] = parameter.preset;
  return settings;
}

}  // namespace reprise::tools::workloads
