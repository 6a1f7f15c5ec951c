#include "analyzer/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "analyzer/candidate.h"
#include "analyzer/to_plan.h"
#include "analyzer/verify/verify.h"
#include "preload/trace/names.h"

namespace reprise::analyzer {
namespace {

constexpr uint64_t kDefaultGranularity = 2 << 20;
// Effective budgets that the portfolio tries: with a few chunks to spare, every tensor finds a home.
constexpr double kFractions[] = {1.0, 0.98, 0.96, 0.94, 0.90, 0.85, 0.80, 0.70, 0.60, 0.50, 0.0};
constexpr HomeOrder kOrders[] = {HomeOrder::longest_first, HomeOrder::returning_first, HomeOrder::persistent_first};
constexpr size_t kEnoughPerPolicy = 3;               // candidates with homes for everything
constexpr uint64_t kMostChunks = uint64_t{1} << 27;  // of a plan: memory stays bounded whatever the budget

uint64_t info_number(const trace::Trace& trace, const char* key, uint64_t fallback) {
  const auto found = trace.info.find(key);
  if (found == trace.info.end()) return fallback;
  char* end = nullptr;
  const unsigned long long value = std::strtoull(found->second.c_str(), &end, 10);
  return end != found->second.c_str() && *end == '\0' ? value : fallback;
}

std::string bytes_text(uint64_t bytes) {
  const bool large = bytes >= uint64_t{1} << 30;
  return fmt::format("{} bytes ({:.2f} {})", bytes, static_cast<double>(bytes) / (large ? 0x1p30 : 0x1p20),
                     large ? "GiB" : "MiB");
}

Result<uint64_t> budget_of(const Workload& workload, const PlanOptions& options) {
  if (options.budget_bytes != 0) return options.budget_bytes;
  if (!(options.budget_fraction > 0) || !std::isfinite(options.budget_fraction) || options.budget_fraction > 1e6) {
    return Status{StatusCode::invalid_argument, "the plan needs a budget: bytes, or a positive fraction of the peak"};
  }
  return static_cast<uint64_t>(std::llround(options.budget_fraction * static_cast<double>(workload.graph.peak_bytes)));
}

Status infeasible(const Workload& workload, uint64_t budget) {
  std::string name = "the program";
  if (workload.largest.call != kNone) {
    name = trace::short_name(workload.graph.calls[workload.largest.call].call.name);
  }
  return {StatusCode::infeasible,
          fmt::format("a budget of {} is too small: {} works on {} at once, so at least {} are needed; "
                      "give that much, or make the program's batch smaller",
                      bytes_text(budget), name, bytes_text(workload.largest.chunks * workload.graph.granularity),
                      bytes_text(workload.minimum_bytes))};
}

Status too_little_host(const Workload& workload) {
  return {StatusCode::infeasible,
          fmt::format("what has to leave the device does not fit into {} of host memory{}",
                      bytes_text(workload.machine.host_bytes), workload.machine.has_ssd() ? " and the SSD" : "")};
}

Result<std::vector<const Policy*>> policies_of(const std::string& name) {
  if (name == "auto") return all_policies();
  if (const Policy* policy = find_policy(name)) return std::vector<const Policy*>{policy};
  return check_policy(name);
}

class Portfolio {
 public:
  Portfolio(const Workload& workload, uint64_t chunks) : workload_(workload), chunks_(chunks) {}

  // Plans without remaps. With tensors carried over the start of the iteration, then without.
  void add_homes(const Policy& policy) {
    for (const bool carry : {true, false}) {
      size_t found = 0;
      uint64_t tried = 0;
      for (const double fraction : kFractions) {
        const auto capacity =
            std::max(workload_.largest.chunks, static_cast<uint64_t>(fraction * static_cast<double>(chunks_)));
        if (capacity == tried) continue;
        tried = capacity;
        bool placed = false;
        for (const HomeOrder order : kOrders) {
          placed = try_recipe({&policy, capacity, chunks_, PlacementMode::homes, order, carry}) || placed;
          if (moves_nothing()) return;
        }
        if (placed && ++found >= kEnoughPerPolicy) return;
      }
      if (found > 0) return;
    }
  }

