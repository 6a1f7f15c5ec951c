// How much longer or shorter a transfer takes than the machine's figures say, drawn from the seed alone: the same
// transfer of the same iteration meets the same noise under every order of dispatch, so that orders compare fairly.
// Used by simulate.cpp only.
#pragma once
#include <cstdint>

namespace reprise::analyzer {

struct NoiseOptions {
  double sigma = 0;        // relative standard deviation of a transfer's time, whose mean stays; 0: none
  uint64_t regime_ns = 0;  // 0: each transfer on its own; else all on one engine, in regimes of this length
  uint64_t seed = 0;
};

class Noise {
 public:
  explicit Noise(const NoiseOptions& options);
  bool none() const { return options_.sigma == 0; }
  // The length of a transfer that begins at `now`. `transfer` and `engine` name it.
  uint64_t length(uint64_t length_ns, uint32_t transfer, uint32_t engine, uint64_t now) const;

 private:
  // Log-normal, mean 1.
  double factor(uint64_t first, uint64_t second) const;

  NoiseOptions options_;
  double log_sigma_;
};

}  // namespace reprise::analyzer
