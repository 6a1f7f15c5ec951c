#include "analyzer/planner/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "analyzer/planner/aliases.h"
#include "analyzer/planner/portfolio.h"
#include "analyzer/planner/to_plan.h"
#include "analyzer/planner/variants.h"
#include "analyzer/planner/workload.h"
#include "analyzer/verify/verify.h"
#include "preload/base/readable.h"
#include "preload/trace/names.h"

namespace reprise::analyzer {
namespace {

constexpr uint64_t kNear = 80;  // a form of the program is nearly as fast within this part of the best one's time

// To be typed, and to be read.
std::string bytes_text(uint64_t bytes) { return fmt::format("{} bytes ({})", bytes, readable_bytes(bytes)); }

Result<uint64_t> budget_of(const Workload& workload, const PlanOptions& options) {
  if (options.budget_bytes != 0) return options.budget_bytes;
  if (!(options.budget_fraction > 0) || !std::isfinite(options.budget_fraction) || options.budget_fraction > 1e6) {
    return Status{StatusCode::invalid_argument, "the plan needs a budget: bytes, or a positive fraction of the peak"};
  }
  return share_of_peak(workload, options.budget_fraction);
}

Status infeasible(const Workload& workload, uint64_t budget) {
  const uint64_t least = least_budget(workload);
  const uint64_t small = workload.reserved_bytes - workload.held_bytes;
  const char* help = "give that much, or make the program's batch smaller";
  if (least < workload.minimum_bytes) {
    help = "give that much, and nothing has to move";
  } else if (small > workload.largest.chunks * workload.graph.chunk_bytes) {
    help = "give that much; in a larger model or batch more tensors are large enough to leave";
  }
  return {StatusCode::infeasible,
          fmt::format("a budget of {} is too small: {}, so at least {} are needed; {}", bytes_text(budget),
                      least_budget_because(workload), bytes_text(least), help)};
}

// The program fits, its plan would not.
Status needless(uint64_t budget) {
  return {StatusCode::infeasible,
          fmt::format("all that the program has at once fits into {}: nothing has to move, and nothing is planned",
                      bytes_text(budget))};
}

Status too_little_host(const Workload& workload) {
  return {StatusCode::infeasible,
          fmt::format("what has to leave the device does not fit into {} of host memory{}",
                      bytes_text(workload.machine.host_bytes), workload.machine.has_ssd() ? " and the SSD" : "")};
}

Result<std::vector<const Policy*>> policies_of(const std::string& name) {
  if (name == "reprise") return reprise_members();
  if (name == "auto") {
    std::vector<const Policy*> all = reprise_members();
    for (const Policy* policy : all_policies()) {
      if (std::find(all.begin(), all.end(), policy) == all.end()) all.push_back(policy);
    }
    return all;
  }
  if (const Policy* policy = find_policy(name)) return std::vector<const Policy*>{policy};
  return check_policy(name);
}

// A plan for fewer chunks is also one for these: with it, more memory never hurts. Tries fewer and fewer, down to where
// no plan can be better than the best one so far. Not for graphs and budgets where that would take long.
void add_smaller_budgets(const Workload& workload, const std::vector<const Policy*>& policies, uint64_t chunks,
                         Portfolio& portfolio) {
  const uint64_t budgets = chunks - workload.largest.chunks;
  if (workload.graph.calls.size() * budgets > kSmallerBudgetsEffort) return;
  for (uint64_t fewer = chunks; fewer > workload.largest.chunks;) {
    if (portfolio.moves_nothing()) return;  // the program as it is
    --fewer;
    if (const PlanCandidate* best = portfolio.best()) {
      const bool remaps = best->layout.remap_count > 0 && workload.machine.remap_ns_per_chunk > 0;
      const uint64_t bound = bounds_of(workload.graph, fewer, workload.machine).iteration_ns;
      if (!remaps && bound >= best->prediction.iteration_ns) return;
    }
    Portfolio smaller(workload, fewer);
    smaller.run(policies);
    portfolio.add_best_of(std::move(smaller));
  }
}

// What any policy plans when it is asked for alone, with the effort of one: in the portfolio the promising ones share
// that, and baselines are not in it.
void add_each_alone(const Workload& workload, uint64_t chunks, Portfolio& portfolio) {
  if (workload.graph.op_count > kEachAloneOps) return;
  const uint64_t least =
      (workload.device_subgraphs.empty() ? bounds_of(workload.graph, chunks, workload.machine)
                                         : bounds_of_devices(workload.device_subgraphs, chunks, workload.machine))
          .iteration_ns;
  for (const auto* list : {&all_policies(), &baseline_policies()}) {
    for (const Policy* policy : *list) {
      const PlanCandidate* best = portfolio.best();
      if (portfolio.moves_nothing() || (best != nullptr && best->prediction.iteration_ns <= least)) return;
      portfolio.add_alone(*policy);
    }
  }
}

// Split tensors are planned by the policy that was best with whole ones, and by g10_late, which gains most of them: it
// wants a tensor to be away for long compared with its copies, and those of a part are short.
std::vector<const Policy*> policies_for_split_tensors(const Portfolio& portfolio) {
  std::vector<const Policy*> policies = {&g10_late_policy()};
  const PlanCandidate* best = portfolio.best();
  if (best != nullptr && best->recipe.policy != policies.front())
    policies.insert(policies.begin(), best->recipe.policy);
  return policies;
}

// Which form of the program has the fastest plan: as it is, or a variant. Those that are nearly as fast as the best
// one get better homes before it is decided.
class Contest {
 public:
  // `plain`: of the program as it is. `improves`: may homes be sought by trial? Not where one policy is asked for.
  Contest(const Workload& workload, Portfolio& plain, bool improves) : improves_(improves) {
    entrants_.push_back({&workload, &plain, false});
  }

