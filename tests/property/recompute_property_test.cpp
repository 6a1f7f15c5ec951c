// Properties of graphs in which ops are recomputed, and of plans for them.
#include <rapidcheck.h>

#include "analyzer/bounds/fluid.h"
#include "analyzer/bounds/linear_program.h"
#include "analyzer/planner/planner.h"
#include "analyzer/rewrite/recompute.h"
#include "analyzer/taskgraph/recompute_candidates.h"
#include "analyzer/verify/verify.h"
#include "tests/property/cases.h"
#include "tests/property/interpreter.h"
#include "tests/support/test.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

// A program, some of whose candidates are recomputed, whether that is worth it or not.
struct Recomputed {
  Workload before;
  TaskGraph graph;
  std::vector<uint32_t> calls;
};

Recomputed any_recomputed() {
  Recomputed result;
  std::vector<uint32_t> calls;
  const uint32_t percent = *rc::gen::element(40u, 70u, 100u);
  std::mt19937 random(*rc::gen::arbitrary<uint32_t>());
  for (int i = 0; i < 8 && calls.empty(); ++i) {  // of small programs few have any
    result.before = workload_with_facts(any_workload());
    for (const RecomputeCandidate& candidate : recompute_candidates(result.before.graph)) {
      if (random() % 100 < percent) calls.push_back(candidate.call);
    }
  }
  RC_PRE(!calls.empty());
  result.graph = with_recompute(result.before.graph, calls);
  result.calls = calls;
  return result;
}

std::string text_of(const std::vector<plan::Tensor>& tensors, const plan::Call& call) {
  const bool late = call.kind == plan::CallKind::late_free;
  std::string text =
      std::to_string(static_cast<int>(late ? plan::CallKind::free : call.kind)) + " " + std::to_string(call.signature) +
      " " + std::to_string(call.tensor == kNone ? kNone : plan::root_of(tensors, call.tensor)) + " " + call.name;
  for (const plan::OpAccess& access : call.accesses) {
    text += " " + std::to_string(plan::root_of(tensors, access.tensor)) + ":" + std::to_string(access.mode) + "+" +
            std::to_string(access.offset) + ":" + std::to_string(access.size);
  }
  return text;
}

// What the replay matches the program's calls with.
std::vector<std::string> calls_of_program(const TaskGraph& graph) {
  std::vector<std::string> calls;
  for (const GraphCall& entry : graph.calls) {
    if (!entry.call.inserted) calls.push_back(text_of(graph.tensors, entry.call));
  }
  return calls;
}
std::vector<std::string> calls_of_program(const plan::Plan& plan) {
  std::vector<std::string> calls;
  for (const plan::Call& call : plan.calls) {
    if (!call.inserted) calls.push_back(text_of(plan.tensors, call));
  }
  return calls;
}

TEST(RecomputeProperty, EveryCallOfTheProgramStays) {
  EXPECT_TRUE(rc::check("without what is inserted it is the program", [] {
    const Recomputed item = any_recomputed();
    RC_ASSERT(calls_of_program(item.graph) == calls_of_program(item.before.graph));
    for (const GraphCall& entry : item.graph.calls) {
      if (entry.call.kind != plan::CallKind::late_free) continue;
      RC_CLASSIFY(item.graph.tensors[entry.call.tensor].chunk_count == 0, "a small tensor outlives its free");
      RC_CLASSIFY(item.graph.tensors[entry.call.tensor].chunk_count != 0, "a large tensor outlives its free");
    }
  }));
}

// Of the program's ops, without those that are recomputed.
std::vector<uint64_t> hashes_of_ops(const plan::Plan& plan) {
  std::vector<uint64_t> hashes;
  for (const std::vector<uint64_t>& round : run_serially(plan, 2, false).op_hash) {
    for (uint32_t call = 0; call < plan.calls.size(); ++call) {
      if (plan.calls[call].kind == plan::CallKind::op && !plan.calls[call].inserted) hashes.push_back(round[call]);
    }
  }
  return hashes;
}

// `in_order_ns`, if wanted: of an iteration whose kernels run in the program's order.
plan::Plan plan_of(const Workload& workload, uint64_t budget, uint64_t* in_order_ns = nullptr) {
  PlanOptions options = options_for(budget);
  options.recompute = false;  // no more than there is
  options.trials.push_back({.dispatch = Dispatch::fixed_kernels});
  PlanSummary summary;
  Result<plan::Plan> plan = make_plan(workload, options, &summary);
  if (!summary.refusal.ok()) RC_FAIL(options.policy + ": " + summary.refusal.message());
  if (!plan.ok()) RC_FAIL(options.policy + ": " + plan.status().message());
  if (in_order_ns != nullptr) *in_order_ns = summary.trial_ns.at(0);
  return std::move(plan.value());
}

