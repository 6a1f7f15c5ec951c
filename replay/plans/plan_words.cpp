#include "replay/plans/plan_words.h"

#include <algorithm>

#include "analyzer/plan/enforced.h"
#include "preload/base/causes.h"
#include "preload/trace/identity.h"
#include "preload/trace/signature.h"
#include "replay/follow/loop_counter.h"

namespace reprise::replay {

std::string identity_text(uint64_t hash) noexcept {
  char text[17];
  trace::format_identity(hash, text);
  return text;
}

void write_plan(RunLogWriter& log, const PlanIndex& index, const PlanTaken& taken) noexcept {
  const plan::Plan& plan = index.plan;
  const uint64_t calls = words_of(index).size();
  uint64_t launches = 0;
  uint64_t audited = 0;
  for (const plan::Call& call : plan.calls) {
    if (call.op == trace::OpKind::launch && call.kind == plan::CallKind::op) ++launches;
    if (call.audited != 0) ++audited;
  }
  RunLogLine line(run_log::plan::line);
  line.add(run_log::plan::index, uint64_t{taken.number})
      .add(run_log::plan::path, taken.path)
      .add(run_log::plan::iteration_hash, identity_text(plan.iteration_hash))
      .add(run_log::plan::recording_ns, taken.recording_ns)
      .add(run_log::plan::planner_ns, taken.planner_ns)
      .add(run_log::plan::calls, calls)
      .add(run_log::plan::policy, plan.policy)
      .add(run_log::plan::chunk_count, plan.chunk_count)
      .add(run_log::plan::budget_bytes, plan.budget_bytes)
      .add(run_log::plan::reserved_bytes, plan.reserved_bytes)
      .add(run_log::plan::predicted_ns, plan.predicted_ns)
      .add(run_log::plan::compute_ns, plan.compute_ns)
      .add(run_log::plan::offload_bytes, plan.offload_bytes)
      .add(run_log::plan::reload_bytes, plan.reload_bytes)
      .add(run_log::plan::launches, launches)
      .add(run_log::plan::audited_launches, audited)
      .add(run_log::plan::aliased_tensors,
           static_cast<uint64_t>(std::count(index.aliased.begin(), index.aliased.end(), true)));
  if (taken.kept) line.add(run_log::plan::kept, uint64_t{1});
  if (taken.replaces) line.add(run_log::plan::replaces, uint64_t{*taken.replaces});
  log.write(line);
  say<Cause::plan_made>(taken.number + 1, calls, plan.chunk_count * plan.chunk_bytes + plan.reserved_bytes,
                        plan.offload_bytes, plan.reload_bytes, plan.predicted_ns);
}

void warn_of_given(const Config& config, const Shared& shared, const plan::Plan& plan, uint64_t fixed_budget) noexcept {
  const bool of_another = plan.program_hash != 0 && plan.program_hash != trace::program_identity("/proc/self/exe");
  if (of_another) {
    say<Cause::plan_of_another_program>(config.plan);
  }
  if (fixed_budget != 0 && fixed_budget < plan.budget_bytes) {
    say<Cause::plan_of_another_budget>(config.plan, plan.budget_bytes, fixed_budget);
  }
  if (config.launched()) return;  // the launcher has said it
  if (const std::string other = plan::made_for_another(plan, shared.safety); !other.empty()) {
    say<Cause::plan_of_another_kind>(config.plan, other);
  }
  if (!config.budget.given() || of_another) return;  // what the plan's program takes says nothing of this one
  const uint64_t allowed = budget_in_bytes(shared.account.budget, plan.peak_bytes, 0);
  if (const std::string less = plan::made_for_less(plan, allowed); !less.empty()) {
    say<Cause::plan_of_another_kind>(config.plan, less);
  }
}

uint64_t calls_of(const plan::Plan& plan) noexcept {
  uint64_t sum = 0;
  for (const plan::Call& call : plan.calls) {
    if (!call.inserted && call.recompute_of == plan::kNone) sum += trace::hash_mix(1, call.signature);
  }
  return sum;
}

uint64_t alive_at_start(const plan::Plan& plan) noexcept {
  uint64_t sum = 0;
  for (const plan::Tensor& tensor : plan.tensors) {
    if (tensor.allocate_call == plan::kNone) sum += trace::hash_mix(2, tensor.size);
  }
  return sum;
}

bool has_no_complete(const PlanIndex& index) noexcept {
  const auto& calls = index.plan.calls;
  return std::none_of(calls.begin(), calls.end(), [](const plan::Call& call) { return call.audited != 0; });
}

void tell_of_none_complete(plan::Safety safety) noexcept {
  if (safety == plan::Safety::audited) say<Cause::none_audited>();
  if (safety == plan::Safety::proven) say<Cause::none_proven>();
}

}  // namespace reprise::replay