  void add(const Workload& variant, uint64_t budget, const std::vector<const Policy*>& policies) {
    Portfolio& portfolio = variants_.emplace_back(variant, useful_chunks(variant, budget));
    portfolio.run(policies);
    entrants_.push_back({&variant, &portfolio, false});
  }

  void decide() {
    choose();
    for (Entrant& entrant : entrants_) {
      if (!improves_ || entrant.improved || !is_near(entrant)) continue;
      entrant.portfolio->improve_homes();
      entrant.improved = true;
    }
    choose();
  }

  const Workload* workload() const { return entrants_[best_].workload; }
  Portfolio* winner() const { return entrants_[best_].portfolio; }
  uint32_t candidates() const {
    uint32_t count = 0;
    for (const Entrant& entrant : entrants_) count += entrant.portfolio->count();
    return count;
  }

 private:
  struct Entrant {
    const Workload* workload;
    Portfolio* portfolio;
    bool improved;
  };

  void choose() {
    for (size_t i = 0; i < entrants_.size(); ++i) {
      const PlanCandidate* other = entrants_[i].portfolio->best();
      const PlanCandidate* best = winner()->best();
      if (other == nullptr || i == best_) continue;
      if (best == nullptr || is_better(*other, *best)) best_ = i;
    }
  }

  bool is_near(const Entrant& entrant) const {
    const PlanCandidate* other = entrant.portfolio->best();
    const PlanCandidate* best = winner()->best();
    if (other == nullptr || best == nullptr) return false;
    return other->prediction.iteration_ns <= best->prediction.iteration_ns + best->prediction.iteration_ns / kNear;
  }

