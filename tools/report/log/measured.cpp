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

// Of an iteration that was measured.
struct Records {
  size_t all = 0;
  size_t computing = 0;
};

std::map<uint64_t, Records> records_of(const RunLog& log) {
  std::map<uint64_t, Records> records;
  for (const RunActivity& activity : log.activities) {
    Records& one = records[activity.iteration];
    ++one.all;
    if (activity.engine == "compute") ++one.computing;
  }
  return records;
}

// Some are missing that `whole` has: they were lost.
bool is_far_below(size_t count, size_t whole) { return count * 10 < whole * 9; }

// An iteration that left its plan has no time, and ended somewhere else.
bool is_over(const RunLog& log, uint64_t iteration) { return planned_iteration(log, iteration) != nullptr; }

uint64_t distance(uint64_t a, uint64_t b) { return a < b ? b - a : a - b; }

}  // namespace

const RunIteration* planned_iteration(const RunLog& log, uint64_t index) {
  const auto found = std::find_if(log.iterations.begin(), log.iterations.end(), [&](const RunIteration& one) {
    return one.planned && one.plan == 0 && one.index == index;
  });
  return found == log.iterations.end() ? nullptr : &*found;
}

uint64_t median_of_first_plan(const RunLog& log) {
  std::vector<uint64_t> times;
  std::vector<uint64_t> before;  // by what it replaced
  for (const RunIteration& one : log.iterations) {
    if (one.planned && one.plan == 0 && one.wall_ns > 0)
      (one.number == log.plans.shown ? times : before).push_back(one.wall_ns);
  }
  return trace::median(std::move(times.empty() ? before : times));
}

std::optional<uint64_t> measured_iteration(const RunLog& log) {
  const std::map<uint64_t, Records> records = records_of(log);
  size_t most = 0;
  for (const auto& [iteration, one] : records) most = std::max(most, is_over(log, iteration) ? one.all : 0);
  const uint64_t median = median_of_first_plan(log);
  std::optional<uint64_t> best;
  uint64_t closest = UINT64_MAX;
  for (const auto& [iteration, one] : records) {
    if (!is_over(log, iteration) || is_far_below(one.all, most)) continue;
    if (is_far_below(one.computing, log.planned_launches)) continue;
    const uint64_t off = distance(planned_iteration(log, iteration)->wall_ns, median);
    if (best && off >= closest) continue;
    best = iteration;
    closest = off;
  }
  return best;
}

std::string measured_in_part(const RunLog& log) {
  if (log.activities.empty() || measured_iteration(log)) return "";
  const uint64_t iteration = log.activities.back().iteration;
  const auto left = std::find_if(log.divergences.begin(), log.divergences.end(), [&](const RunDivergence& one) {
    return one.iteration == iteration && !one.loop_end && one.call > 0;
  });
  if (left == log.divergences.end()) return fmt::format("iteration {}, of which records are missing", iteration);
  return fmt::format("iteration {}, which left the plan at call {}", iteration, left->call);
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
