// Orders of dispatch and noise: what may pass what, what that costs, and that the same seed gives the same answer.
#include <cmath>

#include "analyzer/planner/planner.h"
#include "analyzer/policies/policy.h"
#include "analyzer/simulate/ready_set.h"
#include "tests/support/graph_builder.h"
#include "tests/support/test.h"

namespace reprise::analyzer {
namespace {

using testing::GraphBuilder;

constexpr uint64_t kMs = 1'000'000;

// 1 ms for a chunk, either way.
Machine slow_link() {
  Machine machine;
  machine.h2d_bytes_per_s = machine.d2h_bytes_per_s = static_cast<double>(2 << 20) * 1000;
  machine.latency_ns = 0;
  return machine;
}

// A small graph of vertices alone; what a vertex waits for is said by number.
struct Bare {
  TaskGraph tasks;
  MemGraph graph;

  uint32_t op(uint64_t duration_ns, const std::vector<uint32_t>& after) {
    GraphCall call;
    call.call.op = trace::OpKind::launch;
    call.call.duration_ns = duration_ns;
    tasks.calls.push_back(call);
    plan::Vertex vertex;
    vertex.kind = plan::VertexKind::op;
    vertex.call = static_cast<uint32_t>(tasks.calls.size() - 1);
    return add(vertex, after);
  }
  uint32_t reload(uint64_t chunks, const std::vector<uint32_t>& after, uint32_t last_round = kNone) {
    return transfer(plan::VertexKind::reload, chunks, after, last_round);
  }
  uint32_t offload(uint64_t chunks, const std::vector<uint32_t>& after) {
    return transfer(plan::VertexKind::offload, chunks, after, kNone);
  }
  uint64_t time(Dispatch dispatch, NoiseOptions noise = {}, uint32_t rounds = 5) {
    tasks.waited_at_end = static_cast<uint32_t>(tasks.calls.size());  // every iteration starts with idle engines
    SimulationOptions options;
    options.dispatch = dispatch;
    options.noise = noise;
    options.rounds = rounds;
    Machine machine = slow_link();
    machine.remap_ns_per_chunk = kMs;
    return simulate(tasks, graph, machine, options).iteration_ns;
  }