  // Where no budget has homes for all, some stays live elsewhere. The last form cannot fail.
  void add_remaps(const Policy& policy) {
    const HomeOrder order = HomeOrder::longest_first;
    if (try_recipe({&policy, chunks_, chunks_, PlacementMode::homes_then_stays, order, true})) return;
    if (try_recipe({&policy, chunks_, chunks_, PlacementMode::by_begin, order, true})) return;
    try_recipe({&policy, chunks_, chunks_, PlacementMode::by_begin, order, false});
  }

  void add_all(const std::vector<const Policy*>& policies) {
    const bool free_remaps = workload_.machine.remap_ns_per_chunk == 0;
    for (const Policy* policy : policies) {
      if (free_remaps) {
        add_remaps(*policy);
      } else {
        add_homes(*policy);
      }
      if (moves_nothing()) break;
    }
    if (best_) return;
    for (const Policy* policy : policies) add_remaps(*policy);
  }

  // The best of another budget's plans competes, too.
  void add_best_of(Portfolio&& other) {
    count_ += other.count_;
    if (!other.best_) return;
    if (!best_ || is_better(*other.best_, *best_, workload_.machine)) best_ = std::move(other.best_);
  }

  bool moves_nothing() const {
    return best_ && best_->schedule.offload_bytes == 0 && best_->schedule.reload_bytes == 0;
  }
  const Candidate* best() const { return best_ ? &*best_ : nullptr; }
  uint32_t count() const { return count_; }
  bool tiers_fit() const { return tiers_fit_; }

 private:
  bool try_recipe(const Recipe& recipe) {
    std::optional<Candidate> candidate = make_candidate(workload_.graph, workload_.views, workload_.machine, recipe);
    if (!candidate) return false;
    if (!candidate->tiers.fits) {
      tiers_fit_ = false;
      return false;
    }
    ++count_;
    if (!best_ || is_better(*candidate, *best_, workload_.machine)) best_ = std::move(candidate);
    return true;
  }

