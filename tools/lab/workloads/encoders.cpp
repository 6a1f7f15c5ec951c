// BERT base and a small vision transformer, as G10 trains them.
#include <fmt/core.h>

#include "tools/lab/workloads/training.h"

namespace reprise::tools::workloads {
namespace {

struct Encoder {
  TokenTraining& net;
  uint64_t width, heads, ffn;

  Value attend(const std::string& at, const Value& x) const {
    const Value q = net.linear("q" + at, x, width);
    const Value k = net.linear("k" + at, x, width);
    const Value v = net.linear("v" + at, x, width);
    return net.linear("o" + at, net.attention("attention" + at, q, k, v, heads), width);
  }
  Value widen(const std::string& at, const Value& x) const {
    const Value wide = net.activation("gelu" + at, net.linear("up" + at, x, ffn), false);
    return net.linear("down" + at, wide, width);
  }
};

}  // namespace

// Devlin et al.: 12 layers of width 768, norms behind the sums; a classifier with two classes, as for CoLA.
Result<Draft> build_bert(const Settings& settings) {
  TokenTraining net("BERT base training", settings);
  const Encoder encoder{net, 768, 12, 3072};
  Value x = net.embedding("embedding", {30522, 512, 2}, encoder.width, settings["tokens"]);
  x = net.layer_norm("norm", x);
  for (int layer = 0; layer < 12; ++layer) {
    const std::string at = fmt::format(".{}", layer);
    x = net.layer_norm("norm1" + at, net.add("add1" + at, x, encoder.attend(at, x)));
    x = net.layer_norm("norm2" + at, net.add("add2" + at, x, encoder.widen(at, x)));
  }
  x = net.activation("tanh", net.linear("pooler", net.first_token("first_token", x), encoder.width), true);
  return net.finish(net.linear("classifier", x, 2));
}

// Dosovitskiy et al., in the size that G10 takes: patches of 32 x 32, 12 layers of width 384, norms before.
Result<Draft> build_vit(const Settings& settings) {
  TokenTraining net("ViT training", settings);
  const Encoder encoder{net, 384, 6, 1536};
  Value x = net.images(3, 224);
  x = net.convolution("patches", x, {encoder.width, 32, 32, 32, 0, 0, 1, true});
  x = net.with_positions("positions", x, 1);
  for (int layer = 0; layer < 12; ++layer) {
    const std::string at = fmt::format(".{}", layer);
    x = net.add("add1" + at, x, encoder.attend(at, net.layer_norm("norm1" + at, x)));
    x = net.add("add2" + at, x, encoder.widen(at, net.layer_norm("norm2" + at, x)));
  }
  x = net.first_token("first_token", net.layer_norm("norm", x));
  return net.finish(net.linear("classifier", x, 1000));
}

}  // namespace reprise::tools::workloads
