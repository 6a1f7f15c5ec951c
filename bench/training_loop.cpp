#include "bench/training_loop.h"

#include <fmt/format.h>

#include <initializer_list>
#include <iterator>

namespace reprise::bench {
namespace {

constexpr uint32_t kKernelsPerLayer = 14;
constexpr uint64_t kMiB = uint64_t{1} << 20;

class Loop {
 public:
  explicit Loop(uint32_t layers) : layers_(layers) {}

  std::string text() {
    forward();
    backward();
    optimizer();
    return fmt::format("{{\"model\": \"training loop of {} layers\", \"tensors\": [{}], \"kernels\": [{}]}}", layers_,
                       fmt::to_string(tensors_), fmt::to_string(kernels_));
  }

 private:
  // Tensors of a layer by their place; ids are layer * kParts + place.
  enum Part : uint32_t {
    w1,
    w2,
    scale,
    state1,
    state2,  // persistent
    input,
    normed,
    hidden,
    active,
    output,
    statistics,  // from forward to backward
    grad_output,
    grad_active,
    grad_hidden,
    grad_normed,  // backward
    grad_w1,
    grad_w2,
    kParts
  };

  uint32_t tensor(uint32_t layer, Part part) { return layer * kParts + part; }

  void declare(uint32_t layer) {
    static constexpr uint64_t kBytes[kParts] = {2 * kMiB, 2 * kMiB, 4096,     4 * kMiB, 4 * kMiB, 2 * kMiB,
                                                2 * kMiB, 4 * kMiB, 4 * kMiB, 2 * kMiB, 16384,    2 * kMiB,
                                                4 * kMiB, 4 * kMiB, 2 * kMiB, 2 * kMiB, 2 * kMiB};
    for (uint32_t part = 0; part < kParts; ++part) {
      fmt::format_to(std::back_inserter(tensors_), "{}{{\"id\": {}, \"bytes\": {}, \"persistent\": {}}}",
                     tensors_.size() == 0 ? "" : ",\n", layer * kParts + part, kBytes[part], part <= state2 ? 1 : 0);
    }
  }

  void kernel(const char* name, uint32_t microseconds, std::initializer_list<uint32_t> in,
              std::initializer_list<uint32_t> out) {
    fmt::format_to(std::back_inserter(kernels_),
                   "{}{{\"id\": {}, \"name\": \"{}\", \"duration_ns\": {}, \"inputs\": [{}], \"outputs\": [{}]}}",
                   count_ == 0 ? "" : ",\n", count_, name, microseconds * 1000, fmt::join(in, ", "),
                   fmt::join(out, ", "));
    ++count_;
  }

  void forward() {
    for (uint32_t l = 0; l < layers_; ++l) {
      declare(l);
      const auto t = [&](Part part) { return tensor(l, part); };
      const uint32_t x = l == 0 ? t(input) : tensor(l - 1, output);
      kernel("norm", 20, {x, t(scale)}, {t(normed), t(statistics)});
      kernel("matmul_1", 180, {t(normed), t(w1)}, {t(hidden)});
      kernel("activation", 30, {t(hidden)}, {t(active)});
      kernel("matmul_2", 180, {t(active), t(w2)}, {t(output)});
      kernel("residual", 15, {x, t(output)}, {t(output)});
    }
  }

  void backward() {
    for (uint32_t l = layers_; l-- > 0;) {
      const auto t = [&](Part part) { return tensor(l, part); };
      const uint32_t x = l == 0 ? t(input) : tensor(l - 1, output);
      const uint32_t grad_x = l == 0 ? t(grad_normed) : tensor(l - 1, grad_output);
      kernel("grad_w2", 180, {t(grad_output), t(active)}, {t(grad_w2)});
      kernel("grad_active", 180, {t(grad_output), t(w2)}, {t(grad_active)});
      kernel("grad_hidden", 30, {t(grad_active), t(hidden)}, {t(grad_hidden)});
      kernel("grad_w1", 180, {t(grad_hidden), t(normed)}, {t(grad_w1)});
      kernel("grad_normed", 180, {t(grad_hidden), t(w1)}, {t(grad_normed)});
      kernel("grad_norm", 25, {t(grad_normed), x, t(statistics), t(scale)}, {grad_x});
      kernel("grad_residual", 15, {t(grad_output), grad_x}, {grad_x});
    }
  }

  void optimizer() {
    for (uint32_t l = 0; l < layers_; ++l) {
      const auto t = [&](Part part) { return tensor(l, part); };
      kernel("adam_1", 25, {t(grad_w1), t(w1), t(state1)}, {t(w1), t(state1)});
      kernel("adam_2", 25, {t(grad_w2), t(w2), t(state2)}, {t(w2), t(state2)});
    }
  }

  uint32_t layers_;
  uint32_t count_ = 0;
  fmt::memory_buffer tensors_;
  fmt::memory_buffer kernels_;
};

}  // namespace

std::string training_loop_json(uint32_t kernels) {
  return Loop(std::max(1u, (kernels + kKernelsPerLayer - 1) / kKernelsPerLayer)).text();
}

}  // namespace reprise::bench
