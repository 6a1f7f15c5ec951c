// The analyzer's front door: from a trace and a budget to a verified plan. Callers: `reprise plan`, `reprise simulate`,
// reports, tests.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/bounds/bounds.h"
#include "analyzer/iteration/loop_calls.h"
#include "analyzer/loop/found_loop.h"
#include "analyzer/machine/machine.h"
#include "analyzer/plan/plan.h"
#include "analyzer/planner/elsewhere.h"
#include "analyzer/rewrite/device_subgraphs.h"
#include "analyzer/schedule/tiers.h"
#include "analyzer/simulate/simulate.h"
#include "analyzer/taskgraph/graph.h"
#include "preload/facts/store.h"
#include "preload/trace/reader.h"
#include "preload/trace/status.h"

namespace reprise::analyzer {

struct PlanOptions {
  uint64_t budget_bytes = 0;                      // wins over the fraction when it is not 0
  double budget_fraction = 0;                     // of Workload::peak_bytes; 0.5 is 50 %
  std::string policy = "auto";                    // or one of all_policies()
  std::optional<Machine> machine = std::nullopt;  // default: machine_of(trace)
  uint64_t chunk_bytes = 0;  // bytes of a chunk; 0: the trace's info key "device.granularity", else 2 MiB
  std::optional<uint64_t> held_bytes = std::nullopt;  // held around Reprise; default: info key "memory.held_bytes"
  std::optional<uint64_t> peak_bytes = std::nullopt;  // of the program; default: info key "memory.peak_bytes"
  WantedLoop wanted = {};                             // of the trace
  std::vector<SimulationOptions> trials = {};         // further simulations of the plan that is returned
  plan::Safety safety = plan::Safety::trusted;        // of plans from traces
  KnownKernels known = {};                            // of a trace's kernels
  bool recompute = true;                              // policies reprise and auto may recompute pure ops
  // The options below are for simulations only; the replay enforces none.
  bool reorder = false;        // updates may run before kernels that the program calls earlier
  bool split_tensors = false;  // parts of large tensors may move on their own
  bool ssd = false;            // the machine's SSD may be used
};

// What does not depend on the budget: make it once, plan many times.
struct Workload {
  Iteration iteration;
  TaskGraph graph;                               // with the slab offsets of small tensors set
  std::vector<DeviceSubgraph> device_subgraphs;  // of the graph
  Machine machine;
  uint64_t slab_bytes = 0;
  uint64_t held_bytes = 0;      // around Reprise
  uint64_t reserved_bytes = 0;  // these, and for small tensors
  WorkingSet largest;
  uint64_t minimum_bytes = 0;  // smallest budget that has a plan; for people: least_budget()
  // 100 %: the device memory that the program takes without Reprise. A recording is measured by the rule that runs use
  // (decision 0001); a graph that comes from elsewhere, by the bytes that are alive at once.
  uint64_t peak_bytes = 0;
  // Computing alone: of an iteration for which nothing has to move. The program's own copies run beside its kernels
  // where they can, so it may be less than all its ops take in turn (TaskGraph::compute_ns).
  uint64_t alone_ns = 0;
  bool recorded = false;  // from a trace
};

// What a share of the peak is in bytes, rounded as runs do.
uint64_t share_of_peak(const Workload& workload, double fraction);

// Does the budget hold all of the program, so that a run moves nothing and commands make no plan (decision 0026)? A
// plan keeps small tensors apart and gives the others whole chunks, so it would move some of them, or take more than
// the program does without one.
bool holds_everything(const Workload& workload, uint64_t budget);

// The smallest budget that any page or command names: what the smallest plan takes or, where a plan takes more than the
// program does without us, the latter. Then nothing moves.
uint64_t least_budget(const Workload& workload);
// What that is made of, as a clause: the largest call's tensors, small ones, what is around them.
std::string least_budget_because(const Workload& workload);

// What to plan for to see what a run within the budget is like: one that holds the whole program is not planned for,
// and nothing moves (decision 0026), where a plan of as many bytes would still move a little.
uint64_t budget_as_run(const Workload& workload, uint64_t budget);

// From a graph that did not come from a trace; the options' chunk_bytes must be the graph's, or 0.
Result<Workload> make_workload(TaskGraph graph, const PlanOptions& options);

// Calls times budgets (in chunks, down to the smallest one) up to which `auto` also tries all smaller budgets, so that
// more memory never hurts.
inline constexpr uint64_t kSmallerBudgetsEffort = 4096;

// Ops up to which `auto` also tries every policy alone, so that none of them is better.
inline constexpr uint32_t kEachAloneOps = 5'000;

// For people: what was found, what it costs, how far it is from what no plan can beat.
struct PlanSummary {
  Iteration iteration;
  Bounds bounds;
  TierUse tiers;
  uint32_t op_count = 0;
  uint32_t estimated_count = 0;  // ops whose duration was not recorded
  uint32_t tensor_count = 0;
  uint32_t candidates = 0;              // plans compared
  uint64_t recompute_ns = 0;            // spent on ops that are recomputed
  uint64_t capacity_chunks = 0;         // that the budget allows
  std::vector<uint64_t> trial_ns = {};  // of one iteration in each of the trials
  Status refusal = {};                  // of the best plan by the verifier, a defect of ours: this is another plan
};

// Errors: invalid_argument (policy, budget), infeasible (names the smallest possible budget and the op that needs it),
// internal (the verifier refused the plan: a defect of ours). Every plan returned has passed the verifier.
Result<plan::Plan> make_plan(const Workload& workload, const PlanOptions& options, PlanSummary* summary = nullptr);

// Ops from which on make_plan() takes so long that a program is better off with another plan until then.
inline constexpr uint32_t kFirstPlanOps = 256;

// As make_plan(), at once: the better one of what two simple policies plan in the recorded order. Its time grows like
// n log n; a recording of 20 000 calls takes less than half a second.
Result<plan::Plan> make_first_plan(const Workload& workload, const PlanOptions& options,
                                   PlanSummary* summary = nullptr);

// The way from a recording to a plan. The calls are read once, and the iteration is found once, whatever is asked.
//
//   recording --> calls --> iteration --> TaskGraph --> Workload --> plan
class Planning {
 public:
  // The trace must outlive it.
  Planning(const trace::Trace& trace, PlanOptions options);
  Planning(const Planning&) = delete;
  Planning& operator=(const Planning&) = delete;