  const Workload& workload_;
  uint64_t chunks_;
  std::optional<Candidate> best_;
  uint32_t count_ = 0;
  bool tiers_fit_ = true;
};

// More memory never hurts: a plan for fewer chunks is also one for these. Tries them down to where no plan can be
// better than what there is; where that would take long, in larger steps.
void add_smaller_budgets(const Workload& workload, const std::vector<const Policy*>& policies, uint64_t chunks,
                         Portfolio& portfolio) {
  const uint64_t budgets = chunks - workload.largest.chunks;
  if (workload.graph.calls.size() * budgets > kSmallerBudgetsEffort) return;
  for (uint64_t fewer = chunks; fewer > workload.largest.chunks;) {
    --fewer;
    if (const Candidate* best = portfolio.best()) {
      const bool remaps = best->layout.remap_count > 0 && workload.machine.remap_ns_per_chunk > 0;
      const uint64_t bound = bounds_of(workload.graph, fewer, workload.machine).iteration_ns;
      if (!remaps && bound >= best->prediction.iteration_ns) return;
    }
    Portfolio smaller(workload, fewer);
    smaller.add_all(policies);
    portfolio.add_best_of(std::move(smaller));
  }
}

// Copies between devices whose duration nobody gave.
void set_peer_copies(TaskGraph& graph, const Machine& machine) {
  const bool own = machine.peer_bytes_per_s > 0;
  const double rate = own ? machine.peer_bytes_per_s : std::min(machine.d2h_bytes_per_s, machine.h2d_bytes_per_s);
  for (GraphCall& entry : graph.calls) {
    if (graph.devices == 1 || entry.call.op != trace::OpKind::copy_peer || entry.call.duration_ns != 0) continue;
    const uint64_t bytes = graph.tensors[entry.call.accesses.front().tensor].size;
    entry.call.duration_ns = copy_ns(bytes, rate, own ? machine.peer_latency_ns : machine.latency_ns);
  }
}

// What follows from a workload's graph and machine.
void complete(Workload& workload, uint64_t held_bytes, const PlanOptions& options) {
  if (!options.ssd) workload.machine.ssd_read_bytes_per_s = workload.machine.ssd_write_bytes_per_s = 0;
  set_peer_copies(workload.graph, workload.machine);
  workload.views = views_of(workload.graph);
  workload.slab_bytes = place_small_tensors(workload.graph);
  workload.reserved_bytes = reserved_bytes(workload.graph, workload.slab_bytes, held_bytes);
  workload.largest = largest_working_set(workload.graph);
  workload.minimum_bytes = workload.largest.chunks * workload.graph.granularity + workload.reserved_bytes;
}

}  // namespace

Result<Workload> make_workload(TaskGraph graph, const PlanOptions& options) {
  if (options.granularity != 0 && options.granularity != graph.granularity) {
    return Status{StatusCode::invalid_argument, "the graph was read for chunks of another size"};
  }
  if (options.machine && options.machine->devices < graph.devices) {
    return Status{
        StatusCode::invalid_argument,
        fmt::format("it is for {} devices, and the machine has {}; choose another machine, or say \"devices\" in "
                    "its file",
                    graph.devices, options.machine->devices)};
  }
  Workload workload;
  workload.machine = options.machine.value_or(Machine{});
  workload.graph = std::move(graph);
  workload.iteration.call_count = static_cast<uint32_t>(workload.graph.calls.size());
  workload.iteration.occurrences = 1;
  workload.iteration.coverage = 1;
  complete(workload, options.held_bytes.value_or(0), options);
  return workload;
}

Result<Workload> make_workload(const trace::Trace& trace, const PlanOptions& options) {
  Workload workload;
  workload.machine = options.machine.value_or(machine_of(trace));
  const CallStream stream = make_call_stream(trace);
  Result<Iteration> iteration = find_iteration(stream, options.mark);
  if (!iteration.ok()) return iteration.status();
  workload.iteration = iteration.value();
  const uint64_t granularity =
      options.granularity != 0 ? options.granularity : info_number(trace, "device.granularity", kDefaultGranularity);
  if (granularity < 4096 || granularity > (uint64_t{1} << 40)) {
    return Status{StatusCode::invalid_argument, fmt::format("a chunk of {} bytes is out of range", granularity)};
  }
  Result<TaskGraph> graph = build_task_graph(stream, workload.iteration, granularity, workload.machine);
  if (!graph.ok()) return graph.status();
  workload.graph = std::move(graph.value());
  complete(workload, options.held_bytes.value_or(info_number(trace, "memory.held_bytes", 0)), options);
  return workload;
}

Result<plan::Plan> make_plan(const Workload& workload, const PlanOptions& options, PlanSummary* summary) {
  Result<uint64_t> budget = budget_of(workload, options);
  if (!budget.ok()) return budget.status();
  Result<std::vector<const Policy*>> policies = policies_of(options.policy);
  if (!policies.ok()) return policies.status();
  if (budget.value() < workload.minimum_bytes) return infeasible(workload, budget.value());
  const uint64_t capacity = (budget.value() - workload.reserved_bytes) / workload.graph.granularity;
  // More chunks than there are tensors to fill them are of no use.
  uint64_t most = 0;
  for (const plan::Tensor& tensor : workload.graph.tensors) most += tensor.chunk_count;
  const uint64_t chunks = std::min({capacity, most, kMostChunks});

  Portfolio portfolio(workload, chunks);
  portfolio.add_all(policies.value());
  if (options.policy == "auto") add_smaller_budgets(workload, policies.value(), chunks, portfolio);
  if (portfolio.best() == nullptr && !portfolio.tiers_fit()) return too_little_host(workload);
  if (portfolio.best() == nullptr) return Status{StatusCode::internal, "no policy found a plan for a feasible budget"};
  plan::Plan plan = to_plan(workload, budget.value(), *portfolio.best());
  if (Status status = verify(plan); !status.ok()) return status;
  if (summary != nullptr) {
    summary->iteration = workload.iteration;
    summary->bounds = workload.views.empty() ? bounds_of(workload.graph, capacity, workload.machine)
                                             : bounds_of_devices(workload.views, capacity, workload.machine);
    summary->tiers = portfolio.best()->tiers;
    summary->op_count = workload.graph.op_count;
    summary->estimated_count = workload.graph.estimated_count;
    summary->tensor_count = static_cast<uint32_t>(workload.graph.tensors.size());
    summary->candidates = portfolio.count();
    summary->capacity_chunks = capacity;
    for (const SimulationOptions& trial : options.trials) {
      summary->trial_ns.push_back(
          simulate(workload.graph, portfolio.best()->graph, workload.machine, trial).iteration_ns);
    }
  }
  return plan;
}

Result<plan::Plan> make_plan(const trace::Trace& trace, const PlanOptions& options, PlanSummary* summary) {
  Result<Workload> workload = make_workload(trace, options);
  if (!workload.ok()) return workload.status();
  return make_plan(workload.value(), options, summary);
}

}  // namespace reprise::analyzer
