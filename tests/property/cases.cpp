#include "tests/property/cases.h"

#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/bounds/bounds.h"
#include "analyzer/policies/policy.h"
#include "analyzer/rewrite/split_tensors.h"
#include "tests/property/random_program.h"

namespace reprise::analyzer::testing {

namespace {

// With a slow or a fast link, an SSD or none, little host memory, and pages that the hardware maps.
std::optional<Machine> any_machine() {
  if (*rc::gen::inRange(0, 3) == 0) return std::nullopt;
  Machine machine;
  if (*rc::gen::arbitrary<bool>()) machine.h2d_bytes_per_s = machine.d2h_bytes_per_s = 400e9;
  if (*rc::gen::arbitrary<bool>()) machine.d2h_together_bytes_per_s = machine.d2h_bytes_per_s / 2;
  if (*rc::gen::arbitrary<bool>()) machine.remap_ns_per_chunk = 0;
  if (*rc::gen::arbitrary<bool>()) {
    machine.ssd_read_bytes_per_s = *rc::gen::element(3e9, 100e9, 900e9);
    machine.ssd_write_bytes_per_s = *rc::gen::element(2e9, 100e9);
    machine.ssd_latency_ns = 0;
    machine.host_bytes = *rc::gen::inRange<uint64_t>(0, 32) * (uint64_t{2} << 20);
  }
  return machine;
}

// As if facts were known of some kernels: some write nothing of what they could, some are pure, some overwrite what
// they are the first to touch.
void add_facts(TaskGraph& graph) {
  std::mt19937 random(*rc::gen::arbitrary<uint32_t>());
  const auto chance = [&](uint32_t percent) { return random() % 100 < percent; };
  std::vector<uint8_t> touched(graph.tensors.size(), 0);
  for (GraphCall& entry : graph.calls) {
    const bool known = entry.call.op == trace::OpKind::launch && (entry.call.flags & trace::kOpOpaque) == 0;
    for (plan::OpAccess& access : entry.call.accesses) {
      const bool fresh = !is_persistent(graph.tensors[access.tensor]) && touched[access.tensor] == 0;
      touched[access.tensor] = 1;
      if (!known || chance(10)) continue;
      if (fresh) {
        access = {access.tensor, trace::kAccessWrite, 0, 0, access.parameter_offset};
      } else if (writes(access) && chance(60)) {
        access.mode = trace::kAccessRead | trace::kAccessWrite | trace::kAccessUnchanged;
      }
    }
    entry.call.pure = known && chance(80);
  }
  complete_task_graph(graph);
}

}  // namespace

Workload workload_of_graph(const Workload& workload, TaskGraph graph) {
  PlanOptions options;
  options.machine = workload.machine;
  options.ssd = true;
  options.held_bytes = workload.reserved_bytes - reserved_bytes(workload.graph, workload.slab_bytes, 0);
  return make_workload(std::move(graph), options).value();
}

Workload any_workload() {
  PlanOptions options;
  options.machine = any_machine();
  options.ssd = true;
  options.wanted.least_calls = 1;  // whatever repeats, and how little of the times that are drawn it has
  const Result<Workload> workload = Planning(random_program(any_shape()), options).workload();
  if (!workload.ok()) RC_FAIL(workload.status().message());
  return *rc::gen::arbitrary<bool>() ? workload_with_facts(workload.value()) : workload.value();
}

Workload workload_with_facts(const Workload& workload) {
  TaskGraph graph = workload.graph;
  add_facts(graph);
  return workload_of_graph(workload, std::move(graph));
}

uint64_t bytes_for_everything(const Workload& workload) {
  return std::max<uint64_t>(1, workload.graph.peak_chunks * workload.graph.chunk_bytes + workload.reserved_bytes);
}

std::vector<std::string> policy_names() {
  std::vector<std::string> names = {"auto"};
  for (const auto* list : {&all_policies(), &baseline_policies()}) {
    for (const Policy* policy : *list) names.emplace_back(policy->name());
  }
  return names;
}

uint64_t any_budget(const Workload& workload) {
  const uint64_t chunk_bytes = workload.graph.chunk_bytes;
  const uint64_t span = (bytes_for_everything(workload) - workload.minimum_bytes) / chunk_bytes;
  const uint64_t more = *rc::gen::inRange<uint64_t>(0, 1 + span / *rc::gen::inRange<uint64_t>(1, 4));
  return std::max<uint64_t>(1, workload.minimum_bytes + more * chunk_bytes);
}

namespace {

// REPRISE_PROPERTY_POLICIES: names with commas between them. Nearly all of the time goes to plans by `auto`, `reprise`
// and `fluid`: without those, ten thousand graphs take about a minute.
std::vector<std::string> wished_policies() {
  const char* wished = std::getenv("REPRISE_PROPERTY_POLICIES");
  if (wished == nullptr) return policy_names();
  std::vector<std::string> names;
  std::istringstream text(wished);
  for (std::string name; std::getline(text, name, ',');) names.push_back(name);
  RC_ASSERT(!names.empty());
  return names;
}

// Its graph with most tensors split.
Workload with_most_split(const Workload& workload) {
  const uint64_t most_chunks = *rc::gen::inRange<uint64_t>(1, 4);
  return workload_of_graph(workload, with_split_tensors(workload.graph, most_chunks, 1000));
}

}  // namespace

PlanOptions options_for(uint64_t budget) {
  PlanOptions options;
  options.budget_bytes = budget;
  const std::vector<std::string> names = wished_policies();
  options.policy = names[*rc::gen::inRange<size_t>(0, names.size())];
  return options;
}

Case any_case(const CaseOptions& wishes) {
  Case result;
  result.workload = any_workload();
  const uint64_t budget = any_budget(result.workload);
  PlanOptions options = options_for(budget);
  if (wishes.reorder || wishes.split_tensors) options.policy = "reprise";
  options.reorder = wishes.reorder;
  options.split_tensors = wishes.split_tensors;
  PlanSummary summary;
  // Whether they are worth it or not, and by any policy; or as the planner would.
  const bool given = wishes.split_tensors && *rc::gen::arbitrary<bool>();
  const Workload split = given ? with_most_split(result.workload) : Workload{};
  if (given && !wishes.reorder) options.policy = options_for(budget).policy;
  Result<plan::Plan> plan = make_plan(given ? split : result.workload, options, &summary);
  if (!summary.refusal.ok()) RC_FAIL(summary.refusal.message());
  if (!plan.ok()) RC_FAIL(plan.status().message());
  result.plan = std::move(plan.value());
  result.bounds = summary.bounds;
  RC_ASSERT(result.plan.chunk_count * result.plan.chunk_bytes + result.plan.reserved_bytes <= budget);
  RC_CLASSIFY(result.plan.reload_bytes > 0, "moves");
  RC_CLASSIFY(result.plan.remap_count > 0, "remaps");
  RC_CLASSIFY(plan::reorders(result.plan), "reorders");
  RC_CLASSIFY(plan::has_split_tensors(result.plan), "has split tensors");
  return result;
}

}  // namespace reprise::analyzer::testing
