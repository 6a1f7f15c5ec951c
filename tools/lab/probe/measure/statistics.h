// Summaries of repeated measurements: median, minimum, maximum. Callers: report (JSON, table) and the sections.
// Minimum and maximum show the spread; the median is the number to use. Pure functions.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

namespace reprise::probe {

struct Summary {
  size_t repeats = 0;
  double median = 0;
  double minimum = 0;
  double maximum = 0;
};

// Nothing for no samples and for samples that are not finite: a measurement that failed has no summary.
std::optional<Summary> summarize(std::vector<double> samples);

// The value below which a share `fraction` (0..1) of the samples lies, interpolated between neighbours.
std::optional<double> quantile(std::vector<double> samples, double fraction);

}  // namespace reprise::probe
