// The sections that the page draws: memory curves, timelines, tensors with their inactive periods.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "tools/cli/sizes.h"
#include "tools/report/log/measured.h"
#include "tools/report/report.h"
#include "tools/report/tensor_table.h"
#include "tools/report/view/residency.h"
#include "tools/report/view/run_memory.h"
#include "tools/report/view/thin.h"
#include "tools/report/view/timeline.h"
#include "tools/report/view/waits.h"

namespace reprise::report {
namespace {

// What a page can hold and a person can look at. More is thinned or summed up; the exports have each single thing.
constexpr size_t kMostBars = 30000;
constexpr size_t kMostSums = 50;
constexpr size_t kMostTensors = 60;
constexpr size_t kMostPoints = 3000;
constexpr size_t kMostUses = 400;

// Flat [time, value, time, value, ...].
Json flat(const Curve& curve) {
  Json points = Json::array();
  for (const auto& [time, value] : thinned(curve, kMostPoints)) {
    points.push_back(time);
    points.push_back(value);
  }
  return points;
}

Json line(const std::string& name, const char* style, const Curve& curve) {
  return {{"name", name}, {"style", style}, {"peak", highest(curve)}, {"points", flat(curve)}};
}

Json pairs(const std::vector<Interval>& intervals) {
  Json list = Json::array();
  for (const Interval& it : intervals) list.push_back({it.start_ns, it.end_ns});
  return list;
}

// Neighbours are joined until few enough are left to draw.
std::vector<Interval> joined(std::vector<Interval> intervals, uint64_t span) {
  for (uint64_t gap = std::max<uint64_t>(1, span / 2000); intervals.size() > kMostUses; gap *= 2) {
    std::vector<Interval> result;
    for (const Interval& it : intervals) {
      if (!result.empty() && it.start_ns <= result.back().end_ns + gap) {
        result.back().end_ns = std::max(result.back().end_ns, it.end_ns);
      } else {
        result.push_back(it);
      }
    }
    intervals = std::move(result);
  }
  return intervals;
}

// Columns, one entry a bar: lane, start (since the bar before), length, name, bytes, is it Reprise's, how many pieces
// of work it stands for, and how much of its length they are.
Json bars_json(const std::vector<Bar>& all) {
  std::unordered_map<std::string, size_t> ids;
  Json names = Json::array();
  Json columns = Json::object();
  for (const char* column : {"lane", "start", "ns", "name", "bytes", "own", "count", "busy"})
    columns[column] = Json::array();
  uint64_t last = 0;
  for (const ThinBar& thin : thinned(all, kMostBars)) {
    const Bar& bar = thin.bar;
    const auto [found, added] = ids.emplace(bar.name, names.size());
    if (added) names.push_back(bar.name);
    columns["lane"].push_back(static_cast<int>(bar.lane));
    columns["start"].push_back(bar.time.start_ns - last);
    columns["ns"].push_back(bar.time.end_ns - bar.time.start_ns);
    columns["name"].push_back(found->second);
    columns["bytes"].push_back(bar.bytes);
    columns["own"].push_back(bar.tensor != plan::kNone ? 1 : 0);
    columns["count"].push_back(thin.count);
    columns["busy"].push_back(thin.busy_ns);
    last = bar.time.start_ns;
  }
  columns["names"] = std::move(names);
  return columns;
}

Json sums_json(const std::vector<WaitSum>& sums) {
  Json rows = Json::array();
  uint64_t others = 0;
  uint64_t other_ns = 0;
  uint64_t other_waits = 0;
  for (const WaitSum& sum : sums) {
    if (rows.size() < kMostSums) {
      rows.push_back({{"what", sum.what}, {"ns", sum.ns}, {"count", sum.count}});
      continue;
    }
    ++others;
    other_ns += sum.ns;
    other_waits += sum.count;
  }
  if (others > 0) {
    rows.push_back({{"what", fmt::format("{} others", others)}, {"ns", other_ns}, {"count", other_waits}});
  }
  return rows;
}

Json timeline_json(const Timeline& timeline, const plan::Plan* plan) {
  Json waits = Json::array();
  if (plan != nullptr) {
    for (const Wait& wait : longest_waits(*plan, timeline, 1, 100)) {
      waits.push_back({{"start", wait.time.start_ns},
                       {"ns", wait.time.end_ns - wait.time.start_ns},
                       {"op", wait.op},
                       {"reason", wait.reason},
                       {"transfer", wait.transfer ? 1 : 0}});
    }
  }
  const Busy busy = busy_time(timeline);
  Json result = {{"name", timeline.name},         {"span", timeline.span_ns}, {"total_bars", timeline.bars.size()},
                 {"compute_ns", busy.compute_ns}, {"copy_ns", busy.copy_ns},  {"both_ns", busy.both_ns}};
  result["bars"] = bars_json(timeline.bars);
  result["waits"] = std::move(waits);
  return result;
}

// A recording has what the program called. What Reprise moved meanwhile, on demand, has no records.
std::string whose_copies(const Inputs& inputs) {
  const uint64_t moved = inputs.log == nullptr ? 0 : inputs.log->moved_bytes.value_or(0);
  if (moved == 0 && !inputs.trace->info.contains("memory.managed")) return "";
  return fmt::format("All copies here are the program's own: those that Reprise made{} are not recorded.",
                     moved == 0 ? "" : fmt::format(", {} in this run,", tools::format_bytes(moved)));
}

double weight(const plan::Plan& plan, const TensorView& view) {
  return static_cast<double>(plan.tensors[view.tensor].size) *
         static_cast<double>(view.life.end_ns - view.life.start_ns);
}

Json tensor_json(const plan::Plan& plan, const TensorView& view, const std::string& site, uint64_t span) {
  const plan::Tensor& tensor = plan.tensors[view.tensor];
  Json moves = Json::array();
  for (const Move& move : view.moves) moves.push_back({move.offload ? 1 : 0, move.time.start_ns, move.time.end_ns});
  Json result = {{"id", view.tensor},
                 {"size", tensor.size},
                 {"persistent", tensor.allocate_call == plan::kNone},
                 {"use_count", view.uses.size()},
                 {"site", site}};
  result["life"] = {view.life.start_ns, view.life.end_ns};
  result["uses"] = pairs(joined(view.uses, span));
  result["resident"] = pairs(joined(view.resident, span));
  result["moves"] = std::move(moves);
  return result;
}

// Times of a run count from its first memory sample.
uint64_t since_first(const RunLog& log, uint64_t time_ns) {
  return time_ns - std::min(time_ns, log.memory.front().time_ns);
}

Curve since_first(const RunLog& log, Curve curve) {
  for (auto& [time, bytes] : curve) time = since_first(log, time);
  return curve;
}

Json stretches_since_first(const RunLog& log, std::vector<Interval> stretches) {
  for (Interval& one : stretches) one = {since_first(log, one.start_ns), since_first(log, one.end_ns)};
  return pairs(stretches);
}

}  // namespace

Json iteration_memory_section(const Inputs& inputs) {
  if (inputs.plan == nullptr) return nullptr;
  const Curve before = unmanaged_memory(*inputs.plan);
  const Curve planned = planned_memory(*inputs.plan, planned_views(*inputs.plan));
  Json lines = Json::array();
  lines.push_back(line("Asked for, without Reprise", "before", before));
  lines.push_back(line("Planned, on the device", "planned", planned));
  // A plan keeps whole chunks, the program asks for bytes: where few can leave, the plan's are more.
  const bool lower = highest(planned) < highest(before);
  const std::string about = fmt::format(
      "What the recorded iteration asks for, byte by byte, as it would run without Reprise, and the same iteration as "
      "planned: {}. Peaks of the "
      "run may be larger: of whole chunks, of what it asks for elsewhere, with what the driver takes.",
      lower ? "lower at its peak" : "in whole chunks, which are no less here than the bytes that were asked for");
  return {{"about", about},
          {"budget", inputs.plan->budget_bytes},
          {"budget_name", collect_facts(inputs).budget != inputs.plan->budget_bytes ? kPlansBudget : "Budget"},
          {"span", std::max(before.back().first, planned.back().first)},
          {"lines", std::move(lines)}};
}

Json run_memory_section(const Inputs& inputs) {
  const bool ran = inputs.log != nullptr && !inputs.log->memory.empty();
  if (!ran && inputs.trace == nullptr) return nullptr;
  const RunMemoryCurves run = ran ? run_memory(*inputs.log, inputs.trace) : RunMemoryCurves{};
  const Curve requested = ran ? since_first(*inputs.log, run.requested) : recorded_memory(*inputs.trace);
  if (requested.empty()) return nullptr;
  Json lines = Json::array();
  lines.push_back(
      line(ran ? "What the program asked for, where it is known" : "Recorded, without a budget", "before", requested));
  lines.back()["gaps"] = ran ? stretches_since_first(*inputs.log, run.unknown) : Json::array();
  uint64_t span = requested.back().first;
  if (ran) {
    const Curve device = since_first(*inputs.log, run.device);
    span = std::max(span, device.back().first);
    const uint64_t outside = inputs.log->outside_bytes;
    const std::string name = outside == 0
                                 ? "On the device"
                                 : fmt::format("On the device, beside {} that the program holds around Reprise",
                                               tools::format_bytes(outside));
    lines.push_back(line(name, "actual", device));
  }
  Json levels = Json::array();
  const Facts facts = collect_facts(inputs);
  if (facts.plan_budget != 0) {
    levels.push_back({{"name", kPlansBudget}, {"style", "wait"}, {"value", facts.plan_budget}});
  }
  if (ran && inputs.log->peak_requested_bytes > highest(requested)) {
    levels.push_back({{"name", "The most that the program asked for, some time"},
                      {"style", "before"},
                      {"value", inputs.log->peak_requested_bytes}});
  }
  return {{"budget", facts.budget},
          {"budget_name", "Budget"},
          {"span", span},
          {"lines", std::move(lines)},
          {"levels", levels}};
}

// Of one iteration, as measured where that was done, else as predicted.
Json waits_section(const Inputs& inputs) {
  if (inputs.plan == nullptr) return nullptr;
  Timeline timeline;
  if (inputs.log != nullptr) timeline = measured_timeline(*inputs.plan, *inputs.log);
  const RunIteration* const whole =
      timeline.bars.empty() ? nullptr : planned_iteration(*inputs.log, timeline.iteration);
  if (timeline.bars.empty()) timeline = predicted_timeline(*inputs.plan);
  const WaitSums sums =
      sum_waits(*inputs.plan, timeline, whole == nullptr ? std::nullopt : std::optional(whole->stall_ns));
  return {{"timeline", timeline.name},
          {"total_ns", sums.total_ns},
          {"transfer_ns", sums.transfer_ns},
          {"span", timeline.span_ns},
          {"by_transfer", sums_json(sums.by_transfer)},
          {"by_tensor", sums_json(sums.by_tensor)},
          {"by_decision", sums_json(sums.by_decision)}};
}

Json timelines_section(const Inputs& inputs) {
  Json list = Json::array();
  if (inputs.plan != nullptr) {
    if (inputs.log != nullptr) {
      const Timeline measured = measured_timeline(*inputs.plan, *inputs.log);
      if (!measured.bars.empty()) list.push_back(timeline_json(measured, inputs.plan));
    }
    list.push_back(timeline_json(predicted_timeline(*inputs.plan), inputs.plan));
  }
  if (inputs.trace != nullptr) {
    const Timeline recorded = recorded_timeline(*inputs.trace);
    if (!recorded.bars.empty()) list.push_back(timeline_json(recorded, nullptr));
    if (const std::string note = whose_copies(inputs); !recorded.bars.empty() && !note.empty()) {
      list.back()["note"] = note;
    }
  }
  return list;
}

Json tensors_section(const Inputs& inputs) {
  if (inputs.plan == nullptr) return nullptr;
  const plan::Plan& plan = *inputs.plan;
  std::vector<TensorView> views = planned_views(plan);
  uint64_t span = plan.predicted_ns;
  for (const TensorView& view : views) span = std::max(span, view.life.end_ns);
  std::stable_sort(views.begin(), views.end(),
                   [&](const TensorView& a, const TensorView& b) { return weight(plan, a) > weight(plan, b); });
  const std::vector<std::string> sites = tensor_sites(inputs);
  Json rows = Json::array();
  for (const TensorView& view : views) {
    if (rows.size() >= kMostTensors) break;
    rows.push_back(tensor_json(plan, view, sites[view.tensor], span));
  }
  return {{"span", span}, {"total", plan.tensors.size()}, {"rows", std::move(rows)}};
}

}  // namespace reprise::report
