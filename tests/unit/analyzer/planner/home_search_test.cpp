// Homes by trial, and the critical path that they are sought along.
#include "analyzer/planner/home_search.h"

#include "analyzer/base/parallel.h"
#include "analyzer/policies/policy.h"
#include "tests/support/graph_builder.h"
#include "tests/support/test.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

constexpr uint64_t kOpNs = 1'000'000;
constexpr uint32_t kCapacity = 24;

// Tensors of one to five chunks that ops read and write, forwards, then backwards.
TaskGraph random_program(uint32_t seed) {
  std::mt19937 random(seed);
  GraphBuilder program(1);
  std::vector<uint32_t> tensors;
  for (uint32_t i = 0; i < 16; ++i) tensors.push_back(program.persistent(0, 1 + random() % 5));
  for (uint32_t i = 0; i + 1 < 32; ++i) {
    const uint32_t at = i < 16 ? i : 31 - i;
    program.kernel(0, "layer", {tensors[at]}, {tensors[random() % 16]}, kOpNs * (1 + random() % 3));
  }
  return program.build();
}

Machine slow_link(const TaskGraph& graph) {
  Machine machine;
  machine.latency_ns = 0;
  machine.h2d_bytes_per_s = machine.d2h_bytes_per_s = static_cast<double>(graph.chunk_bytes) / (kOpNs * 1e-9);
  return machine;
}

std::optional<PlanCandidate> candidate_of(const TaskGraph& graph, const Machine& machine) {
  return make_candidate(
      graph, {}, machine,
      {&link_aware_policy(), kCapacity - 2, kCapacity, PlacementMode::homes, HomeOrder::longest_first, true});
}

void expect_disjoint(const PlanCandidate& candidate, uint32_t calls) {
  for (uint32_t call = 0; call < calls; ++call) {
    std::set<uint32_t> taken;
    for (const Stay& s : candidate.schedule.stays) {
      const bool always = s.arrival == Arrival::always;
      const bool there = s.wraps ? call >= s.begin || call < s.end : call >= s.begin && call < s.end;
      if (!there && !always) continue;
      for (const uint32_t chunk : candidate.layout.placements[s.placement].chunks)
        EXPECT_TRUE(taken.insert(chunk).second) << call;
    }
    EXPECT_LE(taken.size(), kCapacity);
  }
}

TEST(HomeSearch, FindsFasterHomesAndKeepsTheSchedule) {
  uint32_t faster = 0, placed = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const TaskGraph graph = random_program(seed);
    const Machine machine = slow_link(graph);
    const auto before = candidate_of(graph, machine);
    if (!before) continue;
    ++placed;
    PlanCandidate best = *before;
    search_homes(graph, machine, 60, best);
    EXPECT_LE(best.prediction.iteration_ns, before->prediction.iteration_ns) << seed;
    EXPECT_EQ(best.schedule.reload_bytes, before->schedule.reload_bytes);
    EXPECT_EQ(best.layout.remap_count, 0u);
    EXPECT_EQ(simulate(graph, best.graph, machine, {}).iteration_ns, best.prediction.iteration_ns);
    expect_disjoint(best, static_cast<uint32_t>(graph.calls.size()));
    if (best.prediction.iteration_ns < before->prediction.iteration_ns) ++faster;
  }
  EXPECT_GE(placed, 10u);
  EXPECT_GE(faster, placed / 5);
}

TEST(HomeSearch, FindsTheSameHomesOnAnyNumberOfProcessors) {
  uint32_t faster = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const TaskGraph graph = random_program(seed);
    const Machine machine = slow_link(graph);
    std::optional<PlanCandidate> one = candidate_of(graph, machine);
    if (!one) continue;
    PlanCandidate other = *one;
    const uint64_t before = one->prediction.iteration_ns;
    processors_wished = 1;
    const uint32_t played = search_homes(graph, machine, 40, *one);
    processors_wished = 4;
    EXPECT_EQ(search_homes(graph, machine, 40, other), played) << seed;
    processors_wished = 0;
    EXPECT_EQ(one->prediction.iteration_ns, other.prediction.iteration_ns) << seed;
    EXPECT_EQ(one->layout.homes, other.layout.homes) << seed;
    for (size_t i = 0; i < one->layout.placements.size(); ++i) {
      EXPECT_EQ(one->layout.placements[i].chunks, other.layout.placements[i].chunks) << seed;
    }
    if (one->prediction.iteration_ns < before) ++faster;
  }
  EXPECT_GE(faster, 2u);
}

// Each vertex of the path begins when the next one ends, in this iteration or another one, and the path is as long as
// the iteration.
TEST(CriticalPath, HasNoGaps) {
  uint32_t looked = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const TaskGraph graph = random_program(seed);
    const Machine machine = slow_link(graph);
    const auto candidate = candidate_of(graph, machine);
    if (!candidate) continue;
    SimulationOptions options;
    options.critical_path = true;
    options.rounds = 9;
    const Prediction prediction = simulate(graph, candidate->graph, machine, options);
    options.critical_path = false;
    EXPECT_EQ(prediction.iteration_ns, simulate(graph, candidate->graph, machine, options).iteration_ns);
    ASSERT_FALSE(prediction.critical_path.empty()) << seed;
    const auto length = static_cast<int64_t>(prediction.iteration_ns);
    int64_t total = 0;
    for (size_t i = 0; i < prediction.critical_path.size(); ++i) {
      const CriticalStep& cause = prediction.critical_path[i];
      if (i > 0) {
        EXPECT_EQ(cause.vertex, prediction.critical_path[i - 1].before);
      }
      EXPECT_EQ((prediction.start_ns[cause.vertex] - prediction.end_ns[cause.before]) % length, 0) << seed;
      total += prediction.end_ns[cause.vertex] - prediction.start_ns[cause.vertex];
    }
    const CriticalStep& last = prediction.critical_path.back();
    total += prediction.end_ns[last.before] - prediction.start_ns[last.before];
    EXPECT_GE(total, length) << seed;
    ++looked;
  }
  EXPECT_GE(looked, 10u);
}

}  // namespace
}  // namespace reprise::analyzer
