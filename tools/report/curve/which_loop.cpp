#include "tools/report/curve/which_loop.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "preload/base/readable.h"
#include "preload/trace/identity.h"
#include "tools/report/log/measured.h"

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

// How much of the first plan's iteration is over at this of its calls: by what they take on the device, where the plan
// is there.
double part_until(uint64_t call, const plan::Plan* plan, const RunLog& log) {
  double before = 0;
  double all = 0;
  for (uint64_t i = 0; plan != nullptr && i < plan->calls.size(); ++i) {
    if (!is_of_program(plan->calls[i])) continue;
    const auto ns = static_cast<double>(plan->calls[i].duration_ns);
    all += ns;
    if (i < call) before += ns;
  }
  if (all > 0) return before / all;
  const uint64_t calls = std::max(call, log.plan_calls);
  return log.plan_calls == 0 ? 0 : static_cast<double>(call) / static_cast<double>(calls);
}

// Of the plan's loop, since the plan came in force: those that the program went through all the same. Which of several
// plans' they are is not known.
uint64_t iterations_without_plan(const RunLog& log) {
  if (!log.counted || log.plan_count > 1) return 0;
  uint64_t before = 0;
  for (const RunRepeats& over : log.repeats) before += over.iterations;
  for (const RunIteration& it : log.iterations) {
    if (!it.planned && it.end_ns <= log.activation_at_ns) ++before;
  }
  return log.iterations_on_demand - std::min(before, log.iterations_on_demand);
}

// The first plan's iterations that the program left in their middle, as the end of a loop often does, and those that it
// was in without the plan. The log has no times of them, so they count as the median one, or as much of that as was
// over. Which of those that were left are among the second is not known: the longest.
double unplanned_ns(const RunLog& log, const plan::Plan* plan, uint64_t without_plan) {
  std::vector<double> parts;
  for (const RunDivergence& one : log.divergences) {
    if (!one.loop_end && one.plan == 0) parts.push_back(part_until(one.call, plan, log));
  }
  std::sort(parts.begin(), parts.end());
  parts.resize(parts.size() - std::min<size_t>(parts.size(), without_plan));
  const double count = std::accumulate(parts.begin(), parts.end(), static_cast<double>(without_plan));
  return count * static_cast<double>(median_of_first_plan(log));
}

}  // namespace

Result<analyzer::Workload> workload_of(analyzer::Planning& planning, const plan::Plan* plan) {
  Result<analyzer::Workload> most = planning.workload();
  if (plan == nullptr || (most.ok() && same_calls(most.value(), *plan))) return most;
  Result<analyzer::Workload> planned = planning.workload_of(calls_of(*plan));
  return planned.ok() ? std::move(planned) : std::move(most);
}

bool is_of_plan(const analyzer::Workload& workload, const plan::Plan* plan, const RunLog* log) {
  if (plan != nullptr) return same_calls(workload, *plan);
  if (log == nullptr || log->iteration_hashes.empty() || log->iteration_hashes.front().empty()) return true;
  char hash[17];
  trace::format_identity(workload.graph.iteration_hash, hash);
  return log->iteration_hashes.front() == hash;
}

// The run's own recording shows what ran without a plan. Another run's recording does not say what this run did there:
// evaluate, save, or the same loop with other sizes.
double share_of_run(const analyzer::Workload& workload, const plan::Plan* plan, const RunLog* log, bool own_recording) {
  const double coverage = workload.iteration.coverage;
  if (log == nullptr || (!own_recording && log->iterations_planned == 0)) return coverage;
  const uint64_t begin_ns = own_recording ? log->start_ns : std::max(log->start_ns, log->activation_at_ns);
  if (log->end_ns <= begin_ns) return coverage;
  const double all = static_cast<double>(log->end_ns - begin_ns);
  const double left = unplanned_ns(*log, plan, own_recording ? 0 : iterations_without_plan(*log));
  const double ruled = std::min(all, planned_ns(*log, false) + left);
  return (std::min(ruled, planned_ns(*log, true) + left) + (own_recording ? coverage * (all - ruled) : 0)) / all;
}

bool is_nearly_all(const analyzer::Workload& workload, const plan::Plan* plan, const RunLog* log, bool own_recording) {
  if (log != nullptr && log->plan_count > 1) return false;
  return share_of_run(workload, plan, log, own_recording) >= analyzer::kNearlyAll;
}

std::string covers_of_run(const analyzer::Workload& workload, const plan::Plan* plan, const RunLog* log,
                          bool own_recording) {
  if (log == nullptr || log->iterations_planned == 0) return covered(workload.iteration);
  const double share = share_of_run(workload, plan, log, own_recording);
  return fmt::format("about {} % of the run's time{}", decimal(100 * share, 1, 0),
                     own_recording ? "" : " since a plan came in force");
}

}  // namespace reprise::report
