// A GPT in training as a plain PyTorch loop runs it: automatic mixed precision (parameters and Adam's moments in fp32,
// products in bf16), fused attention, one Adam kernel for each parameter. Forward, loss, backward, updates.
#include <fmt/core.h>

#include <functional>

#include "tools/lab/workloads/registry.h"

namespace reprise::tools::workloads {
namespace {

constexpr uint64_t kVocabulary = 50304;    // GPT-2's 50257, rounded up to a multiple of 128
constexpr double kAttentionForward = 0.7;  // of the peak, as fused attention reaches
constexpr double kAttentionBackward = 0.6;

struct Trained {
  Tensor values = 0, first = 0, second = 0;
  Tensor cast = 0;
  Tensor gradient = 0;
  uint64_t in = 0, out = 0;
  std::string name;
};

struct Block {
  Trained qkv, out, up, down;
  Tensor input = 0;
  Tensor h1 = 0, projected = 0, attended = 0, mask1 = 0;
  Tensor x1 = 0, h2 = 0, widened = 0, activated = 0, mask2 = 0;
};

class Gpt {
 public:
  explicit Gpt(const Settings& settings)
      : builder_("GPT training", settings.machine, Precision::fp16),
        width_(settings["width"]),
        rows_(settings["tokens"]),
        sequence_(std::min<uint64_t>(settings["sequence"], rows_)),
        early_(settings["early-optimizer"] != 0),
        blocks_(settings["layers"]) {
    for (size_t i = 0; i < blocks_.size(); ++i) {
      blocks_[i].qkv = parameter(fmt::format("qkv.{}", i), width_, 3 * width_);
      blocks_[i].out = parameter(fmt::format("out.{}", i), width_, width_);
      blocks_[i].up = parameter(fmt::format("up.{}", i), width_, 4 * width_);
      blocks_[i].down = parameter(fmt::format("down.{}", i), 4 * width_, width_);
    }
    embedding_ = parameter("embedding", width_, kVocabulary);
  }

  Draft run() {
    const uint64_t row = row_bytes(1);
    // Of the fp32 table only the rows that are looked up are read.
    Tensor x = builder_.make("embed", {embedding_.values}, row, {0, 1, 3.0 * static_cast<double>(row)});
    for (size_t i = 0; i < blocks_.size(); ++i) x = forward(i, x);
    Tensor dx = loss(x);
    for (size_t i = blocks_.size(); i-- > 0;) dx = backward(i, dx);
    const double looked_up = 4.0 * static_cast<double>(row);
    builder_.kernel("dembed", {dx, embedding_.gradient}, {embedding_.gradient}, {0, 1, looked_up});
    if (!early_) {
      for (const Block& block : blocks_) {
        for (const Trained* p : {&block.qkv, &block.out, &block.up, &block.down}) adam(*p);
      }
    }
    adam(embedding_);
    Draft draft = builder_.take();
    draft.batch = rows_ / sequence_;
    return draft;
  }

 private:
  uint64_t row_bytes(uint64_t widths) const { return rows_ * widths * width_ * 2; }
  uint64_t mask_bytes() const { return rows_ * width_ / 2; }
  double products(const Trained& p) const {
    return 2.0 * static_cast<double>(rows_) * static_cast<double>(p.in) * static_cast<double>(p.out);
  }
  double attention() const {  // two products of the sequence's square, half of it masked
    return 2.0 * static_cast<double>(rows_) * static_cast<double>(sequence_) * static_cast<double>(width_);
  }

  Trained parameter(const std::string& name, uint64_t in, uint64_t out) {
    Trained p;
    p.name = name;
    p.in = in;
    p.out = out;
    p.values = builder_.weight("p." + name, in * out, false, 4);
    p.first = builder_.state("m." + name, in * out * 4);
    p.second = builder_.state("v." + name, in * out * 4);
    return p;
  }

