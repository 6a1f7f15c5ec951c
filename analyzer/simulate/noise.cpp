#include "analyzer/simulate/noise.h"

#include <cmath>
#include <numbers>

namespace reprise::analyzer {
namespace {

// The finalizer of SplitMix64: its outputs for consecutive numbers are independent for our purposes.
uint64_t mixed(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// In (0, 1].
double uniform(uint64_t bits) { return static_cast<double>((bits >> 11) + 1) * 0x1p-53; }

}  // namespace

Noise::Noise(const NoiseOptions& options)
    : options_(options), log_sigma_(std::sqrt(std::log1p(options.sigma * options.sigma))) {}

double Noise::factor(uint64_t first, uint64_t second) const {
  const uint64_t bits = mixed(mixed(mixed(options_.seed) ^ first) ^ second);
  const double normal = std::sqrt(-2 * std::log(uniform(bits))) * std::cos(2 * std::numbers::pi * uniform(mixed(bits)));
  return std::exp(log_sigma_ * normal - log_sigma_ * log_sigma_ / 2);
}

uint64_t Noise::length(uint64_t length_ns, uint32_t transfer, uint32_t engine, uint64_t now) const {
  if (none()) return length_ns;
  auto left = static_cast<double>(length_ns);
  if (options_.regime_ns == 0) return static_cast<uint64_t>(std::llround(left * factor(transfer, 0)));
  // Regime by regime, each at its own speed.
  uint64_t at = now;
  while (true) {
    const uint64_t regime = at / options_.regime_ns;
    const double slower = factor(engine, regime + 1);
    const auto room = static_cast<double>((regime + 1) * options_.regime_ns - at);
    if (left * slower <= room) return at - now + static_cast<uint64_t>(std::llround(left * slower));
    left -= room / slower;
    at = (regime + 1) * options_.regime_ns;
  }
}

}  // namespace reprise::analyzer
