// One plan, executed in the simulator under every order of dispatch and with noise on its transfers: one line of JSON.
// `bench/ablation` runs it for several graphs and machines and writes build/ablation.md.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "analyzer/planner/planner.h"
#include "tools/cli/sizes.h"
#include "tools/lab/graphs/json_graph.h"
#include "tools/lab/machines/machines.h"

namespace reprise::bench {
namespace {

using namespace analyzer;

constexpr uint64_t kRegime = 20'000'000;
constexpr uint32_t kRounds = 7;  // so that each seed has four iterations in its mean

struct Setting {
  const char* name;
  double sigma;
  uint64_t regime_ns;
};
constexpr Setting kNoises[] = {
    {"0", 0, 0}, {"20", 0.2, 0}, {"50", 0.5, 0}, {"20 regimes", 0.2, kRegime}, {"50 regimes", 0.5, kRegime}};
struct Order {
  const char* name;
  Dispatch dispatch;
};
constexpr Order kOrders[] = {{"free", Dispatch::free},
                             {"kernels", Dispatch::fixed_kernels},
                             {"plan", Dispatch::fixed_plan},
                             {"best", Dispatch::fixed_best}};

int fail(const std::string& message) {
  std::fprintf(stderr, "ablation_bench: %s\n", message.c_str());
  return 1;
}

std::vector<SimulationOptions> trials(uint64_t seeds) {
  std::vector<SimulationOptions> result;
  for (const Setting& noise : kNoises) {
    for (const Order& order : kOrders) {
      for (uint64_t seed = 1; seed <= (noise.sigma == 0 ? 1 : seeds); ++seed) {
        SimulationOptions trial;
        trial.dispatch = order.dispatch;
        trial.noise = {noise.sigma, noise.regime_ns, seed};
        trial.rounds = kRounds;
        result.push_back(trial);
      }
    }
  }
  return result;
}

std::string times(const std::vector<uint64_t>& found, uint64_t seeds) {
  std::string text;
  size_t next = 0;
  for (const Setting& noise : kNoises) {
    text += fmt::format("{}\"{}\": {{", text.empty() ? "" : ", ", noise.name);
    for (const Order& order : kOrders) {
      const size_t count = noise.sigma == 0 ? 1 : seeds;
      text += fmt::format("{}\"{}\": [", order.dispatch == kOrders[0].dispatch ? "" : ", ", order.name);
      for (size_t i = 0; i < count; ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", found[next++]);
      text += "]";
    }
    text += "}";
  }
  return text;
}

int run(const std::string& path, const std::string& machine_name, const std::string& budget, const std::string& policy,
        uint64_t chunk, uint64_t seeds) {
  const Result<Machine> machine = tools::find_machine(machine_name);
  if (!machine.ok()) return fail(machine.status().message());
  const Result<tools::Budget> asked = tools::parse_budget(budget);
  if (!asked.ok()) return fail(asked.status().message());
  Result<TaskGraph> graph = tools::read_graph(path, chunk);
  if (!graph.ok()) return fail(graph.status().message());
  PlanOptions options;
  options.machine = machine.value();
  options.policy = policy;
  options.budget_bytes = asked.value().bytes;
  options.budget_fraction = asked.value().percent / 100;
  options.trials = trials(seeds);
  const Result<Workload> workload = make_workload(std::move(graph.value()), options);
  if (!workload.ok()) return fail(workload.status().message());
  PlanSummary summary;
  const Result<plan::Plan> made = make_plan(workload.value(), options, &summary);
  if (!made.ok()) return fail(made.status().message());
  const plan::Plan& plan = made.value();
  fmt::print(
      "{{\"devices\": {}, \"kernels\": {}, \"vertices\": {}, \"peak\": {}, \"budget\": {}, \"remaps\": {}, "
      "\"compute_ns\": {}, "
      "\"bound_ns\": {}, \"planned_ns\": {}, \"offload\": {}, \"reload\": {}, \"times\": {{{}}}}}\n",
      plan::device_count(plan), workload.value().graph.op_count, plan.vertices.size(), plan.peak_bytes,
      plan.budget_bytes, plan.remap_count, plan.compute_ns, summary.bounds.iteration_ns, plan.predicted_ns,
      plan.offload_bytes, plan.reload_bytes, times(summary.trial_ns, seeds));
  return 0;
}

}  // namespace
}  // namespace reprise::bench

int main(int count, char** arguments) {
  if (count != 7) {
    std::fprintf(stderr, "usage: ablation_bench GRAPH MACHINE BUDGET POLICY CHUNK_BYTES SEEDS\n");
    return 2;
  }
  return reprise::bench::run(arguments[1], arguments[2], arguments[3], arguments[4],
                             std::strtoull(arguments[5], nullptr, 10), std::strtoull(arguments[6], nullptr, 10));
}
