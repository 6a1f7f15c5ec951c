// How long each part of planning takes on a graph of a given size, and how much memory: one line of JSON.
// `bench/planning` runs it for several sizes and writes build/planning.md.
#include <fmt/format.h>
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/planner/candidate.h"
#include "analyzer/planner/planner.h"
#include "analyzer/planner/to_plan.h"
#include "analyzer/verify/verify.h"
#include "bench/training_loop.h"
#include "tools/lab/graphs/json_graph.h"

namespace reprise::bench {
namespace {

using namespace analyzer;

constexpr char kFirst[] = "first";  // instead of a policy: the first plan

struct Part {
  std::string name;
  double seconds = 0;
  double mib = 0;  // by which the process has grown at its highest
};

// Of the processor: others may be at work on this machine.
double seconds_now() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double status_mib(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::strtod(line.c_str() + key.size(), nullptr) / 1024;
  }
  return 0;
}

// The highest resident size from here on.
void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

class Parts {
 public:
  template <typename Work>
  auto run(const char* name, Work&& work) {
    malloc_trim(0);
    reset_peak();
    const double before = status_mib("VmRSS:");
    const double start = seconds_now();
    auto result = work();
    const double time = seconds_now() - start;
    parts_.push_back({name, time, status_mib("VmHWM:") - before});
    return result;
  }
  std::string json() const {
    std::string text;
    for (const Part& part : parts_) {
      text += fmt::format("{}\"{}\": {{\"s\": {:.6f}, \"mib\": {:.1f}}}", text.empty() ? "" : ", ", part.name,
                          part.seconds, part.mib);
    }
    return text;
  }

