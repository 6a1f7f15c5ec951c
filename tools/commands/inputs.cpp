#include "tools/commands/inputs.h"

#include <fmt/core.h>

#include <cstdio>
#include <cstring>

#include "analyzer/bounds/bounds.h"
#include "analyzer/planner.h"
#include "tools/commands/files.h"

namespace reprise::tools {
namespace {

constexpr char kPlanMagic[] = "RPPLAN";  // how plan files begin; the plan library checks the rest

// Every message names the file, whoever wrote it.
Status named(const std::string& path, const Status& status) {
  if (status.message().find(path) != std::string::npos) return status;
  return {status.code(), fmt::format("{}: {}", path, status.message())};
}

template <typename T>
Status place(const std::string& path, std::optional<T>& to, Result<T> from) {
  if (!from.ok()) return named(path, from.status());
  if (to.has_value()) {
    return {StatusCode::invalid_argument, fmt::format("{}: a second file of the same kind; give one of each", path)};
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
  return got > 0 && first[0] == '{' ? FileKind::run_log : FileKind::unknown;
}

Result<plan::Plan> load_plan(const std::string& path) {
  const Status readable = check_readable(path);
  if (!readable.ok()) return readable;
  Result<plan::Plan> plan = plan::read_plan(path);
  if (!plan.ok()) return named(path, plan.status());
  return plan;
}

Result<trace::Trace> load_trace(const std::string& path) {
  const Status readable = check_readable(path);
  if (!readable.ok()) return readable;
  Result<trace::Trace> trace = trace::read_trace(path);
  if (!trace.ok()) return named(path, trace.status());
  return trace;
}

Status load(const std::vector<std::string>& paths, LoadedFiles& files) {
  for (const std::string& path : paths) {
    Result<FileKind> kind = kind_of(path);
    if (!kind.ok()) return kind.status();
    Status status;
    switch (kind.value()) {
      case FileKind::trace:
        status = place(path, files.trace, load_trace(path));
        break;
      case FileKind::plan:
        status = place(path, files.plan, load_plan(path));
        break;
      case FileKind::run_log:
        status = place(path, files.log, report::read_run_log(path));
        break;
      case FileKind::unknown:
        status = {StatusCode::corrupt, fmt::format("{}: neither a trace, a plan nor a run log; check the file", path)};
    }
    if (!status.ok()) return status;
  }
  return {};
}

uint64_t bound_of(const trace::Trace& trace, const plan::Plan& plan) {
  if (plan.granularity == 0 || plan.budget_bytes < plan.reserved_bytes) return 0;
  analyzer::PlanOptions options;
  options.budget_bytes = plan.budget_bytes;
  options.granularity = plan.granularity;
  Result<analyzer::Workload> workload = analyzer::make_workload(trace, options);
  if (!workload.ok()) return 0;
  const analyzer::Workload& found = workload.value();
  const uint64_t capacity = (plan.budget_bytes - plan.reserved_bytes) / plan.granularity;
  if (capacity < found.largest.chunks) return 0;
  return analyzer::bounds_of(found.graph, capacity, found.machine).iteration_ns;
}

report::Inputs LoadedFiles::inputs() const {
  report::Inputs result;
  result.trace = trace ? &*trace : nullptr;
  result.plan = plan ? &*plan : nullptr;
  result.log = log ? &*log : nullptr;
  if (trace && plan) result.bound_ns = bound_of(*trace, *plan);
  return result;
}

}  // namespace reprise::tools
