#include "tools/report/view/thin.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "preload/trace/median.h"

namespace reprise::report {
namespace {

// Bars shorter than `width` that begin within one `width` of a lane become one.
std::vector<ThinBar> joined(const std::vector<Bar>& bars, uint64_t width) {
  std::vector<ThinBar> result;
  constexpr size_t kNoGroup = ~size_t{0};
  size_t open[kLaneCount] = {kNoGroup, kNoGroup, kNoGroup};
  for (const Bar& bar : bars) {
    const uint64_t ns = bar.time.end_ns - bar.time.start_ns;
    size_t& group = open[static_cast<int>(bar.lane)];
    const bool small = ns < width;
    if (small && group != kNoGroup && bar.time.start_ns < result[group].bar.time.start_ns + width) {
      ThinBar& into = result[group];
      if (into.bar.name != bar.name) into.bar.name = "several";
      into.bar.time.end_ns = std::max(into.bar.time.end_ns, bar.time.end_ns);
      into.bar.bytes += bar.bytes;
      into.busy_ns += ns;
      ++into.count;
      continue;
    }
    group = small ? result.size() : kNoGroup;
    result.push_back({bar, 1, ns});
  }
  return result;
}

using Iterations = std::vector<RunIteration>::const_iterator;

ThinIteration sum_of(Iterations from, Iterations to, RunMode mode) {
  ThinIteration sum;
  sum.first = from->index;
  sum.last = (to - 1)->index;
  sum.count = static_cast<uint64_t>(to - from);
  sum.mode = mode;
  std::vector<uint64_t> times;
  for (auto it = from; it != to; ++it) {
    times.push_back(it->wall_ns);
    sum.counted = sum.counted && it->counted;
    sum.stall_ns += it->stall_ns;
    sum.offload_bytes += it->offload_bytes;
    sum.reload_bytes += it->reload_bytes;
    sum.vmm_calls += it->vmm_calls;
  }
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  sum.least_ns = *least;
  sum.most_ns = *most;
  sum.median_ns = trace::median(times);
  return sum;
}

}  // namespace

std::vector<ThinBar> thinned(const std::vector<Bar>& bars, size_t most) {
  uint64_t begin = ~uint64_t{0};
  uint64_t end = 0;
  for (const Bar& bar : bars) {
    begin = std::min(begin, bar.time.start_ns);
    end = std::max(end, bar.time.end_ns);
  }
  std::vector<ThinBar> result = joined(bars, 0);
  for (uint64_t width = bars.empty() ? 0 : (end - begin) / most + 1; result.size() > most; width *= 2) {
    result = joined(bars, width);
  }
  return result;
}

std::vector<ThinIteration> thinned(const RunLog& log, size_t most) {
  const std::vector<RunIteration>& iterations = log.iterations;
  const size_t group = iterations.size() / most + (iterations.size() % most == 0 ? 0 : 1);
  std::vector<ThinIteration> result;
  for (auto from = iterations.begin(); from != iterations.end();) {
    auto to = from;
    const RunMode mode = mode_of(log, *from);
    while (to != iterations.end() && static_cast<size_t>(to - from) < group && mode_of(log, *to) == mode) ++to;
    result.push_back(sum_of(from, to, mode));
    from = to;
  }
  return result;
}

std::vector<ThinIteration> sums_by_mode(const RunLog& log) {
  std::vector<ThinIteration> sums;
  for (const RunMode mode : {RunMode::on_demand, RunMode::first_plan, RunMode::plan}) {
    std::vector<RunIteration> all;
    std::copy_if(log.iterations.begin(), log.iterations.end(), std::back_inserter(all),
                 [&](const RunIteration& one) { return mode_of(log, one) == mode; });
    if (!all.empty()) sums.push_back(sum_of(all.begin(), all.end(), mode));
  }
  return sums;
}

}  // namespace reprise::report