  void cast(Trained& p) { p.cast = builder_.make("cast." + p.name, {p.values}, p.in * p.out * 2); }
  Tensor product(Trained& p, Tensor x) {
    cast(p);
    return builder_.make(p.name, {x, p.cast}, rows_ * p.out * 2, {products(p)});
  }
  Tensor input_gradient(const Trained& p, Tensor dy) {
    return builder_.make("d" + p.name, {dy, p.cast}, rows_ * p.in * 2, {products(p)});
  }
  void weight_gradient(Trained& p, Tensor x, Tensor dy) {
    p.gradient = builder_.make("w" + p.name, {x, dy}, p.in * p.out * 4, {products(p)});
    if (early_ && p.name != embedding_.name) adam(p);  // the embedding's is not complete yet
  }
  void adam(const Trained& p) {
    builder_.kernel("adam." + p.name, {p.values, p.first, p.second, p.gradient}, {p.values, p.first, p.second});
  }

  Tensor forward(size_t number, Tensor x) {
    Block& b = blocks_[number];
    const auto name = [&](const char* op) { return fmt::format("{}.{}", op, number); };
    b.input = x;
    b.h1 = builder_.make(name("norm1"), {x}, row_bytes(1));
    b.projected = product(b.qkv, b.h1);
    b.attended = builder_.make(name("attention"), {b.projected}, row_bytes(1), {attention(), kAttentionForward});
    const Tensor out = product(b.out, b.attended);
    b.x1 = dropout_add(name("add1"), x, out, b.mask1);
    b.h2 = builder_.make(name("norm2"), {b.x1}, row_bytes(1));
    b.widened = product(b.up, b.h2);
    b.activated = builder_.make(name("gelu"), {b.widened}, row_bytes(4));
    const Tensor y = product(b.down, b.activated);
    return dropout_add(name("add2"), b.x1, y, b.mask2);
  }

  // x + dropout(y); keeps which numbers were dropped.
  Tensor dropout_add(const std::string& name, Tensor x, Tensor y, Tensor& mask) {
    const Tensor sum = builder_.tensor(name, row_bytes(1));
    mask = builder_.tensor("mask." + name, mask_bytes());
    builder_.kernel(name, {x, y}, {sum, mask});
    return sum;
  }

  Tensor loss(Tensor x) {
    const Tensor h = builder_.make("norm", {x}, row_bytes(1));
    Tensor gradient = product(embedding_, h);
    const uint64_t logits = builder_.bytes(gradient);
    gradient = builder_.make("log_softmax", {gradient}, 2 * logits);  // in fp32
    gradient = builder_.make("dlog_softmax", {gradient}, 2 * logits);
    gradient = builder_.make("cast.dlogits", {gradient}, logits);
    const Tensor dh = input_gradient(embedding_, gradient);
    weight_gradient(embedding_, gradient, h);
    return builder_.make("dnorm", {x, dh}, row_bytes(1));
  }

  Tensor backward(size_t number, Tensor dx) {
    Block& b = blocks_[number];
    const auto make = [&](const char* op, const Tensors& inputs, uint64_t widths, const Work& work = {}) {
      return builder_.make(fmt::format("{}.{}", op, number), inputs, row_bytes(widths), work);
    };
    const Tensor dy = make("ddropout2", {dx, b.mask2}, 1);
    const Tensor dactivated = input_gradient(b.down, dy);
    weight_gradient(b.down, b.activated, dy);
    const Tensor dwidened = make("dgelu", {b.widened, dactivated}, 4);
    const Tensor dh2 = input_gradient(b.up, dwidened);
    weight_gradient(b.up, b.h2, dwidened);
    const Tensor through2 = make("dnorm2", {b.x1, dh2}, 1);
    const Tensor dx1 = make("dadd2", {dx, through2}, 1);
    const Tensor dout = make("ddropout1", {dx1, b.mask1}, 1);
    const Tensor dattended = input_gradient(b.out, dout);
    weight_gradient(b.out, b.attended, dout);
    const Work five = {2.5 * attention(), kAttentionBackward};  // five products instead of two
    const Tensor dprojected = make("dattention", {b.projected, b.attended, dattended}, 3, five);
    const Tensor dh1 = input_gradient(b.qkv, dprojected);
    weight_gradient(b.qkv, b.h1, dprojected);
    const Tensor through1 = make("dnorm1", {b.input, dh1}, 1);
    return make("dadd1", {dx1, through1}, 1);
  }

  Builder builder_;
  uint64_t width_;
  uint64_t rows_;
  uint64_t sequence_;
  bool early_;
  std::vector<Block> blocks_;
  Trained embedding_;
};

}  // namespace

Result<Draft> build_gpt(const Settings& settings) { return Gpt(settings).run(); }

}  // namespace reprise::tools::workloads
