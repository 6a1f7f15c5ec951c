// Chrome's trace event format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "preload/trace/names.h"
#include "tools/export/export.h"
#include "tools/report/view/residency.h"
#include "tools/report/view/run_memory.h"
#include "tools/report/view/timeline.h"

namespace reprise::exports {
namespace {

enum Process : int { kDevice = 1, kProgram, kPlanned, kRun };

double microseconds(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }

class Events {
 public:
  void slice(int process, int track, const std::string& name, uint64_t start_ns, uint64_t end_ns, Json arguments) {
    add(start_ns, {{"ph", "X"},
                   {"pid", process},
                   {"tid", track},
                   {"ts", microseconds(start_ns)},
                   {"dur", microseconds(end_ns - start_ns)},
                   {"name", name},
                   {"args", std::move(arguments)}});
  }
  void instant(int process, int track, const std::string& name, uint64_t time_ns, Json arguments) {
    add(time_ns, {{"ph", "i"},
                  {"s", "t"},
                  {"pid", process},
                  {"tid", track},
                  {"ts", microseconds(time_ns)},
                  {"name", name},
                  {"args", std::move(arguments)}});
  }
  void counter(int process, const std::string& name, uint64_t time_ns, uint64_t bytes) {
    add(time_ns, {{"ph", "C"},
                  {"pid", process},
                  {"tid", 0},
                  {"ts", microseconds(time_ns)},
                  {"name", name},
                  {"args", {{"bytes", bytes}}}});
  }
  void name_process(int process, const std::string& name) {
    names_.push_back(
        {{"ph", "M"}, {"pid", process}, {"tid", 0}, {"ts", 0}, {"name", "process_name"}, {"args", {{"name", name}}}});
  }
  // Names a track once and fixes its place among its process's tracks.
  void name_track(int process, int track, const std::string& name) {
    if (!named_.emplace(std::make_pair(process, track), true).second) return;
    names_.push_back({{"ph", "M"},
                      {"pid", process},
                      {"tid", track},
                      {"ts", 0},
                      {"name", "thread_name"},
                      {"args", {{"name", name}}}});
    names_.push_back({{"ph", "M"},
                      {"pid", process},
                      {"tid", track},
                      {"ts", 0},
                      {"name", "thread_sort_index"},
                      {"args", {{"sort_index", track}}}});
  }
  std::string finish() {
    std::stable_sort(events_.begin(), events_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    Json list = Json::array();
    for (Json& one : names_) list.push_back(std::move(one));
    for (auto& [time, event] : events_) list.push_back(std::move(event));
    Json file;
    file["displayTimeUnit"] = "ns";
    file["traceEvents"] = std::move(list);
    return file.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  void add(uint64_t time_ns, Json event) { events_.emplace_back(time_ns, std::move(event)); }
  std::vector<std::pair<uint64_t, Json>> events_;
  std::vector<Json> names_;
  std::map<std::pair<int, int>, bool> named_;
};

// Slices of one track must not overlap, so each stream has a track per engine.
int track_of(trace::OpKind kind, uint32_t stream) {
  const int engine = kind == trace::OpKind::copy_host_to_device   ? 1
                     : kind == trace::OpKind::copy_device_to_host ? 2
                                                                  : 0;
  return 1 + engine * 100000 + static_cast<int>(stream % 100000);
}

std::string track_name(trace::OpKind kind, uint32_t stream) {
  const auto lane = kind == trace::OpKind::copy_host_to_device   ? report::Lane::to_device
                    : kind == trace::OpKind::copy_device_to_host ? report::Lane::to_host
                                                                 : report::Lane::compute;
  return fmt::format("{}, stream {}", report::lane_name(lane), stream);
}

// Device clocks may differ from the host's. Nothing runs before it is called: the smallest delay of all shows by how
// much.
int64_t device_clock_shift(const trace::Trace& trace) {
  std::optional<int64_t> least;
  for (const trace::Event& event : trace.events) {
    const auto* op = std::get_if<trace::Op>(&event);
    if (op == nullptr) continue;
    const auto activity = trace.activities.find(op->record.header.sequence);
    if (activity == trace.activities.end()) continue;
    const auto delay = static_cast<int64_t>(activity->second.start_ns - op->record.time_ns);
    if (!least || delay < *least) least = delay;
  }
  constexpr int64_t kPlausible = 1'000'000'000;
  return least && (*least < 0 || *least > kPlausible) ? -*least : 0;
}

uint64_t first_time(const trace::Trace& trace) {
  uint64_t first = ~uint64_t{0};
  for (const trace::Event& event : trace.events) {
    if (const auto* op = std::get_if<trace::Op>(&event)) first = std::min(first, op->record.time_ns);
    if (const auto* allocate = std::get_if<trace::Allocate>(&event)) first = std::min(first, allocate->record.time_ns);
  }
  return first;
}

class TraceEvents {
 public:
  TraceEvents(const trace::Trace& trace, uint64_t origin_ns, Events& events)
      : trace_(trace), events_(events), origin_(origin_ns), shift_(device_clock_shift(trace)) {}

  void add() {
    events_.name_process(kDevice, "Device, as recorded");
    events_.name_process(kProgram, "Program");
    for (const trace::Event& event : trace_.events) {
      if (const auto* op = std::get_if<trace::Op>(&event)) add_op(*op);
      if (const auto* allocate = std::get_if<trace::Allocate>(&event)) add_allocate(allocate->record);
      if (const auto* release = std::get_if<trace::Free>(&event)) add_free(release->record);
      if (const auto* mark = std::get_if<trace::Mark>(&event)) add_mark(*mark);
    }
  }

 private:
  uint64_t since(uint64_t time_ns) const { return time_ns > origin_ ? time_ns - origin_ : 0; }

  void add_op(const trace::Op& op) {
    const std::string name = report::name_of(trace_, op.record);
    const auto thread = static_cast<int>(op.record.thread);  // as the system numbers it: never 0
    events_.name_track(kProgram, thread, fmt::format("Host thread {}", op.record.thread));
    events_.instant(kProgram, thread, name, since(op.record.time_ns), {{"sequence", op.record.header.sequence}});
    const auto activity = trace_.activities.find(op.record.header.sequence);
    if (activity == trace_.activities.end() || activity->second.end_ns < activity->second.start_ns) return;
    const int track = track_of(op.record.op, op.record.stream);
    events_.name_track(kDevice, track, track_name(op.record.op, op.record.stream));
    const uint64_t start = activity->second.start_ns + static_cast<uint64_t>(shift_);
    const uint64_t end = activity->second.end_ns + static_cast<uint64_t>(shift_);
    Json arguments = {{"sequence", op.record.header.sequence}, {"kind", trace::name_of(op.record.op)}};
    if (op.record.size > 0) arguments["bytes"] = op.record.size;
    if (op.record.op == trace::OpKind::launch) {
      arguments["grid"] = op.record.grid;
      arguments["block"] = op.record.block;
    }
    Json tensors = Json::array();
    for (const trace::AccessRecord& access : op.accesses) tensors.push_back(access.allocation);
    arguments["allocations"] = std::move(tensors);
    events_.slice(kDevice, track, name, since(start), since(end), std::move(arguments));
  }
  void add_allocate(const trace::AllocateRecord& record) {
    if (record.origin == trace::Origin::host) return;
    sizes_[record.allocation] = record.size;
    live_ += record.size;
    events_.counter(kProgram, "Live device memory", since(record.time_ns), live_);
  }
  void add_free(const trace::FreeRecord& record) {
    const auto found = sizes_.find(record.allocation);
    if (found == sizes_.end()) return;
    live_ -= found->second;
    sizes_.erase(found);
    events_.counter(kProgram, "Live device memory", since(record.time_ns), live_);
  }
  void add_mark(const trace::Mark& mark) {
    if (!mark.text.empty()) events_.instant(kProgram, 0, mark.text, since(mark.record.time_ns), Json::object());
  }

  const trace::Trace& trace_;
  Events& events_;
  uint64_t origin_;
  int64_t shift_;
  uint64_t live_ = 0;
  std::unordered_map<uint64_t, uint64_t> sizes_;
};

// Overlapping work of one lane goes to further tracks below it.
int free_track(std::vector<uint64_t>& busy_until, uint64_t start_ns, uint64_t end_ns) {
  for (size_t i = 0; i < busy_until.size(); ++i) {
    if (busy_until[i] > start_ns) continue;
    busy_until[i] = end_ns;
    return static_cast<int>(i);
  }
  busy_until.push_back(end_ns);
  return static_cast<int>(busy_until.size()) - 1;
}

void add_bars(const report::Timeline& timeline, int process, uint64_t start_ns, Events& events) {
  std::vector<uint64_t> busy[report::kLaneCount];
  for (const report::Bar& bar : timeline.bars) {
    const auto lane = static_cast<size_t>(bar.lane);
    const int row = free_track(busy[lane], bar.time.start_ns, bar.time.end_ns);
    const int track = 1 + static_cast<int>(lane) * 1000 + row;
    events.name_track(process, track, report::lane_name(bar.lane));
    Json arguments = Json::object();
    if (bar.bytes > 0) arguments["bytes"] = bar.bytes;
    if (bar.vertex != plan::kNone) arguments["vertex"] = bar.vertex;
    if (bar.tensor != plan::kNone) arguments["tensor"] = bar.tensor;
    events.slice(process, track, bar.name, start_ns + bar.time.start_ns, start_ns + bar.time.end_ns,
                 std::move(arguments));
  }
}

// From `start_ns` on: where the run was measured, so that the two lie below each other.
void add_plan(const plan::Plan& plan, uint64_t start_ns, Events& events) {
  events.name_process(kPlanned, "Plan, as predicted");
  add_bars(report::predicted_timeline(plan), kPlanned, start_ns, events);
  for (const auto& [time, bytes] : report::planned_memory(plan, report::planned_views(plan))) {
    events.counter(kPlanned, "Device memory", start_ns + time, bytes);
  }
}

// All tracks of a run are by one clock, CLOCK_MONOTONIC, and count from the same moment.
class RunEvents {
 public:
  RunEvents(const Inputs& inputs, uint64_t origin_ns, Events& events)
      : log_(*inputs.log), inputs_(inputs), events_(events), origin_(origin_ns) {
    set_slices();
    if (inputs.plan != nullptr) measured_ = report::measured_timeline(*inputs.plan, log_);
  }

  // When the measured iteration began, 0 where there is none.
  uint64_t start_of_measured() const {
    if (measured_.bars.empty()) return 0;
    const report::Interval* host = nullptr;
    for (size_t i = 0; i < slices_.size(); ++i) {
      if (log_.iterations[i].index == measured_.iteration) host = &slices_[i];
    }
    const uint64_t device = since(measured_.origin_ns);
    if (host == nullptr) return measured_.origin_ns >= origin_ ? device : 0;
    // A device's clock that is not the host's shows work at another time than that of its iteration.
    constexpr uint64_t kPlausible = 1'000'000'000;
    const bool same_clock =
        measured_.origin_ns >= origin_ && device + kPlausible >= host->start_ns && device <= host->end_ns + kPlausible;
    return same_clock ? device : host->start_ns;
  }

  void add() {
    events_.name_process(kRun, "Run");
    add_bars(measured_, kRun, start_of_measured(), events_);
    add_iterations();
    add_memory();
  }

 private:
  static constexpr int kIterations = 100000;  // below the lanes
  static constexpr int kUnknown = 100001;

  uint64_t since(uint64_t time_ns) const { return time_ns - std::min(time_ns, origin_); }

  // Where the log does not say when an iteration ended, it stands behind the one before.
  void set_slices() {
    uint64_t now = 0;
    for (const report::RunIteration& it : log_.iterations) {
      const uint64_t end = it.end_ns > origin_ ? since(it.end_ns) : now + it.wall_ns;
      const uint64_t start = std::max(now, end - std::min(end, it.wall_ns));
      slices_.push_back({start, std::max(start, end)});
      now = slices_.back().end_ns;
    }
  }

  void add_iterations() {
    events_.name_track(kRun, kIterations, "Iterations");
    for (size_t i = 0; i < slices_.size(); ++i) {
      const report::RunIteration& it = log_.iterations[i];
      Json details = {{"iteration", it.index}};
      // Its line is written some microseconds behind its end, so that the slice before may take some of this one's.
      if (it.wall_ns > 0) details["wall_ns"] = it.wall_ns;
      if (it.counted) {
        details["stall_ns"] = it.stall_ns;
        details["offload_bytes"] = it.offload_bytes;
        details["reload_bytes"] = it.reload_bytes;
        details["vmm_calls"] = it.vmm_calls;
      }
      events_.slice(kRun, kIterations, it.planned ? "planned" : "on demand", slices_[i].start_ns, slices_[i].end_ns,
                    details);
    }
  }

  // A counter holds its value until the next one: where that is not so, a slice says it.
  void add_memory() {
    const report::RunMemoryCurves memory = report::run_memory(log_, inputs_.trace);
    for (const auto& [time, bytes] : memory.device) events_.counter(kRun, "Device memory", since(time), bytes);
    std::vector<report::Interval> unknown = memory.unknown;
    if (!memory.requested.empty() && log_.end_ns > memory.requested.back().first) {
      unknown.push_back({memory.requested.back().first, log_.end_ns});
    }
    for (const auto& [time, bytes] : memory.requested) {
      if (!is_within(time, memory.unknown)) events_.counter(kRun, "Asked for by the program", since(time), bytes);
    }
    uint64_t until = 0;
    for (const report::Interval& one : unknown) {
      const uint64_t start = std::max(until, since(one.start_ns));
      until = std::max(start, since(one.end_ns));
      events_.name_track(kRun, kUnknown, "Asked for by the program: not known");
      events_.slice(kRun, kUnknown, "not known", start, until, Json::object());
    }
  }

  static bool is_within(uint64_t time_ns, const std::vector<report::Interval>& stretches) {
    return std::any_of(stretches.begin(), stretches.end(), [time_ns](const report::Interval& one) {
      return one.start_ns < time_ns && time_ns < one.end_ns;
    });
  }

  const report::RunLog& log_;
  const Inputs& inputs_;
  Events& events_;
  uint64_t origin_;
  std::vector<report::Interval> slices_;  // of the iterations
  report::Timeline measured_;
};

uint64_t first_time(const report::RunLog& log) {
  if (log.start_ns != 0) return log.start_ns;
  return log.memory.empty() ? 0 : log.memory.front().time_ns;
}

// Is this the recording that the run made itself? Then both are by one clock.
bool made_by(const trace::Trace& trace, const report::RunLog& log) {
  const auto began = trace.info.find("time.start_ns");
  return log.recording != 0 && began != trace.info.end() && began->second == std::to_string(log.recording);
}

}  // namespace

Result<std::string> to_perfetto(const Inputs& inputs) {
  Events events;
  uint64_t of_trace = inputs.trace != nullptr ? first_time(*inputs.trace) : 0;
  uint64_t of_run = inputs.log != nullptr ? first_time(*inputs.log) : 0;
  if (inputs.trace != nullptr && inputs.log != nullptr && made_by(*inputs.trace, *inputs.log)) {
    of_trace = of_run = std::min(of_trace, of_run);
  }
  if (inputs.trace != nullptr) TraceEvents(*inputs.trace, of_trace, events).add();
  uint64_t measured_ns = 0;
  if (inputs.log != nullptr) {
    RunEvents run(inputs, of_run, events);
    run.add();
    measured_ns = run.start_of_measured();
  }
  if (inputs.plan != nullptr) add_plan(*inputs.plan, measured_ns, events);
  return events.finish();
}

}  // namespace reprise::exports
