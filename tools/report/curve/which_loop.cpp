#include "tools/report/curve/which_loop.h"

#include <fmt/core.h>

#include <algorithm>

#include "preload/base/readable.h"
#include "preload/trace/identity.h"

namespace reprise::report {
namespace {

bool is_of_program(const plan::Call& call) { return !call.inserted && call.recompute_of == plan::kNone; }

analyzer::LoopCalls calls_of(const plan::Plan& plan) {
  analyzer::LoopCalls calls;
  for (const plan::Call& call : plan.calls) {
    if (is_of_program(call)) calls.add(call.signature);
  }
  return calls;
}

bool same_calls(const analyzer::Workload& workload, const plan::Plan& plan) {
  analyzer::LoopCalls calls;
  for (const analyzer::GraphCall& entry : workload.graph.calls) calls.add(entry.call.signature);
  return calls == calls_of(plan);
}

// By the first plan alone, or by all.
double planned_ns(const RunLog& log, bool first) {
  double sum = 0;
  for (const RunIteration& it : log.iterations) {
    if (it.planned && (!first || it.plan == 0)) sum += static_cast<double>(it.wall_ns);
  }
  return sum;
}

}  // namespace

Result<analyzer::Workload> workload_of(const trace::Trace& trace, const analyzer::PlanOptions& options,
                                       const plan::Plan* plan) {
  Result<analyzer::Workload> most = analyzer::make_workload(trace, options);
  if (plan == nullptr || (most.ok() && same_calls(most.value(), *plan))) return most;
  analyzer::PlanOptions of_plan = options;
  of_plan.loop = calls_of(*plan);
  Result<analyzer::Workload> planned = analyzer::make_workload(trace, of_plan);
  return planned.ok() ? std::move(planned) : std::move(most);
}

bool is_of_plan(const analyzer::Workload& workload, const plan::Plan* plan, const RunLog* log) {
  if (plan != nullptr) return same_calls(workload, *plan);
  if (log == nullptr || log->iteration_hashes.empty() || log->iteration_hashes.front().empty()) return true;
  char hash[17];
  trace::format_identity(workload.graph.iteration_hash, hash);
  return log->iteration_hashes.front() == hash;
}

// A recording of the run itself is of what no plan ruled. Of another run's there is nothing that says what this one did
// there: evaluate, save, or the same loop with other sizes.
double share_of_run(const analyzer::Workload& workload, const RunLog* log, bool own_recording) {
  const double coverage = workload.iteration.coverage;
  if (log == nullptr || (!own_recording && log->iterations_planned == 0)) return coverage;
  const uint64_t begin_ns = own_recording ? log->start_ns : std::max(log->start_ns, log->activation_at_ns);
  if (log->end_ns <= begin_ns) return coverage;
  const double all = static_cast<double>(log->end_ns - begin_ns);
  const double planned = std::min(all, planned_ns(*log, false));
  return (std::min(planned, planned_ns(*log, true)) + (own_recording ? coverage * (all - planned) : 0)) / all;
}

bool is_nearly_all(const analyzer::Workload& workload, const RunLog* log, bool own_recording) {
  if (log != nullptr && log->plan_count > 1) return false;
  return share_of_run(workload, log, own_recording) >= analyzer::kNearlyAll;
}

std::string covers_of_run(const analyzer::Workload& workload, const RunLog* log, bool own_recording) {
  if (log == nullptr || log->iterations_planned == 0) return covered(workload.iteration);
  return fmt::format("about {} % of the run's time{}", decimal(100 * share_of_run(workload, log, own_recording), 1, 0),
                     own_recording ? "" : " since a plan came in force");
}

}  // namespace reprise::report