 private:
  uint32_t transfer(plan::VertexKind kind, uint64_t chunks, const std::vector<uint32_t>& after, uint32_t last_round) {
    plan::Tensor tensor;
    tensor.size = chunks * (2 << 20);
    tensor.chunk_count = static_cast<uint32_t>(chunks);
    tasks.tensors.push_back(tensor);
    plan::Vertex vertex;
    vertex.kind = kind;
    vertex.tensor = static_cast<uint32_t>(tasks.tensors.size() - 1);
    if (last_round != kNone) vertex.predecessors.push_back({last_round, plan::EdgeKind::memory, 1});
    return add(vertex, after);
  }
  uint32_t add(plan::Vertex vertex, const std::vector<uint32_t>& after) {
    const auto number = static_cast<uint32_t>(graph.vertices.size());
    for (const uint32_t before : after) vertex.predecessors.push_back({before, plan::EdgeKind::data, 0});
    if (vertex.call != kNone) graph.vertex_of_call.push_back(number);
    graph.vertices.push_back(std::move(vertex));
    graph.tiers.push_back(Tier::host);
    graph.extra_ns.push_back(0);
    return number;
  }
};

// A kernel that waits for a long copy, listed before one that waits for a short copy.
Bare wrong_way_round() {
  Bare bare;
  const uint32_t start = bare.op(0, {});
  const uint32_t slow = bare.reload(4, {start}), quick = bare.reload(1, {start});
  bare.op(3 * kMs, {slow});
  bare.op(3 * kMs, {quick});
  return bare;
}

TEST(Dispatch, FirstReadyRunsFirst) {
  // The long copy comes first by priority in any case: copies end at 4 and 5 ms, kernels then run one after the other.
  EXPECT_EQ(wrong_way_round().time(Dispatch::free), 10 * kMs);
  Bare bare;
  const uint32_t start = bare.op(0, {});
  bare.op(3 * kMs, {bare.reload(4, {start})});
  bare.op(3 * kMs, {start});
  EXPECT_EQ(bare.time(Dispatch::free), 7 * kMs);            // the second kernel fills the wait of the first
  EXPECT_EQ(bare.time(Dispatch::fixed_plan), 10 * kMs);     // it must not pass the other one
  EXPECT_EQ(bare.time(Dispatch::fixed_kernels), 10 * kMs);  // not this way either
  EXPECT_EQ(bare.time(Dispatch::fixed_best), 7 * kMs);      // that order, fixed beforehand
}

// Copies may pass each other when only the kernels keep their order.
// What comes is copied and then mapped, 0.6 ms a chunk, while the next one is copied; what leaves is unmapped first.
TEST(Dispatch, StrictTransfersMapBesideTheCopiesOfOthers) {
  Bare two;
  const uint32_t first = two.reload(4, {});   // copied until 4 ms, mapped until 6.4
  const uint32_t second = two.reload(1, {});  // copied until 5, mapped until 7
  two.op(kMs / 2, {first});
  two.op(kMs, {second});
  EXPECT_EQ(two.time(Dispatch::free), 6 * kMs);
  two.tasks.transfers_map = true;
  for (const Dispatch dispatch : {Dispatch::free, Dispatch::fixed_plan, Dispatch::fixed_best}) {
    EXPECT_EQ(two.time(dispatch), 8 * kMs);
  }
  Bare away;
  const uint32_t made = away.op(kMs, {});
  const uint32_t gone = away.offload(5, {made});
  away.op(kMs, {gone});
  EXPECT_EQ(away.time(Dispatch::free), 7 * kMs);
  away.tasks.transfers_map = true;
  for (const Dispatch dispatch : {Dispatch::free, Dispatch::fixed_plan, Dispatch::fixed_best}) {
    EXPECT_EQ(away.time(dispatch), 9 * kMs);
  }
}

TEST(Dispatch, FixedKernelsLeaveTransfersFree) {
  Bare bare;
  const uint32_t first = bare.op(5 * kMs, {});
  const uint32_t late = bare.reload(1, {first}), early = bare.reload(3, {});
  bare.op(kMs, {late});
  bare.op(kMs, {early});
  EXPECT_EQ(bare.time(Dispatch::free), 7 * kMs);           // copies at 0..3 and 5..6, kernels at 5..6 and 6..7
  EXPECT_EQ(bare.time(Dispatch::fixed_kernels), 8 * kMs);  // the same copies, kernels at 6..7 and 7..8
  EXPECT_EQ(bare.time(Dispatch::fixed_plan), 10 * kMs);    // the second copy only at 6..9
}

TEST(Noise, IsNothingWhereThereIsNone) {
  Bare bare = wrong_way_round();
  EXPECT_EQ(bare.time(Dispatch::free, {0, 0, 7}), bare.time(Dispatch::free));
  EXPECT_EQ(bare.time(Dispatch::free, {0, 20 * kMs, 7}), bare.time(Dispatch::free));
}

TEST(Noise, TheSameSeedGivesTheSameTime) {
  Bare bare = wrong_way_round();
  const uint64_t once = bare.time(Dispatch::free, {0.2, 0, 1});
  EXPECT_EQ(bare.time(Dispatch::free, {0.2, 0, 1}), once);
  EXPECT_NE(bare.time(Dispatch::free, {0.2, 0, 2}), once);
  EXPECT_NE(bare.time(Dispatch::free, {0.2, 20 * kMs, 1}), once);
}

// Mean and deviation of a transfer's time are what was asked for; kernels are left alone.
TEST(Noise, HasTheMeanAndTheDeviationThatWereAskedFor) {
  const Noise noise({0.5, 0, 3});
  double sum = 0, squares = 0;
  constexpr uint32_t kCount = 200'000;
  for (uint32_t i = 0; i < kCount; ++i) {
    const auto length = static_cast<double>(noise.length(1'000'000, i, 1, 0)) / 1e6;
    sum += length;
    squares += length * length;
  }
  const double mean = sum / kCount;
  EXPECT_NEAR(mean, 1, 0.005);
  EXPECT_NEAR(std::sqrt(squares / kCount - mean * mean), 0.5, 0.01);
  Bare kernels;
  kernels.op(kMs, {kernels.op(kMs, {})});
  EXPECT_EQ(kernels.time(Dispatch::free, {0.5, 0, 1}), 2 * kMs);
}

// In a regime, transfers of one engine share their speed; those of another engine have their own.
TEST(Noise, RegimesHoldForAWhileAndForOneEngine) {
  const Noise noise({0.5, 20 * kMs, 9});
  EXPECT_EQ(noise.length(1000, 1, 1, 0), noise.length(1000, 2, 1, 5 * kMs));
  EXPECT_NE(noise.length(1000, 1, 1, 0), noise.length(1000, 1, 2, 0));
  EXPECT_NE(noise.length(1000, 1, 1, 0), noise.length(1000, 1, 1, 20 * kMs));
  // A transfer that outlasts its regime takes as long as its parts do.
  const uint64_t whole = noise.length(1000 * kMs, 1, 1, 0);
  EXPECT_GT(whole, 20 * kMs);
  uint64_t parts = 0;
  for (int i = 0; i < 1000; ++i) parts += noise.length(kMs, 1, 1, parts);
  EXPECT_NEAR(static_cast<double>(parts), static_cast<double>(whole), 1e5);
}

// In a fixed order no vertex passes another one, so noise cannot change which vertex follows which; and no order
// deadlocks.
void check_that_orders_end(bool transfers_map) {
  GraphBuilder builder(1);
  std::vector<uint32_t> weights;
  std::vector<uint32_t> kept;
  weights.reserve(12);
  kept.reserve(12);
  for (int i = 0; i < 12; ++i) weights.push_back(builder.persistent(0));
  for (int i = 0; i < 12; ++i) kept.push_back(builder.transient(0));
  for (size_t i = 0; i < 12; ++i) {
    std::vector<uint32_t> in = {weights[i]};
    if (i > 0) in.push_back(kept[i - 1]);
    builder.kernel(0, "forward", in, {kept[i]}, 300'000);
  }
  for (size_t i = 12; i-- > 0;) builder.kernel(0, "backward", {weights[i], kept[i]}, {weights[i]}, 400'000);
  PlanOptions options;
  options.machine = slow_link();
  options.policy = "disco";
  for (const Dispatch dispatch :
       {Dispatch::free, Dispatch::fixed_plan, Dispatch::fixed_kernels, Dispatch::fixed_best}) {
    for (const double sigma : {0.0, 0.5, 2.0}) {
      SimulationOptions trial;
      trial.dispatch = dispatch;
      trial.noise = {sigma, 0, 5};
      options.trials.push_back(trial);
    }
  }
  TaskGraph graph = builder.build();
  graph.transfers_map = transfers_map;
  const auto workload = good(make_workload(std::move(graph), options));
  options.budget_bytes = workload.minimum_bytes + 4 * (2 << 20);
  PlanSummary summary;
  const Result<plan::Plan> plan = make_plan(workload, options, &summary);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_GT(plan.value().offload_bytes, 0u);
  ASSERT_EQ(summary.trial_ns.size(), 12u);
  for (const uint64_t time : summary.trial_ns) EXPECT_GE(time, plan.value().compute_ns);
  EXPECT_EQ(summary.trial_ns[0], plan.value().predicted_ns);  // free, no noise: what the planner predicted
  EXPECT_EQ(summary.trial_ns[9], plan.value().predicted_ns);  // the best fixed order without noise is just that
  EXPECT_GT(summary.trial_ns[3], plan.value().predicted_ns);  // the plan's own order is not
  EXPECT_NE(summary.trial_ns[1], plan.value().predicted_ns);
}

TEST(Dispatch, EveryOrderComesToAnEndUnderNoise) {
  for (const bool transfers_map : {false, true}) check_that_orders_end(transfers_map);
}

TEST(ReadySet, KeepsTheLeastInFront) {
  for (const uint32_t limit : {1u, 63u, 64u, 65u, 4096u, 4097u, 300'000u}) {
    ReadySet set(limit);
    EXPECT_TRUE(set.empty());
    set.insert(limit - 1);
    EXPECT_EQ(set.least(), limit - 1);
    set.insert(limit / 2);
    EXPECT_EQ(set.least(), limit / 2);
    set.insert(0);
    EXPECT_EQ(set.least(), 0u);
    set.erase(0);
    if (limit == 1) continue;
    EXPECT_EQ(set.least(), limit / 2);
    set.erase(limit / 2);
    EXPECT_EQ(set.empty(), limit == 2);
    set.erase(limit - 1);
    EXPECT_TRUE(set.empty());
  }
}

}  // namespace
}  // namespace reprise::analyzer
