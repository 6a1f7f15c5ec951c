#include "tools/report/inputs.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "analyzer/bounds/bounds.h"
#include "analyzer/iteration/false_operands.h"
#include "analyzer/planner/planner.h"
#include "analyzer/planner/to_plan.h"
#include "preload/trace/ending.h"
#include "preload/trace/identity.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/cli/version.h"
#include "tools/report/curve/kernel_times.h"
#include "tools/report/curve/which_loop.h"
#include "tools/report/log/recognize.h"
#include "tools/report/log/redacted.h"
#include "tools/report/same_recording.h"
#include "tools/report/symbols/symbols.h"

namespace reprise::tools {
namespace {

constexpr char kPlanMagic[] = "RPPLAN";  // how plan files begin; the plan library checks the rest

// The message with the file's name in front, unless it names the file already.
Status named(const std::string& path, const Status& status) {
  if (status.message().find(path) != std::string::npos) return status;
  return {status.code(), fmt::format("{}: {}", path, status.message())};
}

const char* word_of(FileKind kind) {
  switch (kind) {
    case FileKind::trace:
      return "a trace";
    case FileKind::plan:
      return "a plan";
    case FileKind::run_log:
      return "a run log";
    case FileKind::unknown:
      break;
  }
  return "none of Reprise's files";
}

Status empty_file(const std::string& path) {
  return {StatusCode::truncated,
          fmt::format("{}: the file is empty; make it again, whatever wrote it was stopped", path)};
}

// Files are easily swapped on a command line.
Status expect_kind(const std::string& path, FileKind wanted) {
  Result<FileKind> kind = kind_of(path);
  if (!kind.ok() || kind.value() == wanted) return kind.status();
  if (file_size(path) == 0) return empty_file(path);
  return {StatusCode::corrupt,
          fmt::format("{}: is {}, not {}; check the file names", path, word_of(kind.value()), word_of(wanted))};
}

template <typename T>
Status place(const std::string& path, std::optional<T>& to, Result<T> from) {
  if (!from.ok()) return named(path, from.status());
  if (to.has_value()) {
    return {StatusCode::invalid_argument,
            fmt::format("{}: one more file of the same kind; give one of each, or two plans or two run logs to compare",
                        path)};
  }
  to = std::move(from.value());
  return {};
}

}  // namespace

Result<FileKind> kind_of(const std::string& path) {
  const Status readable = check_readable(path);
  if (!readable.ok()) return readable;
  char first[8] = {};
  FILE* file = std::fopen(path.c_str(), "rbe");
  if (file == nullptr) return Status(StatusCode::io_error, fmt::format("{}: cannot be opened; check it", path));
  const size_t got = std::fread(first, 1, sizeof first, file);
  std::fclose(file);
  if (got == sizeof first && std::memcmp(first, trace::kFileMagic, sizeof first) == 0) return FileKind::trace;
  if (got == sizeof first && std::memcmp(first, kPlanMagic, sizeof kPlanMagic - 1) == 0) return FileKind::plan;
  return got > 0 && first[0] == '{' && report::is_run_log(path) ? FileKind::run_log : FileKind::unknown;
}

Result<plan::Plan> load_plan(const std::string& path) {
  const Status is_plan = expect_kind(path, FileKind::plan);
  if (!is_plan.ok()) return is_plan;
  Result<plan::Plan> plan = plan::read_plan(path);
  if (!plan.ok()) return named(path, plan.status());
  return plan;
}

Result<trace::Trace> load_trace_as_recorded(const std::string& path) {
  const Status is_trace = expect_kind(path, FileKind::trace);
  if (!is_trace.ok()) return is_trace;
  Result<trace::Trace> trace = trace::read_trace(path);
  if (!trace.ok()) return named(path, trace.status());
  return trace;
}

Result<trace::Trace> load_trace(const std::string& path) {
  Result<trace::Trace> trace = load_trace_as_recorded(path);
  if (trace.ok()) analyzer::drop_false_operands(&trace.value());
  return trace;
}

CutShort cut_short(const std::string& path, const trace::Trace& trace) {
  if (!trace.tail.ok()) {
    const std::string& why = trace.tail.message();
    const std::string prefix = path + ": ";
    return {fmt::format("{}: incomplete: {}", path, why.rfind(prefix, 0) == 0 ? why.substr(prefix.size()) : why), true};
  }
  if (trace.ended) return {};
  const Result<trace::Ending> ending = trace::read_ending(path);
  const uint32_t error = ending.ok() ? ending.value().stopped_by : 0;
  if (error != 0) {
    return {fmt::format("{}: the recording is cut short: it could not be written further: {}", path,
                        std::strerror(static_cast<int>(error)))};
  }
  return {
      fmt::format("{}: the recording is cut short: the program did not come to its end, or this is only the "
                  "beginning of the file, and what it called last may be missing",
                  path)};
}

int finish_cut_short(const CutShort& what) {
  if (what.line.empty()) return 0;
  say(what.line + "; what could be read was used");
  return what.unreadable ? kExitFailure : 0;
}

Status of_what_there_is(const CutShort& what, const std::string& path, const Status& status) {
  if (what.line.empty() || status.ok()) return status;
  const std::string prefix = path + ": ";
  const std::string& why = status.message();
  return {status.code(), fmt::format("{}; of what could be read: {}", what.line,
                                     why.rfind(prefix, 0) == 0 ? why.substr(prefix.size()) : why)};
}

namespace {

constexpr uint64_t kCurveMilliseconds = 2500;

double known_share(const analyzer::Workload& workload) {
  uint64_t all = 0;
  uint64_t known = 0;
  for (const analyzer::GraphCall& entry : workload.graph.calls) {
    if (entry.call.op != trace::OpKind::launch) continue;
    all += entry.call.duration_ns;
    if (entry.known) known += entry.call.duration_ns;
  }
  return all == 0 ? -1 : static_cast<double>(known) / static_cast<double>(all);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[32] = "";
  std::tm local{};
  if (localtime_r(&now, &local) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M %Z", &local);
  return text;
}

report::Inputs::File about(const std::string& path, FileKind kind) {
  report::Inputs::File file{path, word_of(kind) + 2, file_size(path), ""};
  const Result<std::string> content = read_file(path);
  char hash[17] = "";
  if (content.ok()) trace::format_identity(trace::hash_bytes(content.value().data(), content.value().size()), hash);
  file.hash = hash;
  return file;
}

}  // namespace

void say_without_end(const report::RunLog& log) {
  if (log.ended || log.not_managed || !log.ending.empty()) return;
  say("the run log has no end: " + report::unseen_end(log));
}

Status load(const std::vector<std::string>& paths, LoadedFiles& files) {
  for (const std::string& path : paths) {
    Result<FileKind> kind = kind_of(path);
    if (!kind.ok()) return kind.status();
    Status status;
    switch (kind.value()) {
      case FileKind::trace:
        status = place(path, files.trace, load_trace(path));
        if (status.ok()) files.cut_short = cut_short(path, *files.trace);
        break;
      case FileKind::plan:
        status = place(path, files.plan, load_plan(path));
        break;
      case FileKind::run_log:
        status = place(path, files.log, report::read_run_log(path));
        break;
      case FileKind::unknown:
        if (file_size(path) == 0) return empty_file(path);
        status = {StatusCode::corrupt, fmt::format("{}: neither a trace, a plan nor a run log; check the file", path)};
    }
    if (!status.ok()) return status;
    files.named.push_back(about(path, kind.value()));
  }
  return check_same_recording(files.trace ? &*files.trace : nullptr, files.plan ? &*files.plan : nullptr,
                              files.log ? &*files.log : nullptr);
}

namespace {

// What no plan for the plan's budget can beat, in nanoseconds per iteration; 0 when it cannot be told.
uint64_t bound_of(const analyzer::Workload& found, const plan::Plan& plan) {
  if (plan.chunk_bytes == 0 || plan.budget_bytes < plan.reserved_bytes) return 0;
  const uint64_t capacity = (plan.budget_bytes - plan.reserved_bytes) / plan.chunk_bytes;
  if (capacity < found.largest.chunks || plan::recomputes(plan) || plan::has_split_tensors(plan)) return 0;
  return analyzer::bounds_of(found.graph, capacity, found.machine).iteration_ns;
}

analyzer::PlanOptions options_for(const plan::Plan* plan) {
  analyzer::PlanOptions options;
  if (plan != nullptr) options.budget_bytes = plan->budget_bytes;
  if (plan != nullptr) options.chunk_bytes = plan->chunk_bytes;
  if (const std::string folder = facts::folder_of_facts(std::getenv("REPRISE_FACTS")); !folder.empty()) {
    options.known.facts.emplace(folder);
  }
  return options;
}

uint64_t calls_of(const plan::Plan& plan) {
  return static_cast<uint64_t>(
      std::count_if(plan.calls.begin(), plan.calls.end(), [](const plan::Call& call) { return !call.inserted; }));
}

}  // namespace

Result<uint64_t> bound_of_plan(const trace::Trace& trace, const plan::Plan& plan) {
  const Status same = check_same_recording(&trace, &plan, nullptr);
  if (!same.ok()) return same;
  const Result<analyzer::Workload> workload = analyzer::Planning(trace, options_for(&plan)).workload();
  if (!workload.ok()) return uint64_t{0};
  const Status known = check_same_iteration(trace, workload.value().graph.iteration_hash, &plan, nullptr);
  if (!known.ok()) return known;
  if (workload.value().graph.iteration_hash != plan.iteration_hash) return uint64_t{0};  // of a part of the trace
  return bound_of(report::kernel_times(workload.value(), &plan, nullptr).recorded, plan);
}

void LoadedFiles::tell(const std::string& path, FileKind kind, const std::string& name) {
  named.push_back(about(path, kind));
  named.back().name = name;
}

void LoadedFiles::find_plan_of_run() {
  if (!log || plan || log->iteration_hashes.empty()) return;
  for (const std::string& path : {log->kept_plan, log->plan_path}) {
    if (path.empty() || report::is_redacted(path) || file_size(path) == 0) continue;
    Result<plan::Plan> found = load_plan(path);
    char hash[17];
    if (found.ok()) trace::format_identity(found.value().iteration_hash, hash);
    if (!found.ok() || log->iteration_hashes.front() != hash) continue;  // a later run has written there
    if (!check_plan_of_run(*log, found.value()).ok()) continue;          // ... a plan of the same loop
    plan = std::move(found.value());
    tell(path, FileKind::plan, path);
    return;
  }
}

report::Inputs LoadedFiles::inputs() const {
  report::Inputs result;
  result.trace = trace ? &*trace : nullptr;
  result.plan = plan ? &*plan : nullptr;
  result.log = log ? &*log : nullptr;
  if (log) result.ending = log->ending;
  result.cut_short = !cut_short.line.empty();
  return result;
}

// Is the trace the recording that this run made itself?
bool LoadedFiles::made_by(const report::RunLog& run) const {
  if (!trace || run.recording == 0) return false;
  const auto found = trace->info.find("time.start_ns");
  return found != trace->info.end() && found->second == std::to_string(run.recording);
}

Status LoadedFiles::is_its_iteration(const analyzer::Workload& found) const {
  if (log && made_by(*log)) return {};
  return check_same_iteration(*trace, found.graph.iteration_hash, plan ? &*plan : nullptr, log ? &*log : nullptr);
}

Status LoadedFiles::find_iteration() {
  if (plan) loop_.calls = calls_of(*plan);
  if (!trace || (!plan && !log)) return {};
  const plan::Plan* const of_plan = plan ? &*plan : nullptr;
  analyzer::Planning planning(*trace, options_for(of_plan));
  const Result<analyzer::Workload> workload = report::workload_of(planning, of_plan);
  if (!workload.ok()) return {};
  loop_.found(workload.value());
  return is_its_iteration(workload.value());
}

void LoadedFiles::Loop::found(const analyzer::Workload& workload) {
  if (calls == 0) calls = workload.iteration.call_count;
  recorded = workload.iteration.occurrences;
}

void LoadedFiles::count_iterations() {
  if (!log) return;
  // What was written of a program that was killed may have none yet: then it had none, with and without the recording.
  const bool is_known = loop_.recorded > 0 || !log->ended;
  if (made_by(*log) && !log->counted && is_known) log->recorded = {loop_.calls, loop_.recorded};
  if (log->recorded) return report::count_recorded(*log, *log->recorded);
  const uint64_t calls = plan || log->plan_calls == 0 ? loop_.calls : log->plan_calls;
  if (plan || trace || calls > 0) report::keep_iterations(*log, calls);
}

void LoadedFiles::symbolize() {
  if (trace) report::symbolize(*trace);
}

// The run knows some things better than its recording.
analyzer::PlanOptions LoadedFiles::options_of_run() const {
  analyzer::PlanOptions options = options_for(plan ? &*plan : nullptr);
  if (!log) return options;
  plan::read_safety(log->safety.c_str(), &options.safety);
  if (!log->ended || !made_by(*log)) return options;
  // What the program holds around Reprise may grow behind the recording: the run's end has the last word. Old logs name
  // no peak, and what they say of graphs is their maximum, which may come when all else is gone.
  if (log->peak_program_bytes != 0) options.peak_bytes = log->peak_program_bytes;
  if (log->peak_program_bytes != 0 || log->graph_bytes == 0) options.held_bytes = log->outside_bytes;
  return options;
}

// Gives the plan the run's own kernel times.
void LoadedFiles::examine(const analyzer::Workload& found, plan::Safety safety, report::Inputs& result) {
  const bool own = log && made_by(*log);
  result.recorded_link = analyzer::link_of(found.machine);
  if (!plan) result.assumed_link = report::assumed_link(result.recorded_link, "the recording", true);
  loop_.found(found);
  belong_together = is_its_iteration(found);
  report::KernelTimes times = report::kernel_times(found, result.plan, result.log);
  // What the recording says of budgets is of its own loop, which a run with other arguments need not have.
  const bool planned =
      report::is_of_plan(found, result.plan, result.log) && !(log && !own && report::never_began(*log));
  result.one_loop = planned && report::is_nearly_all(found, result.plan, result.log, own);
  if (planned) {
    result.iteration_covers = report::covers_of_run(found, result.plan, result.log, own);
    result.minimum_bytes = analyzer::least_budget(found);
    result.known_share = known_share(found);
    result.curve = report::budget_curve(times.has_own ? times.own : times.recorded, safety, kCurveMilliseconds,
                                        times.has_own ? &*times.plan : result.plan);
  }
  if (times.recorded.graph.compute_ns != found.graph.compute_ns) {
    result.recorded_compute_ns = found.alone_ns;
    if (!times.has_own) result.whose_times = "as recorded until the plan was made";
  }
  if (plan) result.bound_ns = bound_of(times.recorded, *plan);
  if (!times.has_own) return;
  result.run_bound_ns = bound_of(times.own, *plan);
  result.made_compute_ns = plan->compute_ns;
  result.made_predicted_ns = plan->predicted_ns;
  plan = std::move(*times.plan);
}

report::Inputs LoadedFiles::examined() {
  report::Inputs result = inputs();
  result.files = named;
  result.version = version_text();
  result.date = today();
  symbolize();
  result.no_lines = trace && !trace->call_sites.empty() && !report::can_symbolize();
  if (plan) loop_.calls = calls_of(*plan);
  if (plan) {
    result.assumed_link = report::assumed_link(plan->link, "what the plan was made of", plan->program_hash != 0);
  }
  if (trace) {
    const analyzer::PlanOptions options = options_of_run();
    analyzer::Planning planning(*trace, options);
    result.peak_bytes = planning.peak_bytes();
    const Result<analyzer::Workload> workload = report::workload_of(planning, result.plan);
    if (workload.ok()) examine(workload.value(), options.safety, result);
    if (!workload.ok() && !plan) result.no_iteration = workload.status().message();
  }
  result.iteration_calls = loop_.calls;
  result.iterations_recorded = loop_.recorded;
  count_iterations();
  if (result.made_compute_ns > 0) result.whose_times = report::whose_times(*log);  // by the numbers that it has now
  return result;
}

}  // namespace reprise::tools