  // Workload::peak_bytes, known even where nothing can be planned; 0: no device memory was used.
  uint64_t peak_bytes() const { return peak_in(chunk_bytes_); }

  // Errors: not_found (no iteration, and why), unsupported.
  Result<Workload> workload();
  // In larger chunks where the options' budget is large (chunk_size.h) and the program does not go on in the trace's.
  Result<Workload> workload_in_fitting_chunks();
  // The workload of this loop, even where another loop covers more of the recording.
  Result<Workload> workload_of(const LoopCalls& loop) const;

  // workload() and make_plan().
  Result<plan::Plan> plan(PlanSummary* summary = nullptr);

  // The call of the whole recording that works on most memory at once. Outside the iteration a call runs on demand and
  // needs all its operands on the device.
  LargestCall largest_call(uint64_t chunk_bytes) const { return analyzer::largest_call(whole_, chunk_bytes); }

 private:
  const CallStream& calls() const { return part_ ? *part_ : whole_; }
  const FoundLoop& loop();
  uint64_t fitting_chunk_bytes() const;
  uint64_t peak_in(uint64_t chunk_bytes) const;  // of the whole recording
  Result<Workload> workload(const FoundLoop& loop, uint64_t chunk_bytes) const;

  const PlanOptions options_;
  const CallStream whole_;
  const uint64_t chunk_bytes_;                    // that were asked for, or the trace's
  const std::optional<trace::Trace> part_trace_;  // with wanted.from_call: what was called since
  const std::optional<CallStream> part_;
  std::optional<FoundLoop> loop_;
};

// A few lines for the command line.
std::string explain(const plan::Plan& plan, const PlanSummary& summary);

}  // namespace reprise::analyzer
