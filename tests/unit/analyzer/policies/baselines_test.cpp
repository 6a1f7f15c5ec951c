// The baselines: what unified memory, DeepUM and FlashNeuron move, and when they begin to.
#include "analyzer/policies/policy.h"
#include "tests/support/workloads.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

// Pages that the hardware maps.
Machine free_pages() {
  Machine machine = slow_link();
  machine.remap_ns_per_chunk = 0;
  return machine;
}

// `count` weights of one chunk, each used by one op of 10 ms.
Workload in_turn(int count, Use (*use)(uint64_t), const Machine& machine = free_pages()) {
  TraceBuilder program;
  std::vector<uint64_t> weights;
  for (int i = 0; i < count; ++i) weights.push_back(program.allocate(kChunk));
  for (int step = 0; step < 3; ++step) {
    program.mark("iteration");
    for (const uint64_t w : weights) program.launch("layer", {use(w)}, 10 * kMs);
  }
  program.mark("iteration");
  return workload_on(machine, program);
}

plan::Plan plan_of(const Workload& workload, const char* policy, uint64_t chunks) {
  PlanOptions options;
  options.budget_bytes = chunks * kChunk;
  options.policy = policy;
  return plan_with(workload, options);
}

TEST(Uvm, NothingComesBeforeItIsAskedFor) {
  const Workload workload = in_turn(6, reads);
  EXPECT_EQ(plan_of(workload, "lru", 2).predicted_ns, 60 * kMs);
  // Each op waits for its weight: 1 ms, and four batches of faults.
  EXPECT_EQ(plan_of(workload, "uvm", 2).predicted_ns, 6 * (11 * kMs + 4 * 45'000));
}

TEST(Uvm, NothingLeavesBeforeItsRoomIsAskedFor) {
  const Workload workload = in_turn(6, updates);
  EXPECT_EQ(plan_of(workload, "lru", 2).predicted_ns, 60 * kMs);
  // Out, then in, then the op; room for the first op of an iteration is made while the last one runs.
  const uint64_t time = plan_of(workload, "uvm", 2).predicted_ns;
  EXPECT_EQ(time, 6 * (12 * kMs + 4 * 45'000) - kMs);
}

// Copies begin when the eighth op before theirs begins: for a longer time the link has nothing to do.
TEST(DeepUm, FetchesForTheNextEightKernels) {
  const Workload workload = in_turn(20, updates);
  const plan::Plan plan = plan_of(workload, "deepum", 12);
  EXPECT_EQ(plan.predicted_ns, 200 * kMs);
  EXPECT_GT(plan.reload_bytes, 0u);
  std::vector<uint32_t> ops;
  for (const plan::Call& call : plan.calls) ops.push_back(call.vertex);
  size_t reloads = 0;
  for (const plan::Vertex& vertex : plan.vertices) {
    if (vertex.kind != plan::VertexKind::reload) continue;
    const auto op = static_cast<size_t>(vertex.tensor);  // weight i belongs to op i
    if (op < 9) continue;
    EXPECT_GE(vertex.predicted_start_ns, plan.vertices[ops[op - 8]].predicted_start_ns) << op;
    ++reloads;
  }
  EXPECT_GT(reloads, 0u);
}

TEST(DeepUm, KeepsWhatTheNextKernelsNeed) {
  // Least recently used is weight 0 when weight 3 needs room, but it is needed next.
  TraceBuilder program;
  std::vector<uint64_t> weights;
  for (int i = 0; i < 12; ++i) weights.push_back(program.allocate(kChunk));
  for (int step = 0; step < 3; ++step) {
    program.mark("iteration");
    for (int i = 0; i < 12; ++i) program.launch("layer", {reads(weights[static_cast<size_t>(i)])}, kMs);
    program.launch("again", {reads(weights[2])}, kMs);
  }
  program.mark("iteration");
  const Workload workload = workload_on(Machine{}, program);
  const auto comes_back = [&](const Policy& policy) {
    const Schedule schedule = policy.schedule({workload.graph, workload.machine, 4, true});
    const auto again = static_cast<uint32_t>(workload.graph.calls.size() - 1);
    return std::any_of(schedule.stays.begin(), schedule.stays.end(), [&](const Stay& stay) {
      return stay.tensor == 2 && stay.begin == again && stay.arrival == Arrival::reload;
    });
  };
  EXPECT_TRUE(comes_back(lru_policy()));
  EXPECT_FALSE(comes_back(deepum_policy()));
}

// w is a weight; a, b and c are made in turn and used in reverse, with ops on w between.
Workload pyramid(const Machine& machine) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk);
  for (int step = 0; step < 3; ++step) {
    program.mark("iteration");
    std::vector<uint64_t> made;
    for (int i = 0; i < 3; ++i) {
      made.push_back(program.allocate(kChunk));
      program.launch("make", {reads(w), writes(made.back())}, 10 * kMs);
    }
    for (int i = 0; i < 4; ++i) program.launch("work", {updates(w)}, 10 * kMs);
    for (size_t i = 3; i-- > 0;) {
      program.launch("use", {reads(w), reads(made[i])}, 10 * kMs);
      program.free(made[i]);
    }
  }
  program.mark("iteration");
  return workload_on(machine, program);
}

std::vector<uint32_t> tensors_leaving(const Schedule& schedule, Tier tier) {
  std::vector<uint32_t> result;
  for (const Stay& stay : schedule.stays) {
    if (stay.departure == Departure::offload && stay.to == tier) result.push_back(stay.tensor);
  }
  std::sort(result.begin(), result.end());
  return result;
}

TEST(FlashNeuron, SendsTheFirstActivationsToTheSsdUntilTheRestFits) {
  Machine machine = free_pages();
  machine.ssd_read_bytes_per_s = machine.ssd_write_bytes_per_s = machine.h2d_bytes_per_s / 2;
  const Workload workload = pyramid(machine);
  const auto leaving = [&](uint64_t capacity) {
    const Schedule schedule = flashneuron_policy().schedule({workload.graph, machine, capacity, true});
    EXPECT_TRUE(tensors_leaving(schedule, Tier::host).empty());
    return tensors_leaving(schedule, Tier::ssd);
  };
  EXPECT_EQ(leaving(4), std::vector<uint32_t>{});
  EXPECT_EQ(leaving(3), std::vector<uint32_t>{1});
  EXPECT_EQ(leaving(2), (std::vector<uint32_t>{1, 2}));
}

TEST(Baselines, AreKnownByNameAndLeftOutOfThePortfolio) {
  for (const Policy* policy : baseline_policies()) {
    EXPECT_EQ(find_policy(policy->name()), policy);
    EXPECT_TRUE(check_policy(policy->name()).ok());
    const auto& portfolio = all_policies();
    EXPECT_EQ(std::find(portfolio.begin(), portfolio.end(), policy), portfolio.end());
  }
  EXPECT_TRUE(has(check_policy("nobody").message(), "flashneuron"));
}

}  // namespace
}  // namespace reprise::analyzer
