// Inception v3 without the auxiliary classifier (Szegedy et al., "Rethinking the Inception Architecture"), for images
// of 299 x 299.
#include <fmt/core.h>

#include "tools/lab/workloads/training.h"

namespace reprise::tools::workloads {
namespace {

class Inception {
 public:
  explicit Inception(const Settings& settings) : net_("Inception v3 training", settings) {}

  Draft run() {
    Value x = conv(net_.images(3, 299), {32, 3, 3, 2});
    x = conv(conv(x, {32, 3, 3}), {64, 3, 3, 1, 1, 1});
    x = shrink(x);
    x = shrink(conv(conv(x, {80}), {192, 3, 3}));
    for (const uint64_t pooled : {32u, 64u, 64u}) x = fine(x, pooled);
    x = join({conv(x, {384, 3, 3, 2}), conv(doubled(x), {96, 3, 3, 2}), shrink(x)});
    for (const uint64_t inner : {128u, 160u, 160u, 192u}) x = long_windows(x, inner);
    const Value last = conv(tall(wide(conv(x, {192}), 192), 192), {192, 3, 3, 2});
    x = join({conv(conv(x, {192}), {320, 3, 3, 2}), last, shrink(x)});
    for (int i = 0; i < 2; ++i) x = coarse(x);
    return net_.finish(net_.linear("classifier", net_.global_average("average", x), 1000));
  }

 private:
  std::string next(const char* op) { return fmt::format("{}.{}", op, ++number_); }
  Value conv(const Value& x, const Window& window) {
    const std::string at = std::to_string(++number_);
    return net_.relu("relu." + at, net_.batch_norm("norm." + at, net_.convolution("conv." + at, x, window)));
  }
  Value shrink(const Value& x) { return net_.max_pool(next("pool"), x, 3, 2, 0, false); }
  Value join(const std::vector<Value>& parts) { return net_.concatenate(next("join"), parts); }
  Value pooled(const Value& x, uint64_t out) { return conv(net_.average_pool(next("average"), x), {out}); }
  Value wide(const Value& x, uint64_t out, uint64_t size = 7) { return conv(x, {out, 1, size, 1, 0, size / 2}); }
  Value tall(const Value& x, uint64_t out, uint64_t size = 7) { return conv(x, {out, size, 1, 1, size / 2, 0}); }
  Value doubled(const Value& x) { return conv(conv(x, {64}), {96, 3, 3, 1, 1, 1}); }

  Value fine(const Value& x, uint64_t out) {
    const Value five = conv(conv(x, {48}), {64, 5, 5, 1, 2, 2});
    return join({conv(x, {64}), five, conv(doubled(x), {96, 3, 3, 1, 1, 1}), pooled(x, out)});
  }
  Value long_windows(const Value& x, uint64_t inner) {
    const Value once = tall(wide(conv(x, {inner}), inner), 192);
    const Value twice = wide(tall(wide(tall(conv(x, {inner}), inner), inner), inner), 192);
    return join({conv(x, {192}), once, twice, pooled(x, 192)});
  }
  Value coarse(const Value& x) {
    const Value once = conv(x, {384});
    const Value twice = conv(conv(x, {448}), {384, 3, 3, 1, 1, 1});
    return join({conv(x, {320}), wide(once, 384, 3), tall(once, 384, 3), wide(twice, 384, 3), tall(twice, 384, 3),
                 pooled(x, 192)});
  }

  ImageTraining net_;
  int number_ = 0;
};

}  // namespace

Result<Draft> build_inceptionv3(const Settings& settings) { return Inception(settings).run(); }

}  // namespace reprise::tools::workloads
