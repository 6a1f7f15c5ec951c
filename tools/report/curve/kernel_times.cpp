#include "tools/report/curve/kernel_times.h"

#include <fmt/core.h>

#include "analyzer/planner/to_plan.h"
#include "tools/report/log/measured.h"
#include "tools/report/view/timeline.h"

namespace reprise::report {
namespace {

// false: the plan is of other calls. `ns`: by call of the plan.
bool set_times(analyzer::TaskGraph& graph, const plan::Plan& plan, const std::vector<uint64_t>& ns) {
  if (graph.iteration_hash != plan.iteration_hash) return false;
  std::vector<uint64_t> times;
  for (uint32_t i = 0; i < plan.calls.size(); ++i) {
    const plan::Call& call = plan.calls[i];
    if (call.inserted) continue;
    if (times.size() == graph.calls.size()) return false;
    if (graph.calls[times.size()].call.signature != call.signature) return false;
    times.push_back(ns[i]);
  }
  if (times.size() != graph.calls.size()) return false;
  graph.compute_ns = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    plan::Call& call = graph.calls[i].call;
    call.duration_ns = times[i];
    if (call.kind == plan::CallKind::op && call.recompute_of == plan::kNone) graph.compute_ns += times[i];
  }
  return true;
}

}  // namespace

KernelTimes kernel_times(const analyzer::Workload& workload, const plan::Plan* plan, const RunLog* log) {
  KernelTimes times;
  times.recorded = workload;
  if (plan == nullptr) return times;
  std::vector<uint64_t> ns;
  ns.reserve(plan->calls.size());
  for (const plan::Call& call : plan->calls) ns.push_back(call.duration_ns);
  set_times(times.recorded.graph, *plan, ns);
  if (log == nullptr) return times;
  const OwnTimes own = own_times(*plan, *log);
  if (own.compute_ns == 0) return times;
  times.plan = analyzer::retimed(workload, *plan, own.ns);
  times.own = workload;
  times.has_own = times.plan && set_times(times.own.graph, *plan, own.ns);
  return times;
}

std::string whose_times(const RunLog& log) {
  return fmt::format("of iteration {} of this run{}", measured_iteration(log).value_or(0), unlike_words(log));
}

}  // namespace reprise::report
