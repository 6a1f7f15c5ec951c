#include "tools/report/compare/spread.h"

#include <fmt/core.h>

#include <algorithm>

#include "tools/cli/sizes.h"
#include "tools/report/log/measured.h"

namespace reprise::report {
namespace {

constexpr uint64_t kFew = 4;  // of fewer the middle half is not known

// Between neighbours in proportion.
uint64_t at_quarter(const std::vector<uint64_t>& sorted, uint64_t quarter) {
  const uint64_t place = (sorted.size() - 1) * quarter;
  const uint64_t below = sorted[place / 4];
  const uint64_t above = sorted[std::min(place / 4 + 1, sorted.size() - 1)];
  return below + (above - below) * (place % 4) / 4;
}

std::string range(const Spread& one) {
  return fmt::format("{} to {}", tools::format_duration(one.low), tools::format_duration(one.high));
}

}  // namespace

Spread spread_of(std::vector<uint64_t> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  Spread spread{values.size(), at_quarter(values, 1), at_quarter(values, 3)};
  if (spread.count >= kFew) return spread;
  // No narrower than iterations mostly are.
  const uint64_t middle = at_quarter(values, 2);
  const auto half = static_cast<uint64_t>(static_cast<double>(middle) * kAlike / 2);
  return {spread.count, std::min(spread.low, middle - half), std::max(spread.high, middle + half)};
}

Spread spread_of(const RunLog& log, bool planned, uint64_t RunIteration::*what) {
  std::vector<uint64_t> values;
  for (const RunIteration& one : log.iterations) {
    if (one.planned == planned && one.wall_ns > 0) values.push_back(one.*what);
  }
  return spread_of(std::move(values));
}

bool meet(const Spread& a, const Spread& b) { return a.count > 0 && b.count > 0 && a.low <= b.high && b.low <= a.high; }

uint64_t play(const Spread& a, const Spread& b) { return (a.high - a.low + b.high - b.low) / 2; }

std::string spread_words(const Spread& a, const Spread& b) {
  return fmt::format(", no difference beyond the spread of iterations (the middle half of A's took {}, of B's {})",
                     range(a), range(b));
}

}  // namespace reprise::report
