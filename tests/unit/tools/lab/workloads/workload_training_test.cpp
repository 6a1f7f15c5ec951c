// GPT, encoders and convolutional networks in training: sizes and work against published figures, soundness.
#include "tests/unit/tools/lab/workloads/workload_check.h"
#include "tools/lab/graphs/json_graph.h"

namespace reprise::tools::workloads::test {
namespace {

// That of bench/machines/trials.json.
analyzer::Machine trials() {
  analyzer::Machine machine;
  machine.fp16_flops_per_s = 450e12;
  machine.memory_bytes_per_s = 3.5e12;
  machine.launch_ns = 0;
  return machine;
}

constexpr const char* kTrainedNetworks[] = {"resnet152", "inceptionv3", "senet154", "vit", "bert"};

struct Published {
  const char* name;
  uint64_t parameters;
  double gigaflops;  // forward, two for each multiplication and addition of products
};

// Parameters as in the authors' releases or torchvision's and timm's, to the last one; operations as published there.
// Inception v3 without its auxiliary classifier; BERT with a classifier of two classes.
TEST(TrainedNetworks, HaveThePublishedSizes) {
  for (const Published& net : {Published{"resnet152", 60'192'808, 2 * 11.51},
                               {"inceptionv3", 23'834'568, 2 * 5.71},
                               {"senet154", 115'088'984, 2 * 20.74},
                               {"vit", 22'878'952, 2 * 1.12},
                               {"bert", 109'482'240 + 768 * 2 + 2, 22.5}}) {
    const Draft draft = build(net.name, {{"batch", 4}});
    EXPECT_EQ(draft.parameters, net.parameters) << net.name;
    // The backward pass has twice the forward pass's products, but for the first layer's input.
    EXPECT_NEAR(draft.flops / 4 / 3 / 1e9, net.gigaflops, 0.02 * net.gigaflops) << net.name;
  }
}

TEST(TrainedNetworks, AreSound) {
  for (const char* name : kTrainedNetworks) {
    SCOPED_TRACE(name);
    expect_sound(build(name), 0);
  }
}

// Every parameter gets a gradient and an update, once.
TEST(TrainedNetworks, UpdateEveryParameterOnce) {
  for (const char* name : kTrainedNetworks) {
    const Draft draft = build(name, {{"batch", 2}});
    std::vector<int> updates(draft.tensors.size());
    for (const DraftKernel& kernel : draft.kernels) {
      if (kernel.name.starts_with("apply.")) ++updates[kernel.outputs.front()];
    }
    for (size_t i = 0; i < draft.tensors.size(); ++i) {
      EXPECT_EQ(updates[i], draft.tensors[i].name.starts_with("w.") ? 1 : 0) << name << " " << draft.tensors[i].name;
    }
  }
}

TEST(TrainedNetworks, ActivationsGrowWithTheBatchAndWeightsDoNot) {
  const auto graph = [](uint64_t batch) {
    return parse_graph(to_json(build("resnet152", {{"batch", batch}}), "test"), 4096).value();
  };
  const uint64_t one = graph(1).peak_bytes, nine = graph(9).peak_bytes;
  // What 4 bytes for each output of a convolution and its norm's come to: 2 * 4 * 22.6 million numbers and the stem's.
  EXPECT_NEAR(static_cast<double>(nine - one) / 8 / 1e6, 176, 10);
  EXPECT_EQ(persistent_bytes(build("resnet152", {{"batch", 9}})) - persistent_bytes(build("resnet152", {{"batch", 1}})),
            8u * 4);  // the targets
}

// The graphs of planning trials that were made before, kernel for kernel: their counts, peaks and times.
TEST(Gpt, IsThatOfTheTrials) {
  struct Trial {
    uint64_t width, tokens;
    double peak_gib;
    uint64_t compute_ns;
  };
  for (const Trial& trial : {Trial{2048, 16384, 48.10888671875, 366'705'207},
                             {2048, 65536, 141.15576171875, 1'428'614'802},
                             {4096, 16384, 121.5771484375, 1'279'935'209}}) {
    for (const uint64_t early : {0u, 1u}) {
      const Draft draft =
          build("gpt", {{"width", trial.width}, {"tokens", trial.tokens}, {"early-optimizer", early}}, trials());
      EXPECT_EQ(draft.kernels.size(), 828u);
      EXPECT_EQ(draft.tensors.size(), 1069u);
      const analyzer::TaskGraph graph = parse_graph(to_json(draft, "test"), 4096).value();
      EXPECT_EQ(graph.compute_ns, trial.compute_ns);
      EXPECT_EQ(static_cast<double>(graph.peak_bytes) / 0x1p30, trial.peak_gib);
    }
  }
}

TEST(Gpt, IsSoundAndHasThePublishedSize) {
  const Draft draft = build("gpt", {{"layers", 48}, {"width", 1600}});
  // GPT-2 XL without positions, norms and biases, which are not modelled, and with 47 words more.
  const uint64_t left_out = 1024 * 1600 + (48 * 4 + 2) * 1600 + 48 * 9 * 1600;
  EXPECT_EQ(draft.parameters, 1'557'611'200u - left_out + 47 * 1600);
  expect_sound(draft, 0);
  expect_sound(build("gpt", {{"early-optimizer", 1}}), 0);
}

TEST(Gpt, EarlyUpdatesStandBehindTheirGradients) {
  const Draft draft = build("gpt", {{"early-optimizer", 1}, {"layers", 3}});
  for (size_t i = 0; i < draft.kernels.size(); ++i) {
    if (draft.kernels[i].name != "wqkv.1") continue;
    EXPECT_EQ(draft.kernels[i + 1].name, "adam.qkv.1");
  }
  EXPECT_EQ(draft.kernels.back().name, "adam.embedding");
  const Draft late = build("gpt", {{"layers", 3}});
  EXPECT_EQ(late.kernels[late.kernels.size() - 2].name, "adam.down.2");
}

}  // namespace
}  // namespace reprise::tools::workloads::test
