// The middle one of several figures, of an even number the mean of the two in the middle. Callers: the report's views,
// the TaskGraph's durations, what covers a recording.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace reprise::trace {

// 0 of none.
inline uint64_t median(std::vector<uint64_t> values) {
  if (values.empty()) return 0;
  const auto upper = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), upper, values.end());
  if (values.size() % 2 != 0) return *upper;
  const uint64_t lower = *std::max_element(values.begin(), upper);
  return lower + (*upper - lower) / 2;
}

}  // namespace reprise::trace
