#include "tools/report/compare/two_plans.h"

#include <algorithm>

#include "tools/report/same_recording.h"
#include "tools/report/symbols/symbols.h"

namespace reprise::tools {
namespace {

bool is(const std::string& path, FileKind wanted) {
  const Result<FileKind> kind = kind_of(path);
  return kind.ok() && kind.value() == wanted;
}

Status load_one(const std::string& path, TwoPlans& files) {
  if (is(path, FileKind::plan)) {
    Result<plan::Plan> plan = load_plan(path);
    if (!plan.ok()) return plan.status();
    files.plans.push_back({path, std::move(plan.value())});
    return {};
  }
  Result<trace::Trace> trace = load_trace(path);
  if (!trace.ok()) return trace.status();
  files.cut_short = cut_short(path, trace.value());
  files.trace = std::move(trace.value());
  return {};
}

}  // namespace

bool are_two_plans(const std::vector<std::string>& paths) {
  const auto count = [&](FileKind kind) {
    return std::count_if(paths.begin(), paths.end(), [kind](const std::string& path) { return is(path, kind); });
  };
  return count(FileKind::plan) == 2 && static_cast<size_t>(2 + count(FileKind::trace)) == paths.size();
}

Status load(const std::vector<std::string>& paths, TwoPlans& files) {
  for (const std::string& path : paths) {
    Status loaded = load_one(path, files);
    if (!loaded.ok()) return loaded;
  }
  Status same = check_same_plans(files.plans[0].plan, files.plans[1].plan);
  if (!same.ok() || !files.trace) return same;
  for (TwoPlans::One& one : files.plans) {
    const Result<uint64_t> bound = bound_of_plan(*files.trace, one.plan);
    if (!bound.ok()) return {bound.status().code(), one.path + ": " + bound.status().message()};
    one.bound_ns = bound.value();
  }
  report::symbolize(*files.trace);
  return {};
}

}  // namespace reprise::tools
