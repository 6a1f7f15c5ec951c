// What the serial walk keeps, evicts and brings back; and the faults of the printed algorithm that it must not have.
#include "analyzer/memgraph/build.h"
#include "analyzer/planner/planner.h"
#include "analyzer/policies/policy.h"
#include "tests/support/test.h"
#include "tests/support/trace_builder.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

template <typename Body>
Workload workload_of(TraceBuilder& program, Body&& body) {
  for (int i = 0; i < 2; ++i) {
    program.mark("iteration");
    body();
  }
  program.mark("iteration");
  return good(Planning(program.trace(), {}).workload());
}

Schedule schedule_of(const Workload& workload, uint64_t capacity, const Policy& policy = disco_policy()) {
  return policy.schedule({workload.graph, workload.machine, capacity, true});
}

std::vector<Stay> stays_of(const Schedule& schedule, uint32_t tensor) {
  std::vector<Stay> stays;
  for (const Stay& stay : schedule.stays) {
    if (stay.tensor == tensor) stays.push_back(stay);
  }
  return stays;
}

// TURNIP's running situation: more tensors than slots, and the one that is needed last has to go.
TEST(Walk, EvictsWhatIsNeededLast) {
  TraceBuilder program;
  const uint64_t a = program.allocate(kChunk), b = program.allocate(kChunk), c = program.allocate(kChunk);
  const Workload workload = workload_of(program, [&] {
    program.launch("0", {updates(a)});
    program.launch("1", {updates(b)});
    program.launch("2", {updates(c)});
    program.launch("3", {updates(b)});
    program.launch("4", {updates(a)});
  });
  const Schedule schedule = schedule_of(workload, 2);
  // At 2 one of a and b must go: b is next, a later. At 4 a comes back for b or c; in the next iteration a is first.
  const std::vector<Stay> first = stays_of(schedule, 0);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].begin, 4u);
  EXPECT_TRUE(first[0].wraps);
  EXPECT_EQ(first[0].end, 1u);
  EXPECT_EQ(first[0].departure, Departure::offload);
  EXPECT_EQ(schedule.reload_bytes, 2 * kChunk);
}

// Memory is not freed between the inputs of one op: an op on three tensors needs three at once, whatever happens to
// them.
TEST(Walk, OperandsOfAnOpArePinnedTogether) {
  TraceBuilder program;
  const uint64_t x = program.allocate(kChunk), y = program.allocate(kChunk), z = program.allocate(kChunk);
  const Workload workload = workload_of(program, [&] {
    program.launch("xy", {reads(x), updates(y)});
    const uint64_t t = program.allocate(kChunk);
    program.launch("yzt", {reads(y), reads(z), writes(t)});
    program.free(t);
  });
  EXPECT_EQ(workload.largest.chunks, 3u);
  const Schedule schedule = schedule_of(workload, 3);
  for (uint32_t call = 0; call < 4; ++call) {
    for (const uint32_t operand : workload.graph.calls[call].operands) {
      const std::vector<Stay> stays = stays_of(schedule, operand);
      EXPECT_TRUE(std::any_of(
          stays.begin(), stays.end(),
          [&](const Stay& s) { return s.wraps ? call >= s.begin || call < s.end : call >= s.begin && call < s.end; }))
          << operand << " at " << call;
    }
  }
}

// An output that no op reads still makes the next owner of its chunks wait for its writer.
TEST(Walk, UnreadOutputsAreNotForgotten) {
  TraceBuilder program;
  const Workload workload = workload_of(program, [&] {
    for (int i = 0; i < 2; ++i) {
      const uint64_t t = program.allocate(kChunk);
      program.launch("write" + std::to_string(i), {writes(t)});
      program.free(t);
    }
  });
  PlanOptions options;
  options.budget_bytes = kChunk;
  const Result<plan::Plan> plan = make_plan(workload, options);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const uint32_t first = plan.value().calls[1].vertex, second = plan.value().calls[4].vertex;
  const std::vector<plan::Predecessor>& edges = plan.value().vertices[second].predecessors;
  EXPECT_TRUE(std::any_of(edges.begin(), edges.end(), [&](const plan::Predecessor& p) {
    return p.vertex == first && p.kind == plan::EdgeKind::memory && p.distance == 0;
  })) << plan::to_text(plan.value());
}

// What is only read is copied out never: its host copy stays valid from iteration to iteration.
TEST(Walk, CleanTensorsAreDroppedNotCopied) {
  TraceBuilder program;
  std::vector<uint64_t> weights;
  for (int i = 0; i < 6; ++i) weights.push_back(program.allocate(kChunk));
  const uint64_t x = program.allocate(kChunk);
  const Workload workload = workload_of(program, [&] {
    for (const uint64_t w : weights) program.launch("layer", {reads(w), updates(x)});
  });
  for (const auto* policies : {&all_policies(), &baseline_policies()}) {
    for (const Policy* policy : *policies) {
      const Schedule schedule = schedule_of(workload, 4, *policy);
      EXPECT_EQ(schedule.offload_bytes, 0u) << policy->name();
      EXPECT_GT(schedule.reload_bytes, 0u) << policy->name();
    }
  }
}

// A large victim makes smaller ones superfluous that were chosen before it.
TEST(Walk, SparesWhatNeedNotGo) {
  TraceBuilder program;
  const uint64_t small = program.allocate(kChunk), large = program.allocate(4 * kChunk);
  const uint64_t other = program.allocate(4 * kChunk);
  const Workload workload = workload_of(program, [&] {
    program.launch("large", {updates(large)});
    program.launch("other", {updates(other)});
    program.launch("small", {updates(small)});
  });
  const Schedule schedule = schedule_of(workload, 5);
  ASSERT_EQ(stays_of(schedule, 0).size(), 1u);
  EXPECT_EQ(stays_of(schedule, 0)[0].arrival, Arrival::always);
}

TEST(Walk, ACopyOutMayOverlapReaders) {
  TraceBuilder program;
  const uint64_t x = program.allocate(kChunk), y = program.allocate(2 * kChunk);
  const Workload workload = workload_of(program, [&] {
    program.launch("write", {updates(x)});
    program.launch("read", {reads(x)});
    program.launch("y", {updates(y)});
  });
  PlanOptions options;
  options.budget_bytes = 2 * kChunk;
  const auto made = good(make_plan(workload, options));
  const plan::Plan& plan = made;
  const uint32_t write = plan.calls[0].vertex;
  const uint32_t read = plan.calls[1].vertex;
  for (const plan::Vertex& vertex : plan.vertices) {
    if (vertex.kind != plan::VertexKind::offload || vertex.tensor != 0) continue;
    ASSERT_EQ(vertex.predecessors.size(), 1u);
    EXPECT_EQ(vertex.predecessors[0].vertex, write);
    EXPECT_NE(vertex.predecessors[0].vertex, read);
  }
}

}  // namespace
}  // namespace reprise::analyzer