 private:
  std::vector<Part> parts_;
};

int fail(const std::string& message) {
  std::fprintf(stderr, "planning_bench: %s\n", message.c_str());
  return 1;
}

// As the planner does where no budget has homes for all.
std::optional<Layout> place_somehow(const TaskGraph& graph, Schedule& schedule, uint32_t chunks) {
  std::optional<Layout> layout = place(graph, schedule, chunks, PlacementMode::homes_then_stays);
  return layout ? layout : place(graph, schedule, chunks, PlacementMode::by_begin);
}

// Plans with a portfolio or with a first plan, and verifies the result.
Result<plan::Plan> plan_as_a_whole(const Workload& work, uint64_t budget, const std::string& name, Parts& parts) {
  PlanOptions options;
  options.budget_bytes = budget;
  if (name == kFirst) return parts.run("plan and verify", [&] { return make_first_plan(work, options); });
  options.policy = name;
  return parts.run("plan and verify", [&] { return make_plan(work, options); });
}

// By one policy, part by part.
Result<plan::Plan> plan_in_parts(const Workload& work, uint64_t budget, const Policy& policy, Parts& parts) {
  const uint64_t capacity = (budget - work.reserved_bytes) / work.graph.chunk_bytes;
  PlanCandidate candidate;
  candidate.policy = policy.name();
  candidate.schedule = parts.run("walk", [&] { return policy.schedule({work.graph, work.machine, capacity, true}); });
  candidate.tiers = parts.run("tiers", [&] { return assign_tiers(work.graph, work.machine, candidate.schedule); });
  std::optional<Layout> layout = parts.run(
      "place", [&] { return place_somehow(work.graph, candidate.schedule, static_cast<uint32_t>(capacity)); });
  if (!layout) return Status{StatusCode::internal, "no place for everything"};
  candidate.layout = std::move(*layout);
  candidate.graph =
      parts.run("build", [&] { return build_mem_graph(work.graph, candidate.schedule, candidate.layout); });
  candidate.prediction = parts.run("simulate", [&] { return simulate(work.graph, candidate.graph, work.machine, {}); });
  plan::Plan plan = parts.run("to plan", [&] { return to_plan(work, budget, std::move(candidate)); });
  if (Status status = parts.run("verify", [&] { return verify(plan); }); !status.ok()) return status;
  return plan;
}

int run(uint32_t kernels, double fraction, const std::string& name, const char* save) {
  if (const Status known = check_policy(name); !known.ok() && name != kFirst) return fail(known.message());
  Parts parts;
  Result<TaskGraph> graph = Status{StatusCode::internal, ""};
  {
    const std::string text = training_loop_json(kernels);
    graph = parts.run("read", [&] { return tools::parse_graph(text, tools::kGraphChunk); });
  }
  if (!graph.ok()) return fail(graph.status().message());
  PlanOptions options;
  Result<Workload> workload = parts.run("prepare", [&] { return make_workload(std::move(graph.value()), options); });
  if (!workload.ok()) return fail(workload.status().message());
  const Workload& work = workload.value();
  const auto budget =
      std::max(work.minimum_bytes, static_cast<uint64_t>(fraction * static_cast<double>(work.graph.peak_bytes)));
  const bool portfolio = searches(name) || name == kFirst;
  const Result<plan::Plan> made =
      portfolio ? plan_as_a_whole(work, budget, name, parts) : plan_in_parts(work, budget, *find_policy(name), parts);
  if (!made.ok()) return fail(made.status().message());
  const plan::Plan& plan = made.value();
  if (save != nullptr) {
    if (const Status saved = plan::write_plan(plan, save); !saved.ok()) return fail(saved.message());
  }
  const uint64_t capacity = (budget - work.reserved_bytes) / work.graph.chunk_bytes;
  parts.run("bounds", [&] { return bounds_of(work.graph, capacity, work.machine); });
  size_t edges = 0;
  for (const plan::Vertex& vertex : plan.vertices) edges += vertex.predecessors.size();
  fmt::print(
      "{{\"kernels\": {}, \"tensors\": {}, \"vertices\": {}, \"edges\": {}, \"chunks\": {}, \"policy\": \"{}\", "
      "\"fraction\": {}, \"remaps\": {}, \"predicted_over_compute\": {:.4f}, \"parts\": {{{}}}}}\n",
      work.graph.op_count, work.graph.tensors.size(), plan.vertices.size(), edges, plan.chunk_count, name, fraction,
      plan.remap_count, static_cast<double>(plan.predicted_ns) / static_cast<double>(plan.compute_ns), parts.json());
  return 0;
}

// A plan that was saved, so that the verifier can be timed alone.
int run_verify(const char* path) {
  Parts parts;
  const Result<plan::Plan> plan = parts.run("load", [&] { return plan::read_plan(path); });
  if (!plan.ok()) return fail(plan.status().message());
  const Status status = parts.run("verify", [&] { return verify(plan.value()); });
  if (!status.ok()) return fail(status.message());
  fmt::print("{{\"vertices\": {}, \"parts\": {{{}}}}}\n", plan.value().vertices.size(), parts.json());
  return 0;
}

}  // namespace
}  // namespace reprise::bench

int main(int argc, char** argv) {
  const auto number = [&](int at) { return static_cast<uint32_t>(std::strtoul(argv[at], nullptr, 10)); };
  const std::string first = argc > 1 ? argv[1] : "";
  if (argc == 3 && first == "--verify") return reprise::bench::run_verify(argv[2]);
  if (argc == 3 && first == "--json") {
    std::fputs(reprise::bench::training_loop_json(number(2)).c_str(), stdout);
    return 0;
  }
  if (argc < 2 || number(1) == 0) {
    std::fprintf(stderr,
                 "planning_bench KERNELS [FRACTION of the peak [POLICY [PLAN to write]]]\n"
                 "planning_bench --json KERNELS\n"
                 "planning_bench --verify PLAN\n");
    return 2;
  }
  return reprise::bench::run(number(1), argc > 2 ? std::strtod(argv[2], nullptr) : 0.5, argc > 3 ? argv[3] : "disco",
                             argc > 4 ? argv[4] : nullptr);
}
