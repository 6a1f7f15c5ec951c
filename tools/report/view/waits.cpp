#include "tools/report/view/waits.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "tools/cli/sizes.h"
#include "tools/report/log/measured.h"

namespace reprise::report {
namespace {

using plan::EdgeKind;
constexpr char kLate[] = "launched late, not known by whom";
constexpr char kLateByProgram[] = "launched late by the program";
constexpr char kLateByReplay[] = "launched late by the replay";
constexpr char kBeforeFirst[] = "before the first kernel";
using BarByVertex = std::unordered_map<uint32_t, const Bar*>;

// In the iteration of the timeline; 0: before it, or not known, as of the iteration before a measured one.
uint64_t end_of(const plan::Predecessor& before, const Bar& bar, uint64_t period_ns) {
  if (before.distance == 0) return bar.time.end_ns;
  const bool reaches_in = period_ns > 0 && before.distance == 1 && bar.time.end_ns > period_ns;
  return reaches_in ? bar.time.end_ns - period_ns : 0;
}

// By the predecessor that ended last, if it was during the gap: until it ended. The rest of the gap, or all of it, the
// op only came late.
void add_waits_before(const plan::Plan& plan, const BarByVertex& by_vertex, const Bar& bar, const Timeline& timeline,
                      uint64_t since_ns, std::vector<Wait>& waits) {
  const Bar* last = nullptr;
  uint64_t last_ns = since_ns;
  const Wait late{{since_ns, bar.time.start_ns}, bar.name, "its launch"};
  Wait wait = late;
  for (const plan::Predecessor& before : plan.vertices[bar.vertex].predecessors) {
    const auto found = by_vertex.find(before.vertex);
    const uint64_t end_ns = found == by_vertex.end() ? 0 : end_of(before, *found->second, timeline.period_ns);
    if (end_ns <= last_ns) continue;
    last = found->second;
    last_ns = end_ns;
    wait.edge = before.kind;
  }
  if (last != nullptr) {
    wait.time.end_ns = std::min(last_ns, bar.time.start_ns);
    wait.reason = last->name;
    wait.transfer = last->lane != Lane::compute;
    wait.tensor = last->tensor;
  }
  waits.push_back(wait);
  if (wait.time.end_ns == bar.time.start_ns) return;
  waits.push_back(late);
  waits.back().time.start_ns = wait.time.end_ns;
}

// Ended by work of the program itself, of which the run log says that it could run.
bool by_the_program(const Wait& wait) { return wait.edge && (!wait.transfer || wait.tensor == plan::kNone); }

const char* transfer_of(const Wait& wait) {
  if (!wait.edge) return "nothing: it was launched late";
  if (!wait.transfer) return "work on another stream";
  if (wait.tensor == plan::kNone) return "a copy of the program's own";
  if (wait.reason.rfind("offload", 0) == 0) return "an offload";
  return wait.reason.rfind("compare", 0) == 0 ? "a comparison instead of an offload" : "a reload";
}

// Of what a plan predicts, mapping alone comes between an op and what it is behind.
const char* decision_of(const Wait& wait, bool predicted) {
  if (!wait.edge) return predicted ? kLateByReplay : kLate;
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
  uint64_t busy_until = timeline.begin_ns;
  for (const Bar& bar : timeline.bars) {
    if (bar.lane != Lane::compute) continue;
    if (bar.time.start_ns > busy_until && bar.vertex < plan.vertices.size()) {
      add_waits_before(plan, by_vertex, bar, timeline, busy_until, waits);
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

namespace {

// By the run log the device waited longer than for what was moved: then ops came late although the program had called
// them. What remains of that is returned.
uint64_t split_late(uint64_t other_ns, std::vector<WaitSum>* waits) {
  const auto late = std::find_if(waits->begin(), waits->end(), [](const WaitSum& one) { return !one.edge; });
  if (late == waits->end()) return other_ns;
  const uint64_t by_replay_ns = std::min(other_ns, late->ns);
  const WaitSum by_replay{kLateByReplay, by_replay_ns, late->count};  // either may have a part in each
  late->what = kLateByProgram;
  late->ns -= by_replay_ns;
  if (late->ns == 0) waits->erase(late);
  if (by_replay_ns > 0) waits->push_back(by_replay);
  return other_ns - by_replay_ns;
}

}  // namespace

WaitSums sum_waits(const plan::Plan& plan, const Timeline& timeline, std::optional<uint64_t> stall_ns) {
  WaitSums sums;
  std::map<std::string, WaitSum> transfers;
  std::map<std::string, WaitSum> decisions;
  std::map<uint32_t, WaitSum> tensors;
  for (const Wait& wait : waits_of(plan, timeline)) {
    const uint64_t ns = wait.time.end_ns - wait.time.start_ns;
    sums.total_ns += ns;
    if (wait.transfer) sums.transfer_ns += ns;
    if (wait.edge && !by_the_program(wait)) sums.moving_ns += ns;
    const std::string transfer = transfer_of(wait);
    add(transfers[transfer], transfer, ns);
    const std::string decision = decision_of(wait, timeline.period_ns > 0);
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
  if (stall_ns) sums.before_first_ns = split_late(*stall_ns - std::min(*stall_ns, sums.moving_ns), &sums.by_decision);
  return sums;
}

namespace {

TimeParts parts_of(const plan::Plan& plan, const Timeline& timeline, uint64_t whole_ns,
                   std::optional<uint64_t> stall_ns = {}) {
  TimeParts parts;
  parts.iteration = timeline.iteration;
  parts.kernels_ns = busy_time(timeline).compute_ns;
  WaitSums sums = sum_waits(plan, timeline, stall_ns);
  parts.waits = std::move(sums.by_decision);
  const uint64_t known = parts.kernels_ns + sums.total_ns;
  parts.whole_ns = std::max(whole_ns, known);
  parts.rest_ns = parts.whole_ns - known;
  // Before the first one the timeline shows nothing.
  const uint64_t first_ns = std::min(sums.before_first_ns, parts.rest_ns);
  if (first_ns > 0) parts.waits.push_back({kBeforeFirst, first_ns});
  parts.rest_ns -= first_ns;
  parts.moving_ns = sums.moving_ns;
  return parts;
}

}  // namespace

TimeParts predicted_parts(const plan::Plan& plan) {
  return parts_of(plan, predicted_timeline(plan), plan.predicted_ns);
}

std::optional<TimeParts> measured_parts(const plan::Plan& plan, const RunLog& log) {
  const Timeline timeline = measured_timeline(plan, log);
  if (timeline.bars.empty()) return std::nullopt;
  const RunIteration* const found = planned_iteration(log, timeline.iteration);
  if (found == nullptr) return parts_of(plan, timeline, timeline.span_ns);
  return parts_of(plan, timeline, found->wall_ns, found->stall_ns);
}

}  // namespace reprise::report
