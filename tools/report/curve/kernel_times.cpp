#include "tools/report/curve/kernel_times.h"

#include <fmt/core.h>

#include "analyzer/planner/to_plan.h"
#include "tools/report/log/measured.h"
#include "tools/report/view/timeline.h"

namespace reprise::report {

KernelTimes kernel_times(const analyzer::Workload& workload, const plan::Plan* plan, const RunLog* log) {
  KernelTimes times;
  times.recorded = workload;
  if (plan == nullptr) return times;
  std::vector<uint64_t> ns;
  ns.reserve(plan->calls.size());
  for (const plan::Call& call : plan->calls) ns.push_back(call.duration_ns);
  // A page has one figure of computing alone, the plan's: plans of before this release have another one.
  if (analyzer::set_times(times.recorded, *plan, ns)) times.recorded.alone_ns = plan->compute_ns;
  if (log == nullptr) return times;
  const OwnTimes own = own_times(*plan, *log);
  if (own.compute_ns == 0) return times;
  times.plan = analyzer::retimed(workload, *plan, own.ns);
  times.own = workload;
  times.has_own = times.plan && analyzer::set_times(times.own, *plan, own.ns);
  return times;
}

std::string whose_times(const RunLog& log) {
  return fmt::format("of iteration {} of this run{}", measured_iteration(log).value_or(0), unlike_words(log));
}

}  // namespace reprise::report