TEST(RecomputeProperty, PlansComputeWhatTheProgramComputes) {
  EXPECT_TRUE(rc::check("verified, serial hashes in random legal orders", [] {
    const Recomputed item = any_recomputed();
    const Workload workload = workload_of_graph(item.before, item.graph);
    const plan::Plan plan = plan_of(workload, any_budget(workload));
    RC_ASSERT(plan::recomputes(plan));
    if (const Status status = verify(plan); !status.ok()) RC_FAIL(status.message() + "\n" + plan::to_text(plan));
    RC_ASSERT(calls_of_program(plan) == calls_of_program(item.before.graph));
    const plan::Plan whole = plan_of(item.before, bytes_for_everything(item.before));
    if (hashes_of_ops(plan) != hashes_of_ops(whole)) RC_FAIL(plan::to_text(plan));
    std::mt19937 random(*rc::gen::arbitrary<uint32_t>());
    Interpreter interpreter(plan, 3);
    for (const Strategy& strategy : strategies(plan, random)) {
      const std::string difference = interpreter.compare(strategy.choose);
      if (!difference.empty()) RC_FAIL(strategy.name + ": " + difference + "\n" + plan::to_text(plan));
    }
    const Result<plan::Plan> again = plan::deserialize(plan::serialize(plan));
    RC_ASSERT(again.ok());
    RC_ASSERT(plan::to_text(again.value()) == plan::to_text(plan));
    RC_CLASSIFY(plan.reload_bytes > 0, "moves");
  }));
}

// Whatever is recomputed, and whether its inputs are made again, too: guards, and inputs that have to come in, are in
// the bound only as far as no plan is without them.
TEST(RecomputeProperty, NoPlanIsFasterThanTheFluidBound) {
  if (!LinearProgram::available()) GTEST_SKIP() << "libClp.so.1 is not installed";
  EXPECT_TRUE(rc::check("times with kernels in order against the bound with recompute", [] {
    Recomputed item = any_recomputed();
    const Machine& machine = item.before.machine;
    item.graph = with_recompute(item.before.graph, item.calls, &machine);
    const Workload workload = workload_of_graph(item.before, item.graph);
    const uint64_t budget = any_budget(workload);
    uint64_t in_order_ns = 0;
    const plan::Plan plan = plan_of(workload, budget, &in_order_ns);
    const uint64_t chunk = workload.graph.chunk_bytes;
    const uint64_t capacity = (budget - std::min(workload.reserved_bytes, item.before.reserved_bytes)) / chunk * chunk;
    FluidOptions options;
    options.guarded = true;
    const Result<Fluid> fluid =
        solve_fluid(item.before.graph, capacity, machine, options, recompute_candidates(item.before.graph));
    RC_PRE(fluid.ok());
    const double bound = static_cast<double>(fluid.value().iteration_ns);
    if (static_cast<double>(in_order_ns) * 1.001 + 1000 < bound) {
      RC_FAIL(std::to_string(in_order_ns) + " ns, bound " + std::to_string(bound) + "\n" + plan::to_text(plan));
    }
  }));
}

// The bound may choose what is recomputed, in parts, too: with what is chosen for it, and each op a segment, it is no
// lower. The sets are drawn, so that chains, shared inputs and early places come, whatever they cost.
TEST(RecomputeProperty, TheFluidBoundAllowsForAnySet) {
  if (!LinearProgram::available()) GTEST_SKIP() << "libClp.so.1 is not installed";
  EXPECT_TRUE(rc::check("the bound of a graph with recompute against that with all candidates", [] {
    Recomputed item = any_recomputed();
    item.graph = with_recompute(item.before.graph, item.calls, &item.before.machine);
    const Workload workload = workload_of_graph(item.before, item.graph);
    const uint64_t chunk = workload.graph.chunk_bytes;
    const uint64_t capacity = (any_budget(workload) - workload.reserved_bytes) / chunk * chunk;
    FluidOptions options;
    options.segments = 1000;
    const Result<Fluid> set = solve_fluid(item.graph, capacity, item.before.machine, options);
    options.guarded = true;
    const Result<Fluid> all =
        solve_fluid(item.before.graph, capacity, item.before.machine, options, recompute_candidates(item.before.graph));
    RC_PRE(set.ok() && all.ok());
    const double least = static_cast<double>(all.value().iteration_ns);
    if (static_cast<double>(set.value().iteration_ns) * 1.001 + 1000 < least) {
      RC_FAIL(std::to_string(set.value().iteration_ns) + " ns for the set, bound " + std::to_string(least));
    }
  }));
}

}  // namespace
}  // namespace reprise::analyzer
