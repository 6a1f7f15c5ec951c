// ResNet152 and SENet154: bottlenecks with a way around them.
#include <fmt/core.h>

#include <array>

#include "tools/lab/workloads/training.h"

namespace reprise::tools::workloads {
namespace {

constexpr std::array<uint64_t, 4> kResNetBlocks = {3, 8, 36, 3};  // of both

struct Normalised {
  ImageTraining& net;
  Value operator()(const std::string& name, const Value& x, const Window& window, bool relu = true) const {
    const Value y = net.batch_norm("norm." + name, net.convolution("conv." + name, x, window));
    return relu ? net.relu("relu." + name, y) : y;
  }
};

Window square(uint64_t out, uint64_t size, uint64_t stride = 1, uint64_t groups = 1) {
  return {out, size, size, stride, size / 2, size / 2, groups, false};
}

// Squeeze and excitation: every channel by a gate made of all channels' averages.
Value excite(ImageTraining& net, const std::string& at, const Value& x, uint64_t reduction) {
  Value gate = net.global_average("squeeze" + at, x);
  gate = net.relu("relu_squeeze" + at, net.linear("reduce" + at, gate, x.channels / reduction));
  gate = net.activation("sigmoid" + at, net.linear("expand" + at, gate, x.channels), true);
  return net.scale("excite" + at, x, gate);
}

}  // namespace

// He et al., with the stride in the 3 x 3 convolution, as in today's libraries.
Result<Draft> build_resnet152(const Settings& settings) {
  ImageTraining net("ResNet152 training", settings);
  const Normalised conv{net};
  Value x = conv("stem", net.images(3, 224), square(64, 7, 2));
  x = net.max_pool("pool", x, 3, 2, 1, false);
  for (size_t stage = 0; stage < kResNetBlocks.size(); ++stage) {
    const uint64_t width = uint64_t{64} << stage;
    for (uint64_t block = 0; block < kResNetBlocks[stage]; ++block) {
      const std::string at = fmt::format("{}.{}", stage, block);
      const uint64_t stride = stage > 0 && block == 0 ? 2 : 1;
      Value y = conv("a" + at, x, square(width, 1));
      y = conv("b" + at, y, square(width, 3, stride));
      y = conv("c" + at, y, square(4 * width, 1), false);
      const Value around = block == 0 ? conv("around" + at, x, square(4 * width, 1, stride), false) : x;
      x = net.relu("relu." + at, net.add("add." + at, y, around));
    }
  }
  return net.finish(net.linear("classifier", net.global_average("average", x), 1000));
}

// Hu et al.: ResNeXt's 64 groups with squeeze and excitation, three small convolutions as the stem.
Result<Draft> build_senet154(const Settings& settings) {
  ImageTraining net("SENet154 training", settings);
  const Normalised conv{net};
  Value x = conv("stem1", net.images(3, 224), square(64, 3, 2));
  x = conv("stem3", conv("stem2", x, square(64, 3)), square(128, 3));
  x = net.max_pool("pool", x, 3, 2, 0, true);
  for (size_t stage = 0; stage < kResNetBlocks.size(); ++stage) {
    const uint64_t width = uint64_t{64} << stage;
    for (uint64_t block = 0; block < kResNetBlocks[stage]; ++block) {
      const std::string at = fmt::format("{}.{}", stage, block);
      const uint64_t stride = stage > 0 && block == 0 ? 2 : 1;
      Value y = conv("a" + at, x, square(2 * width, 1));
      y = conv("b" + at, y, square(4 * width, 3, stride, 64));
      y = conv("c" + at, y, square(4 * width, 1), false);
      y = excite(net, "." + at, y, 16);
      const uint64_t size = stage == 0 ? 1 : 3;
      const Value around = block == 0 ? conv("around" + at, x, square(4 * width, size, stride), false) : x;
      x = net.relu("relu." + at, net.add("add." + at, y, around));
    }
  }
  return net.finish(net.linear("classifier", net.global_average("average", x), 1000));
}

}  // namespace reprise::tools::workloads
