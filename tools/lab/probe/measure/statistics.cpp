#include "tools/lab/probe/measure/statistics.h"

#include <algorithm>
#include <cmath>

namespace reprise::probe {

std::optional<double> quantile(std::vector<double> samples, double fraction) {
  if (samples.empty() || !(fraction >= 0 && fraction <= 1)) return std::nullopt;
  for (const double sample : samples) {
    if (!std::isfinite(sample)) return std::nullopt;
  }
  std::sort(samples.begin(), samples.end());
  const double position = fraction * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, samples.size() - 1);
  const double weight = position - static_cast<double>(below);
  return samples[below] * (1 - weight) + samples[above] * weight;
}

std::optional<Summary> summarize(std::vector<double> samples) {
  const auto median = quantile(samples, 0.5);
  if (!median) return std::nullopt;
  const auto [smallest, largest] = std::minmax_element(samples.begin(), samples.end());
  return Summary{samples.size(), *median, *smallest, *largest};
}

}  // namespace reprise::probe
