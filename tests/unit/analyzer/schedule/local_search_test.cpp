// The search for schedules that keep fewer kernels waiting.
#include "analyzer/schedule/local_search.h"

#include "analyzer/policies/policy.h"
#include "analyzer/schedule/gap_choices.h"
#include "tests/support/graph_builder.h"
#include "tests/support/test.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

constexpr uint32_t kWeights = 10;
constexpr uint64_t kCapacity = 8;
constexpr uint64_t kOpNs = 1'000'000;

// Each op reads one of the weights, in a circle: the weight that was used least recently is needed next.
TaskGraph circle() {
  GraphBuilder program(1);
  std::vector<uint32_t> weights;
  weights.reserve(kWeights);
  for (uint32_t i = 0; i < kWeights; ++i) weights.push_back(program.persistent(0));
  for (const uint32_t weight : weights) program.kernel(0, "use", {weight}, {}, kOpNs);
  return program.build();
}

// A copy takes as long as two ops.
Machine slow_link(const TaskGraph& graph) {
  Machine machine;
  machine.latency_ns = 0;
  machine.h2d_bytes_per_s = machine.d2h_bytes_per_s = static_cast<double>(graph.chunk_bytes) / (2 * kOpNs * 1e-9);
  return machine;
}

TEST(StallSearch, FindsWhoShouldStay) {
  const TaskGraph graph = circle();
  const Machine machine = slow_link(graph);
  const Schedule start = lru_policy().schedule({graph, machine, kCapacity, true});
  const uint64_t before = retime(graph, machine, start, kCapacity).iteration_ns;
  EXPECT_GT(before, 15 * kOpNs);
  const auto found = search_stalls(graph, machine, {start}, kCapacity, 200);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->iteration_ns, graph.compute_ns);  // three of ten in the time of ten: no op waits
  EXPECT_TRUE(found->waits.empty());
}

TEST(StallSearch, TheSameInputGivesTheSameSchedule) {
  const TaskGraph graph = circle();
  const Machine machine = slow_link(graph);
  const Schedule start = lru_policy().schedule({graph, machine, kCapacity, true});
  const auto one = search_stalls(graph, machine, {start, start}, kCapacity, 10);
  const auto other = search_stalls(graph, machine, {start, start}, kCapacity, 10);
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->iteration_ns, other->iteration_ns);
  EXPECT_EQ(one->schedule.reload_bytes, other->schedule.reload_bytes);
}

TEST(StallSearch, WithoutHostMemoryThereIsNothingToPlay) {
  const TaskGraph graph = circle();
  Machine machine = slow_link(graph);
  machine.host_bytes = graph.chunk_bytes;
  const Schedule start = lru_policy().schedule({graph, machine, kCapacity, true});
  EXPECT_FALSE(search_stalls(graph, machine, {start}, kCapacity, 10));
}

TEST(Residency, RoomFollowsTheChoices) {
  const TaskGraph graph = circle();
  const Machine machine = slow_link(graph);
  GapChoices choices(graph, disco_policy().schedule({graph, machine, kCapacity, true}), kCapacity);
  ASSERT_EQ(choices.gaps().size(), kWeights);
  uint32_t away = 0;
  for (uint32_t i = 0; i < kWeights; ++i) {
    const Gap& gap = choices.gaps()[i];
    EXPECT_EQ(gap.to, gap.from + kWeights);
    if (!gap.away) continue;
    ++away;
    const int64_t room = choices.room(gap.from + 1);
    choices.set_away(i, false);
    EXPECT_EQ(choices.room(gap.from + 1), room - 1);
    EXPECT_EQ(choices.gap_before(gap.tensor, OpIndex{gap.to % kWeights}), i);
  }
  EXPECT_GT(away, 0u);
  EXPECT_EQ(choices.room(OpIndex{0}), static_cast<int64_t>(kCapacity) - kWeights);
  const Schedule all = choices.schedule();
  ASSERT_EQ(all.stays.size(), kWeights);
  for (const Stay& stay : all.stays) EXPECT_EQ(stay.arrival, Arrival::always);
}

}  // namespace
}  // namespace reprise::analyzer
