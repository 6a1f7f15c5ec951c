#include "tools/lab/workloads/llama.h"

#include <fmt/core.h>

#include <array>

namespace reprise::tools::workloads {
namespace {

// Touvron et al., "LLaMA: Open and Efficient Foundation Language Models", table 2; the FFN's width is 2/3 of four times
// the model's, rounded up to a multiple of 256.
constexpr std::array<LlamaShape, 2> kShapes = {{{7, 4096, 32, 32, 11008, 32000}, {65, 8192, 64, 80, 22016, 32000}}};

}  // namespace

Result<LlamaRun> llama_run(const Settings& settings, uint64_t rank) {
  LlamaRun run;
  for (const LlamaShape& shape : kShapes) {
    if (shape.billions == settings["size"]) run.shape = shape;
  }
  if (run.shape.billions == 0) return Status(StatusCode::invalid_argument, "--size: 7 or 65 (billions of parameters)");
  run.batch = settings["batch"];
  run.tokens = settings["tokens"];
  run.devices = static_cast<uint32_t>(settings["devices"]);
  if ((run.devices & (run.devices - 1)) != 0) {
    return Status(StatusCode::invalid_argument, "--devices: 1, 2, 4 or 8, so that heads and columns can be split");
  }
  if (run.tokens < run.devices) return Status(StatusCode::invalid_argument, "--tokens: at least one for each device");
  run.plain_attention = settings["plain-attention"] != 0;
  run.rank = rank;
  return run;
}

double Llama::matrix(uint64_t rows, uint64_t in, uint64_t out) {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
}

Llama::Llama(Builder& builder, const LlamaRun& run) : builder_(builder), run_(run) {
  const LlamaShape& shape = run.shape;
  layers_.resize(shape.layers);
  for (uint32_t device = 0; device < run.devices; ++device) {
    builder.on(device);
    const bool copy = device > 0;
    ids_.push_back(builder.state("ids", run.rows() * 4));
    embeddings_.push_back(builder.weight("embedding", shape.vocabulary * run.split(shape.width)));
    for (uint64_t layer = 0; layer < shape.layers; ++layer) {
      layers_[layer].push_back(make_layer(std::to_string(layer), !copy));
    }
    final_norms_.push_back(builder.weight("norm", shape.width, copy));
    heads_.push_back(builder.weight("head", shape.width * run.split(shape.vocabulary)));
  }
}

LlamaLayer Llama::make_layer(const std::string& number, bool first) {
  const uint64_t width = run_.shape.width;
  const uint64_t part = run_.split(width);
  const uint64_t ffn = run_.split(run_.shape.ffn);
  LlamaLayer layer;
  layer.norm1 = builder_.weight("norm1." + number, width, !first);
  layer.norm2 = builder_.weight("norm2." + number, width, !first);
  layer.q = linear("q." + number, width, part, true, false);
  layer.k = linear("k." + number, width, part, true, false);
  layer.v = linear("v." + number, width, part, true, false);
  layer.o = linear("o." + number, part, width, false, true);
  layer.gate = linear("gate." + number, width, ffn, true, false);
  layer.up = linear("up." + number, width, ffn, true, false);
  layer.down = linear("down." + number, ffn, width, true, true);
  return layer;
}

Linear Llama::linear(const std::string& name, uint64_t in, uint64_t out, bool adapted, bool by_rows) {
  Linear linear{builder_.weight("w_" + name, in * out), in, out, adapted && run_.rank > 0, by_rows, 0, 0};
  if (!linear.adapted) return linear;
  linear.a = builder_.state("a_" + name, in * run_.rank * builder_.element());
  linear.b = builder_.state("b_" + name, run_.rank * out * builder_.element());
  return linear;
}

Tensors Llama::embed() {
  Tensors own;
  for (uint32_t device = 0; device < run_.devices; ++device) {
    builder_.on(device);
    const uint64_t bytes = row_bytes(run_.split(run_.shape.width));
    // Only the rows that are looked up are read.
    const double moved = 2.0 * static_cast<double>(bytes);
    own.push_back(builder_.make("embed", {ids_[device], embeddings_[device]}, bytes, {0, 1, moved}));
  }
  if (run_.devices == 1) return own;
  const Spread pieces = all_gather(builder_, own);
  Tensors x;
  for (uint32_t device = 0; device < run_.devices; ++device) {
    builder_.on(device);
    x.push_back(builder_.make("concatenate", pieces[device], row_bytes(run_.shape.width)));
  }
  return x;
}

Tensor Llama::normalised(const std::string& name, uint32_t device, Tensor x) {
  builder_.on(device);
  return builder_.make(name, {x, final_norms_[device]}, builder_.bytes(x));
}

// y = x W, with an adapter y + (x A) B, in `pieces` tensors of equal size.
Tensors Llama::project(const std::string& name, const Linear& linear, const Tensors& x, uint64_t pieces, Tensor* low) {
  const auto outputs = [&](const std::string& of) {
    Tensors result;
    for (uint64_t i = 0; i < pieces; ++i) {
      const std::string number = pieces == 1 ? of : fmt::format("{}#{}", of, i);
      result.push_back(builder_.tensor(number, row_bytes(linear.out) / pieces));
    }
    return result;
  };
  Tensors inputs = x;
  inputs.push_back(linear.weight);
  Tensors base = outputs(name);
  builder_.kernel(name, inputs, base, {matrix(run_.rows(), linear.in, linear.out)});
  if (!linear.adapted) return base;
  inputs.back() = linear.a;
  const Work down{matrix(run_.rows(), linear.in, run_.rank)};
  *low = builder_.make(name + "_low", inputs, row_bytes(run_.rank), down);
  base.push_back(*low);
  base.push_back(linear.b);
  Tensors sum = outputs(name + "_sum");
  builder_.kernel(name + "_sum", base, sum, {matrix(run_.rows(), run_.rank, linear.out)});
  return sum;
}

Tensors Llama::forward(uint64_t layer, const Tensors& x, std::vector<LlamaActivations>& left, const std::string& suffix,
                       bool whole) {
  const auto name = [&](const char* op) { return fmt::format("{}{}.{}", op, suffix, layer); };
  left.assign(run_.devices, {});
  Spread partial(run_.devices);
  for (uint32_t device = 0; device < run_.devices; ++device) {
    builder_.on(device);
    const LlamaLayer& at = layers_[layer][device];
    LlamaActivations& a = left[device];
    a.h1 = builder_.make(name("norm1"), {x[device], at.norm1}, builder_.bytes(x[device]));
    const Tensor q = project(name("q"), at.q, {a.h1}, 1, &a.q_low).front();
    const Tensor k = project(name("k"), at.k, {a.h1}, 1, &a.k_low).front();
    a.v = project(name("v"), at.v, {a.h1}, 1, &a.v_low).front();
    a.q = builder_.make(name("rotate_q"), {q}, builder_.bytes(q));
    a.k = builder_.make(name("rotate_k"), {k}, builder_.bytes(k));
    attend(name("attention"), a);
    partial[device] = project(name("o"), at.o, a.attended, run_.devices, nullptr);
  }
  const Tensors x1 = add(name("attention_add"), x, all_reduce(builder_, name("attention_sum"), partial));
  for (uint32_t device = 0; device < run_.devices; ++device) {
    builder_.on(device);
    const LlamaLayer& at = layers_[layer][device];
    LlamaActivations& a = left[device];
    a.x1 = x1[device];
    a.h2 = builder_.make(name("norm2"), {a.x1, at.norm2}, builder_.bytes(a.x1));
    a.gate = project(name("gate"), at.gate, {a.h2}, 1, &a.gate_low).front();
    a.up = project(name("up"), at.up, {a.h2}, 1, &a.up_low).front();
    a.product = builder_.make(name("silu"), {a.gate, a.up}, builder_.bytes(a.gate));
    if (whole) {
      partial[device] = project(name("down"), at.down, {a.product}, run_.devices, &a.down_low);
    } else {
      a.down_low = builder_.make(name("down_low"), {a.product, at.down.a}, row_bytes(run_.rank),
                                 {matrix(run_.rows(), at.down.in, run_.rank)});
    }
  }
  if (!whole) return {};
  return add(name("ffn_add"), x1, all_reduce(builder_, name("ffn_sum"), partial));
}

void Llama::attend(const std::string& name, LlamaActivations& left) {
  if (run_.plain_attention) return attend_plainly(name, left);
  // Two products of tokens x tokens for each head, of which the causal mask leaves half.
  const uint64_t part = run_.split(run_.shape.width);
  const Work work{matrix(run_.rows(), run_.tokens, part)};
  left.attended = {builder_.make(name, {left.q, left.k, left.v}, row_bytes(part), work)};
}

void Llama::attend_plainly(const std::string& name, LlamaActivations& left) {
  const uint64_t square = run_.rows() * run_.tokens * builder_.element();
  const uint64_t slice = row_bytes(run_.head_width());
  const double work = matrix(run_.rows(), run_.tokens, run_.head_width());
  const auto moved = [&](uint64_t slices) { return static_cast<double>(square + slices * slice); };
  for (uint64_t head = 0; head < run_.own_heads(); ++head) {
    const auto of = [&](const char* op) { return fmt::format("{}_{}_h{}", name, op, head); };
    const Tensor scores = builder_.make(of("scores"), {left.q, left.k}, square, {work, 1, moved(2)});
    left.probabilities.push_back(builder_.make(of("softmax"), {scores}, square));
    const Tensors inputs = {left.probabilities.back(), left.v};
    left.attended.push_back(builder_.make(of("values"), inputs, slice, {work, 1, moved(2)}));
  }
}

Tensors Llama::add(const std::string& name, const Tensors& x, const Spread& parts) {
  Tensors result;
  for (uint32_t device = 0; device < run_.devices; ++device) {
    builder_.on(device);
    Tensors inputs = parts[device];
    inputs.push_back(x[device]);
    result.push_back(builder_.make(name, inputs, builder_.bytes(x[device])));
  }
  return result;
}

}  // namespace reprise::tools::workloads
