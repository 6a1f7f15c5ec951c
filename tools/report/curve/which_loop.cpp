#include "tools/report/curve/which_loop.h"

#include <algorithm>

#include "preload/trace/identity.h"
#include "preload/trace/signature.h"

namespace reprise::report {
namespace {

constexpr double kNearlyAll = 0.8;

bool is_of_program(const plan::Call& call) { return !call.inserted && call.recompute_of == plan::kNone; }

// A loop has the same calls wherever it is entered.
bool same_calls(const analyzer::Workload& workload, const plan::Plan& plan) {
  uint64_t one = 0;
  uint64_t other = 0;
  for (const analyzer::GraphCall& entry : workload.graph.calls) one += trace::hash_mix(1, entry.call.signature);
  for (const plan::Call& call : plan.calls) other += is_of_program(call) ? trace::hash_mix(1, call.signature) : 0;
  return one == other;
}

uint64_t planned_ns(const RunLog& log) {
  uint64_t sum = 0;
  for (const RunIteration& it : log.iterations) sum += it.planned ? it.wall_ns : 0;
  return sum;
}

}  // namespace

Result<analyzer::Workload> workload_of(const trace::Trace& trace, const analyzer::PlanOptions& options,
                                       const plan::Plan* plan) {
  Result<analyzer::Workload> most = analyzer::make_workload(trace, options);
  if (!most.ok() || plan == nullptr || same_calls(most.value(), *plan)) return most;
  analyzer::PlanOptions longer = options;
  longer.least_calls = static_cast<uint64_t>(std::count_if(plan->calls.begin(), plan->calls.end(), is_of_program));
  Result<analyzer::Workload> planned = analyzer::make_workload(trace, longer);
  return planned.ok() && same_calls(planned.value(), *plan) ? std::move(planned) : std::move(most);
}

bool is_of_plan(const analyzer::Workload& workload, const plan::Plan* plan, const RunLog* log) {
  if (plan != nullptr) return same_calls(workload, *plan);
  if (log == nullptr || log->iteration_hashes.empty() || log->iteration_hashes.front().empty()) return true;
  char hash[17];
  trace::format_identity(workload.graph.iteration_hash, hash);
  return log->iteration_hashes.front() == hash;
}

// A recording of a run is of what no plan ruled.
bool is_nearly_all(const analyzer::Workload& workload, const RunLog* log) {
  const double coverage = workload.iteration.coverage;
  if (log == nullptr || log->end_ns <= log->start_ns) return coverage >= kNearlyAll;
  if (log->plan_count > 1) return false;
  const double all = static_cast<double>(log->end_ns - log->start_ns);
  const double planned = std::min(all, static_cast<double>(planned_ns(*log)));
  return planned + coverage * (all - planned) >= kNearlyAll * all;
}

}  // namespace reprise::report
