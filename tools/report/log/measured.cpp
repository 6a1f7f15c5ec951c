#include "tools/report/log/measured.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "preload/base/readable.h"
#include "preload/trace/median.h"

namespace reprise::report {
namespace {

uint64_t median_of_first_plan(const RunLog& log) {
  std::vector<uint64_t> times;
  for (const RunIteration& one : log.iterations) {
    if (one.planned && one.plan == 0 && one.wall_ns > 0) times.push_back(one.wall_ns);
  }
  return trace::median(std::move(times));
}

uint64_t distance(uint64_t a, uint64_t b) { return a < b ? b - a : a - b; }

}  // namespace

const RunIteration* planned_iteration(const RunLog& log, uint64_t index) {
  const auto found = std::find_if(log.iterations.begin(), log.iterations.end(), [&](const RunIteration& one) {
    return one.planned && one.plan == 0 && one.index == index;
  });
  return found == log.iterations.end() ? nullptr : &*found;
}

std::optional<uint64_t> measured_iteration(const RunLog& log) {
  std::map<uint64_t, size_t> records;
  size_t most = 0;
  for (const RunActivity& activity : log.activities) most = std::max(most, ++records[activity.iteration]);
  const uint64_t median = median_of_first_plan(log);
  std::optional<uint64_t> best;
  uint64_t closest = UINT64_MAX;
  for (const auto& [iteration, count] : records) {
    if (count * 10 < most * 9) continue;  // the plan was left, or records were lost
    const RunIteration* const whole = planned_iteration(log, iteration);
    const uint64_t off = whole == nullptr ? UINT64_MAX : distance(whole->wall_ns, median);
    if (best && off >= closest) continue;
    best = iteration;
    closest = off;
  }
  return best;
}

std::optional<BesideMedian> unlike_most(const RunLog& log) {
  const std::optional<uint64_t> iteration = measured_iteration(log);
  const RunIteration* const whole = iteration ? planned_iteration(log, *iteration) : nullptr;
  const uint64_t median = median_of_first_plan(log);
  if (whole == nullptr || whole->wall_ns == 0 || median == 0) return std::nullopt;
  const double off = static_cast<double>(distance(whole->wall_ns, median)) / static_cast<double>(median);
  if (off <= kAlike) return std::nullopt;
  return BesideMedian{*iteration, whole->wall_ns, median};
}

std::string unlike_words(const RunLog& log) {
  const std::optional<BesideMedian> both = unlike_most(log);
  if (!both) return "";
  const double off = static_cast<double>(both->wall_ns) / static_cast<double>(both->median_ns) - 1;
  return fmt::format(", which took {} % {} than the median", decimal(std::abs(100 * off), 1, 0),
                     off > 0 ? "more" : "less");
}

}  // namespace reprise::report
