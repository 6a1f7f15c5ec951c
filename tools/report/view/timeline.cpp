#include "tools/report/view/timeline.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>

#include "analyzer/plan/names.h"
#include "analyzer/plan/vertex_kinds.h"
#include "tools/cli/sizes.h"
#include "tools/report/log/demangle.h"
#include "tools/report/log/measured.h"

namespace reprise::report {
namespace {

using plan::kNone;
using trace::OpKind;

Lane lane_of(OpKind kind) {
  if (kind == OpKind::copy_host_to_device) return Lane::to_device;
  return kind == OpKind::copy_device_to_host ? Lane::to_host : Lane::compute;
}

// What an iteration takes for which nothing has to move, with other times of its calls. Where calls run beside each
// other in the plan's own time of that, they do here, too: copies beside kernels, as long as there are as many copies,
// else all alike.
uint64_t alone_by_own_times(const plan::Plan& plan, const std::vector<uint64_t>& ns) {
  struct InTurn {
    double recorded = 0;
    double own = 0;
  };
  InTurn all;
  InTurn copies;
  for (uint32_t i = 0; i < plan.calls.size(); ++i) {
    const plan::Call& call = plan.calls[i];
    if (call.kind != plan::CallKind::op || call.inserted) continue;
    for (InTurn* const sum : {&all, &copies}) {
      if (sum == &copies && lane_of(call.op) == Lane::compute) continue;
      sum->recorded += static_cast<double>(call.duration_ns);
      sum->own += static_cast<double>(ns[i]);
    }
  }
  const double beside = std::max(all.recorded - static_cast<double>(plan.compute_ns), 0.0);
  const InTurn& of = beside <= copies.recorded ? copies : all;
  return static_cast<uint64_t>(std::round(all.own - (of.recorded > 0 ? beside * of.own / of.recorded : 0)));
}

void sort_by_start(std::vector<Bar>& bars) {
  std::stable_sort(bars.begin(), bars.end(),
                   [](const Bar& a, const Bar& b) { return a.time.start_ns < b.time.start_ns; });
}

// Fills in the bar of a vertex but for its times. False for a vertex without work on the device.
bool describe(const plan::Plan& plan, uint32_t index, Bar& bar) {
  if (index >= plan.vertices.size()) return false;
  const plan::Vertex& vertex = plan.vertices[index];
  bar.vertex = index;
  if (plan::runs_op(vertex.kind) && vertex.call < plan.calls.size()) {
    const plan::Call& call = plan.calls[vertex.call];
    bar.lane = lane_of(call.op);
    bar.name = op_name(call.op, call.name);
    return true;
  }
  if (!plan::copies(vertex.kind) || vertex.tensor >= plan.tensors.size()) return false;
  bar.lane = plan::copies_out(vertex.kind) ? Lane::to_host : Lane::to_device;
  bar.tensor = vertex.tensor;
  bar.bytes = plan.tensors[vertex.tensor].size;
  bar.name = fmt::format("{} tensor {} ({})", vertex.clean ? "compare" : plan::name_of(vertex.kind), vertex.tensor,
                         tools::format_bytes(bar.bytes));
  return true;
}

// Union of intervals that are sorted by start.
std::vector<Interval> merged(const std::vector<Bar>& bars, bool compute) {
  std::vector<Interval> result;
  for (const Bar& bar : bars) {
    if ((bar.lane == Lane::compute) != compute) continue;
    if (!result.empty() && bar.time.start_ns <= result.back().end_ns) {
      result.back().end_ns = std::max(result.back().end_ns, bar.time.end_ns);
    } else {
      result.push_back(bar.time);
    }
  }
  return result;
}

uint64_t length(const std::vector<Interval>& intervals) {
  uint64_t sum = 0;
  for (const Interval& it : intervals) sum += it.end_ns - it.start_ns;
  return sum;
}

uint64_t common_length(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  uint64_t sum = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const uint64_t start = std::max(a[i].start_ns, b[j].start_ns);
    const uint64_t end = std::min(a[i].end_ns, b[j].end_ns);
    if (start < end) sum += end - start;
    ++(a[i].end_ns < b[j].end_ns ? i : j);
  }
  return sum;
}

// Host time between the calls of one stream stands in for device time.
void add_host_timed(const trace::Trace& trace, std::vector<Bar>& bars, const std::vector<size_t>& untimed,
                    uint64_t last_ns) {
  std::unordered_map<uint32_t, uint64_t> next;  // stream -> start of its following op
  for (auto it = untimed.rbegin(); it != untimed.rend(); ++it) {
    const auto& op = std::get<trace::Op>(trace.events[*it]).record;
    const auto following = next.find(op.stream);
    const uint64_t end = following == next.end() ? std::max(last_ns, op.time_ns) : following->second;
    next[op.stream] = op.time_ns;
    const std::string name = name_of(trace, op);
    bars.push_back({lane_of(op.op), {op.time_ns, std::max(end, op.time_ns)}, name, op.size, kNone, kNone});
  }
}

void start_at_zero(Timeline& timeline) {
  sort_by_start(timeline.bars);
  if (timeline.bars.empty()) return;
  timeline.origin_ns = timeline.bars.front().time.start_ns;
  for (Bar& bar : timeline.bars) {
    bar.time.start_ns -= timeline.origin_ns;
    bar.time.end_ns -= timeline.origin_ns;
    timeline.span_ns = std::max(timeline.span_ns, bar.time.end_ns);
  }
}

// Its first reloads may run beside the kernels of the iteration before, which are not in the timeline: an iteration is
// taken to last until its last kernel ends, as long as the run log says.
uint64_t begin_of(const Timeline& timeline, const RunLog& log) {
  uint64_t first = UINT64_MAX;
  uint64_t end = 0;
  for (const Bar& bar : timeline.bars) {
    if (bar.lane != Lane::compute) continue;
    first = std::min(first, bar.time.start_ns);
    end = std::max(end, bar.time.end_ns);
  }
  const RunIteration* const found = planned_iteration(log, timeline.iteration);
  if (first == UINT64_MAX || found == nullptr) return 0;
  return std::min(first, end - std::min(end, found->wall_ns));
}

}  // namespace