  bool improves_;
  std::vector<Entrant> entrants_;
  std::deque<Portfolio> variants_;
  size_t best_ = 0;
};

// The candidate is used up: of a large graph it is most of the memory.
plan::Plan plan_of(const Workload& workload, uint64_t budget, PlanCandidate candidate, const PlanOptions& options,
                   PlanSummary* summary) {
  if (summary != nullptr) {
    summary->tiers = candidate.tiers;
    summary->trial_ns.clear();
    for (const SimulationOptions& trial : options.trials) {
      summary->trial_ns.push_back(simulate(workload.graph, candidate.graph, workload.machine, trial).iteration_ns);
    }
  }
  plan::Plan plan = to_plan(workload, budget, std::move(candidate));
  plan.safety = options.safety;
  if (plan::is_by_kernel(options.safety)) set_aliases(plan);
  return plan;
}

// What there is to say of the plan, the best of `candidates`; `used`: the form of the program that it is of.
void summarize(const Workload& workload, const Workload& used, const plan::Plan& plan, uint32_t candidates,
               PlanSummary* asked) {
  if (asked == nullptr) return;
  PlanSummary& summary = *asked;
  summary.candidates = candidates;
  summary.iteration = workload.iteration;
  const uint64_t capacity = chunks_that_fit(workload, plan.budget_bytes);
  // What is recomputed need not move: such a plan is held to what the ops take even with room for everything.
  const uint64_t room = plan::recomputes(plan) ? std::max(capacity, workload.graph.peak_chunks) : capacity;
  const TaskGraph& graph = plan::has_split_tensors(plan) && !plan::recomputes(plan) ? used.graph : workload.graph;
  summary.bounds = workload.device_subgraphs.empty()
                       ? bounds_of(graph, room, workload.machine)
                       : bounds_of_devices(workload.device_subgraphs, capacity, workload.machine);
  summary.op_count = workload.graph.op_count;
  summary.estimated_count = workload.graph.estimated_count;
  summary.tensor_count = static_cast<uint32_t>(workload.graph.tensors.size());
  summary.capacity_chunks = capacity;
  summary.recompute_ns = used.graph.recompute_ns;
}

Status nothing_found(const Workload& workload, const Portfolio& portfolio) {
  if (!portfolio.tiers_fit()) return too_little_host(workload);
  return {StatusCode::internal, "no policy found a plan for a feasible budget"};
}

// What a plan may take, if there can be one.
Result<uint64_t> feasible_budget(const Workload& workload, const PlanOptions& options) {
  Result<uint64_t> budget = budget_of(workload, options);
  if (!budget.ok() || budget.value() >= workload.minimum_bytes) return budget;
  if (holds_everything(workload, budget.value())) return needless(budget.value());
  return infeasible(workload, budget.value());
}

}  // namespace

std::string least_budget_because(const Workload& workload) {
  const uint64_t chunk_bytes = workload.graph.chunk_bytes;
  const uint64_t large = workload.largest.chunks * chunk_bytes;
  const uint64_t small = workload.reserved_bytes - workload.held_bytes;
  std::string why;
  if (large != 0) {
    why = fmt::format("{} works on {} at once",
                      trace::shown_name(workload.graph.calls[workload.largest.call].call.name), bytes_text(large));
  }
  if (small != 0) {
    why += fmt::format("{}{} are kept by tensors smaller than half a chunk of {}", why.empty() ? "" : " while ",
                       bytes_text(small), bytes_text(chunk_bytes));
  }
  if (workload.held_bytes != 0) {
    why +=
        fmt::format("{}the program holds {} around them", why.empty() ? "" : " and ", bytes_text(workload.held_bytes));
  }
  // A plan keeps small tensors apart, which may cost more than moving the others gains.
  if (const uint64_t least = least_budget(workload); least < workload.minimum_bytes) {
    why += fmt::format(": a plan takes {}, the program without one {}", bytes_text(workload.minimum_bytes),
                       bytes_text(least));
  }
  return why;
}

Result<plan::Plan> make_plan(const Workload& workload, const PlanOptions& options, PlanSummary* summary) {
  Result<std::vector<const Policy*>> policies = policies_of(options.policy);
  if (!policies.ok()) return policies.status();
  const Result<uint64_t> budget = feasible_budget(workload, options);
  if (!budget.ok()) return budget.status();
  const uint64_t chunks = useful_chunks(workload, budget.value());
  Portfolio portfolio(workload, chunks);
  portfolio.run(policies.value());
  if (options.policy == "auto") {
    add_smaller_budgets(workload, policies.value(), chunks, portfolio);
    add_each_alone(workload, chunks, portfolio);
  }
  Contest contest(workload, portfolio, policies.value().size() > 1);
  std::optional<Variants> variants;
  if (!portfolio.moves_nothing()) variants.emplace(workload, budget.value(), options);
  for (size_t i = 0; variants && i < variants->all().size(); ++i) {
    contest.add(variants->all()[i], budget.value(), policies.value());
  }
  contest.decide();
  // Tensors are split in what was best so far, and, if that was a variant, in the program as it is, too.
  std::deque<Workload> split;
  const Workload* const best_whole = contest.workload();
  for (const Workload* whole : best_whole == &workload ? std::vector{best_whole} : std::vector{best_whole, &workload}) {
    if (!variants || contest.winner()->is_ideal()) break;
    if (std::optional<Workload> variant = variants->split(*whole)) {
      contest.add(split.emplace_back(std::move(*variant)), budget.value(),
                  policies_for_split_tensors(whole == &workload ? portfolio : *contest.winner()));
      contest.decide();
    }
  }
  const Workload* used = contest.workload();
  if (contest.winner()->best() == nullptr) return nothing_found(workload, portfolio);
  plan::Plan plan = plan_of(*used, budget.value(), contest.winner()->take_best(), options, summary);
  plan.minimum_bytes = least_budget(workload);
  if (options.policy == "reprise") plan.policy = options.policy;
  Status status = verify(plan);
  std::optional<Portfolio> plain;
  if (!status.ok() && policies.value().size() > 1) {
    // A plan that is refused is a defect of ours; without retiming, search and recompute there is another one.
    plain.emplace(workload, chunks);
    plain->run(searched_policies(), false);
    if (plain->best() == nullptr) return status;
    if (summary != nullptr) summary->refusal = status;
    used = &workload;
    plan = plan_of(workload, budget.value(), plain->take_best(), options, summary);
    status = verify(plan);
  }
  if (!status.ok()) return status;
  summarize(workload, *used, plan, contest.candidates(), summary);
  return plan;
}

Result<plan::Plan> make_first_plan(const Workload& workload, const PlanOptions& options, PlanSummary* summary) {
  const Result<uint64_t> budget = feasible_budget(workload, options);
  if (!budget.ok()) return budget.status();
  Portfolio portfolio(workload, useful_chunks(workload, budget.value()));
  for (const Policy* policy : {&disco_policy(), &link_aware_policy()}) portfolio.run_in_haste({policy});
  if (portfolio.best() == nullptr) return nothing_found(workload, portfolio);
  plan::Plan plan = plan_of(workload, budget.value(), portfolio.take_best(), options, summary);
  plan.minimum_bytes = least_budget(workload);
  if (const Status status = verify(plan); !status.ok()) return status;
  summarize(workload, workload, plan, portfolio.count(), summary);
  return plan;
}

}  // namespace reprise::analyzer
