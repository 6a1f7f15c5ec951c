#include "tools/report/view/waits.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "tools/cli/sizes.h"

namespace reprise::report {
namespace {

using plan::EdgeKind;
using BarByVertex = std::unordered_map<uint32_t, const Bar*>;

// The predecessor that ended last, if it was during the gap; otherwise the op only came late.
Wait wait_before(const plan::Plan& plan, const BarByVertex& by_vertex, const Bar& bar, uint64_t since_ns) {
  const Bar* last = nullptr;
  Wait wait{{since_ns, bar.time.start_ns}, bar.name, "its launch"};
  for (const plan::Predecessor& before : plan.vertices[bar.vertex].predecessors) {
    const auto found = by_vertex.find(before.vertex);
    if (before.distance != 0 || found == by_vertex.end() || found->second->time.end_ns <= since_ns) continue;
    if (last != nullptr && found->second->time.end_ns <= last->time.end_ns) continue;
    last = found->second;
    wait.edge = before.kind;
  }
  if (last == nullptr) return wait;
  wait.reason = last->name;
  wait.transfer = last->lane != Lane::compute;
  wait.tensor = last->tensor;
  return wait;
}

const char* transfer_of(const Wait& wait) {
  if (!wait.edge) return "nothing: it was launched late";
  if (!wait.transfer) return "work on another stream";
  if (wait.tensor == plan::kNone) return "a copy of the program's own";
  if (wait.reason.rfind("offload", 0) == 0) return "an offload";
  return wait.reason.rfind("compare", 0) == 0 ? "a comparison instead of an offload" : "a reload";
}

const char* decision_of(const Wait& wait) {
  if (!wait.edge) return "launched late, by the program or the replay";
  switch (*wait.edge) {
    case EdgeKind::data:
      return wait.transfer && wait.tensor != plan::kNone ? "a tensor was away, and is needed" : "the program's data";
    case EdgeKind::memory:
      return "room had to be made first";
    case EdgeKind::program:
      return "the program's own order";
  }
  return "";
}

template <typename Key>
std::vector<WaitSum> sorted(const std::map<Key, WaitSum>& sums) {
  std::vector<WaitSum> list;
  list.reserve(sums.size());
  for (const auto& [key, sum] : sums) list.push_back(sum);
  std::stable_sort(list.begin(), list.end(), [](const WaitSum& a, const WaitSum& b) { return a.ns > b.ns; });
  return list;
}

void add(WaitSum& sum, std::string what, uint64_t ns) {
  sum.what = std::move(what);
  sum.ns += ns;
  ++sum.count;
}

}  // namespace

std::vector<Wait> waits_of(const plan::Plan& plan, const Timeline& timeline) {
  BarByVertex by_vertex;
  for (const Bar& bar : timeline.bars) {
    if (bar.vertex < plan.vertices.size()) by_vertex[bar.vertex] = &bar;
  }
  std::vector<Wait> waits;
  uint64_t busy_until = 0;
  for (const Bar& bar : timeline.bars) {
    if (bar.lane != Lane::compute) continue;
    if (bar.time.start_ns > busy_until && bar.vertex < plan.vertices.size()) {
      waits.push_back(wait_before(plan, by_vertex, bar, busy_until));
    }
    busy_until = std::max(busy_until, bar.time.end_ns);
  }
  return waits;
}

std::vector<Wait> longest_waits(const plan::Plan& plan, const Timeline& timeline, uint64_t shortest_ns, size_t count) {
  std::vector<Wait> waits = waits_of(plan, timeline);
  std::erase_if(waits, [&](const Wait& wait) { return wait.time.end_ns - wait.time.start_ns < shortest_ns; });
  std::stable_sort(waits.begin(), waits.end(), [](const Wait& a, const Wait& b) {
    return a.time.end_ns - a.time.start_ns > b.time.end_ns - b.time.start_ns;
  });
  if (waits.size() > count) waits.resize(count);
  return waits;
}

WaitSums sum_waits(const plan::Plan& plan, const Timeline& timeline) {
  WaitSums sums;
  std::map<std::string, WaitSum> transfers;
  std::map<std::string, WaitSum> decisions;
  std::map<uint32_t, WaitSum> tensors;
  for (const Wait& wait : waits_of(plan, timeline)) {
    const uint64_t ns = wait.time.end_ns - wait.time.start_ns;
    sums.total_ns += ns;
    if (wait.transfer) sums.transfer_ns += ns;
    const std::string transfer = transfer_of(wait);
    add(transfers[transfer], transfer, ns);
    const std::string decision = decision_of(wait);
    add(decisions[decision], decision, ns);
    decisions[decision].edge = wait.edge;
    if (wait.tensor == plan::kNone) continue;
    WaitSum& tensor = tensors[wait.tensor];
    tensor.tensor = wait.tensor;
    add(tensor, fmt::format("tensor {} ({})", wait.tensor, tools::format_bytes(plan.tensors[wait.tensor].size)), ns);
  }
  sums.by_transfer = sorted(transfers);
  sums.by_tensor = sorted(tensors);
  sums.by_decision = sorted(decisions);
  return sums;
}

namespace {

TimeParts parts_of(const plan::Plan& plan, const Timeline& timeline, uint64_t whole_ns) {
  TimeParts parts;
  parts.iteration = timeline.iteration;
  parts.kernels_ns = busy_time(timeline).compute_ns;
  WaitSums sums = sum_waits(plan, timeline);
  parts.waits = std::move(sums.by_decision);
  const uint64_t known = parts.kernels_ns + sums.total_ns;
  parts.whole_ns = std::max(whole_ns, known);
  parts.rest_ns = parts.whole_ns - known;
  return parts;
}

}  // namespace

TimeParts predicted_parts(const plan::Plan& plan) {
  return parts_of(plan, predicted_timeline(plan), plan.predicted_ns);
}

std::optional<TimeParts> measured_parts(const plan::Plan& plan, const RunLog& log) {
  const Timeline timeline = measured_timeline(plan, log);
  if (timeline.bars.empty()) return std::nullopt;
  const auto found = std::find_if(log.iterations.begin(), log.iterations.end(), [&](const RunIteration& one) {
    return one.planned && one.index == timeline.iteration;
  });
  return parts_of(plan, timeline, found == log.iterations.end() ? timeline.span_ns : found->wall_ns);
}

}  // namespace reprise::report