const char* lane_name(Lane lane) {
  switch (lane) {
    case Lane::compute:
      return "Compute";
    case Lane::to_device:
      return "Host to device";
    case Lane::to_host:
      return "Device to host";
  }
  return "";
}

std::string op_name(OpKind kind, const std::string& function) {
  switch (kind) {
    case OpKind::copy_host_to_device:
      return "copy host to device";
    case OpKind::copy_device_to_host:
      return "copy device to host";
    case OpKind::copy_device_to_device:
      return "copy on the device";
    case OpKind::copy_host_to_host:
      return "copy host to host";
    case OpKind::copy_peer:
      return "copy to another device";
    case OpKind::memset:
      return "memset";
    case OpKind::graph_launch:
      return "graph launch";
    case OpKind::host_function:
      return "host function";
    case OpKind::launch:
    case OpKind::other:
      break;
  }
  return function.empty() ? "unnamed" : demangle(function);
}

std::string name_of(const trace::Trace& trace, const trace::OpRecord& op) {
  const trace::TracedFunction* function = trace::find_function(trace, op.function);
  return op_name(op.op, function == nullptr ? std::string() : function->name);
}

Timeline predicted_timeline(const plan::Plan& plan) {
  Timeline timeline;
  timeline.name = "Predicted";
  timeline.span_ns = timeline.period_ns = plan.predicted_ns;
  for (uint32_t i = 0; i < plan.vertices.size(); ++i) {
    Bar bar;
    if (!describe(plan, i, bar)) continue;
    bar.time = {plan.vertices[i].predicted_start_ns, plan.vertices[i].predicted_end_ns};
    timeline.span_ns = std::max(timeline.span_ns, bar.time.end_ns);
    timeline.bars.push_back(std::move(bar));
  }
  sort_by_start(timeline.bars);
  return timeline;
}

OwnTimes own_times(const plan::Plan& plan, const RunLog& log) {
  OwnTimes own;
  const std::optional<uint64_t> iteration = measured_iteration(log);
  if (!iteration) return own;
  own.iteration = *iteration;
  std::map<uint32_t, Interval> spans;  // by call; a graph's kernels are one op, whose time spans them all
  for (const RunActivity& activity : log.activities) {
    if (activity.iteration != *iteration || activity.end_ns < activity.start_ns) continue;
    if (activity.vertex >= plan.vertices.size()) continue;
    const plan::Vertex& vertex = plan.vertices[activity.vertex];
    if (!plan::runs_op(vertex.kind) || plan.calls[vertex.call].inserted) continue;
    Interval& span = spans.try_emplace(vertex.call, Interval{activity.start_ns, activity.end_ns}).first->second;
    span.start_ns = std::min(span.start_ns, activity.start_ns);
    span.end_ns = std::max(span.end_ns, activity.end_ns);
  }
  // Copies that the program's thread makes have no record: theirs is the link's time, as when it was recorded.
  uint64_t covered = 0;
  uint64_t all = 0;
  for (uint32_t i = 0; i < plan.calls.size(); ++i) {
    const plan::Call& call = plan.calls[i];
    const auto span = spans.find(i);
    own.ns.push_back(span == spans.end() ? call.duration_ns : span->second.end_ns - span->second.start_ns);
    if (call.kind != plan::CallKind::op || call.inserted || lane_of(call.op) != Lane::compute) continue;
    all += call.duration_ns;
    if (span != spans.end()) covered += call.duration_ns;
  }
  if (covered < all / 10 * 9) return own;
  own.compute_ns = alone_by_own_times(plan, own.ns);
  return own;
}

Timeline measured_timeline(const plan::Plan& plan, const RunLog& log) {
  Timeline timeline;
  const std::optional<uint64_t> iteration = measured_iteration(log);
  if (!iteration) return timeline;
  timeline.name = fmt::format("Measured (iteration {})", *iteration);
  timeline.iteration = *iteration;
  for (const RunActivity& activity : log.activities) {
    Bar bar;
    if (activity.iteration != *iteration || activity.end_ns < activity.start_ns) continue;
    if (activity.vertex >= plan.vertices.size()) continue;
    if (!describe(plan, static_cast<uint32_t>(activity.vertex), bar)) continue;
    bar.time = {activity.start_ns, activity.end_ns};
    timeline.bars.push_back(std::move(bar));
  }
  start_at_zero(timeline);
  timeline.begin_ns = begin_of(timeline, log);
  return timeline;
}

Timeline recorded_timeline(const trace::Trace& trace) {
  Timeline timeline;
  timeline.name = "Recorded";
  const bool device_timed = !trace.activities.empty();
  std::vector<size_t> untimed;
  uint64_t last_ns = 0;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const auto* op = std::get_if<trace::Op>(&trace.events[i]);
    if (op == nullptr) continue;
    last_ns = std::max(last_ns, op->record.time_ns);
    if (!device_timed) {
      untimed.push_back(i);
      continue;
    }
    const auto activity = trace.activities.find(op->record.header.sequence);
    if (activity == trace.activities.end() || activity->second.end_ns < activity->second.start_ns) continue;
    timeline.bars.push_back({lane_of(op->record.op),
                             {activity->second.start_ns, activity->second.end_ns},
                             name_of(trace, op->record),
                             op->record.size,
                             kNone,
                             kNone});
  }
  add_host_timed(trace, timeline.bars, untimed, last_ns);
  start_at_zero(timeline);
  return timeline;
}

Busy busy_time(const Timeline& timeline) {
  const std::vector<Interval> compute = merged(timeline.bars, true);
  const std::vector<Interval> copies = merged(timeline.bars, false);
  return {length(compute), length(copies), common_length(compute, copies)};
}

}  // namespace reprise::report
