// Which edges the TaskGraph has, and which it has not.
#include "analyzer/taskgraph/graph.h"
#include "analyzer/taskgraph/hazards.h"
#include "tests/support/test.h"
#include "tests/support/trace_builder.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

// Two iterations of what `body` does; the graph of the second. The mark keeps the start where the test wants it.
template <typename Body>
TaskGraph graph_of(TraceBuilder& program, Body&& body) {
  for (int i = 0; i < 2; ++i) {
    program.mark("iteration");
    body();
  }
  program.mark("iteration");
  const CallStream stream = make_call_stream(program.trace());
  // The last mark stands behind the last call, so that both iterations are complete.
  const Result<Iteration> iteration = find_iteration(stream);
  EXPECT_TRUE(iteration.ok()) << iteration.status().message();
  return good(build_task_graph(stream, iteration.value(), kChunk, machine_of(program.trace())));
}

bool has_edge(const TaskGraph& graph, uint32_t from, uint32_t to, uint8_t distance = 0) {
  return std::any_of(graph.edges.begin(), graph.edges.end(),
                     [&](const DataEdge& e) { return e.from == from && e.to == to && e.distance == distance; });
}

TEST(TaskGraph, ReadsAndWritesMakeEdges) {
  TraceBuilder program;
  const uint64_t x = program.allocate(4 * kChunk);
  const TaskGraph graph = graph_of(program, [&] {
    program.launch("write", {writes(x)});
    program.launch("read a", {reads(x)});
    program.launch("read b", {reads(x)});
    program.launch("write again", {writes(x)});
  });
  EXPECT_TRUE(has_edge(graph, 0, 1));
  EXPECT_TRUE(has_edge(graph, 0, 2));
  EXPECT_FALSE(has_edge(graph, 1, 2));
  EXPECT_TRUE(has_edge(graph, 1, 3));
  EXPECT_TRUE(has_edge(graph, 2, 3));
  EXPECT_FALSE(has_edge(graph, 0, 3));  // implied
  EXPECT_TRUE(has_edge(graph, 3, 0, 1));
  EXPECT_EQ(graph.edges.size(), 5u) << to_text(graph);
}

TEST(TaskGraph, KnownRangesAreIndependentUnknownOnesAreNot) {
  TraceBuilder program;
  const uint64_t x = program.allocate(4 * kChunk);
  const TaskGraph graph = graph_of(program, [&] {
    program.launch("whole", {updates(x)});
    program.launch("left", {{x, 3, 0, kChunk}});
    program.launch("right", {{x, 3, kChunk, kChunk}});
    program.launch("from the middle on", {{x, 3, 2 * kChunk, 0}});
  });
  EXPECT_TRUE(has_edge(graph, 0, 1));
  EXPECT_TRUE(has_edge(graph, 0, 2));
  EXPECT_FALSE(has_edge(graph, 1, 2));
  EXPECT_TRUE(has_edge(graph, 1, 3));  // a pointer alone does not say where the kernel stops
  EXPECT_TRUE(has_edge(graph, 2, 3));
}

TEST(TaskGraph, TransientTensorsAreNewEachTime) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk);
  const TaskGraph graph = graph_of(program, [&] {
    const uint64_t t = program.allocate(kChunk);
    program.launch("make", {reads(w), writes(t)});
    program.launch("use", {reads(t)});
    program.free(t);
  });
  ASSERT_EQ(graph.tensors.size(), 2u);
  EXPECT_TRUE(is_persistent(graph.tensors[0]));
  EXPECT_EQ(graph.tensors[1].allocate_call, 0u);
  EXPECT_EQ(graph.tensors[1].free_call, 3u);
  EXPECT_TRUE(has_edge(graph, 1, 2));
  EXPECT_EQ(graph.edges.size(), 1u) << to_text(graph);
  EXPECT_EQ(graph.peak_bytes, 2 * kChunk);
}

TEST(TaskGraph, TheFirstOpOwnsNewMemory) {
  TraceBuilder program;
  const TaskGraph graph = graph_of(program, [&] {
    const uint64_t t = program.allocate(4 * kChunk);
    program.launch("one half", {{t, 3, 0, 2 * kChunk}});
    program.launch("other half", {{t, 3, 2 * kChunk, 2 * kChunk}});
    program.free(t);
  });
  EXPECT_TRUE(has_edge(graph, 1, 2));
}

TEST(TaskGraph, OpaqueOpsAreBarriersAndUseEverything) {
  TraceBuilder program;
  const uint64_t x = program.allocate(kChunk), y = program.allocate(2 * kChunk);
  const TaskGraph graph = graph_of(program, [&] {
    program.launch("x", {updates(x)});
    program.op(trace::OpKind::graph_launch, "", {}, 1000, trace::kOpOpaque, 0);
    program.launch("y", {updates(y)});
  });
  EXPECT_TRUE(graph.calls[1].barrier);
  EXPECT_EQ(graph.calls[1].operands, (std::vector<uint32_t>{0, 1}));
  EXPECT_TRUE(has_edge(graph, 0, 1));
  EXPECT_TRUE(has_edge(graph, 1, 2));
  EXPECT_TRUE(has_edge(graph, 2, 1, 1));
}

TEST(TaskGraph, LaunchesWithoutPointersKeepTheirPlace) {
  TraceBuilder program;
  const uint64_t x = program.allocate(kChunk);
  const TaskGraph graph = graph_of(program, [&] {
    program.launch("x", {updates(x)});
    program.launch("global state", {});
  });
  EXPECT_TRUE(graph.calls[1].barrier);
  EXPECT_TRUE(graph.calls[1].operands.empty());
  EXPECT_TRUE(has_edge(graph, 0, 1));
  EXPECT_TRUE(has_edge(graph, 1, 0, 1));
}

TEST(TaskGraph, CopiesAreOrderedByTheirHostMemory) {
  TraceBuilder program;
  const uint64_t x = program.allocate(kChunk), y = program.allocate(kChunk);
  const uint64_t pinned = program.allocate(kChunk, trace::Origin::host);
  const uint64_t other = program.allocate(kChunk, trace::Origin::host);
  const TaskGraph graph = graph_of(program, [&] {
    program.op(trace::OpKind::copy_device_to_host, "", {reads(x), writes(pinned)}, 1000, 0, kChunk);
    program.op(trace::OpKind::copy_host_to_device, "", {reads(pinned), writes(y)}, 1000, 0, kChunk);
    program.op(trace::OpKind::copy_host_to_device, "", {reads(other), writes(x)}, 1000, 0, kChunk);
  });
  EXPECT_EQ(graph.tensors.size(), 2u);  // pinned memory is no tensor of the plan
  EXPECT_EQ(graph.calls[0].call.accesses.size(), 1u);
  EXPECT_TRUE(has_edge(graph, 0, 1));
  EXPECT_FALSE(has_edge(graph, 1, 2));
}

TEST(TaskGraph, DurationsAreRecordedOrEstimated) {
  TraceBuilder program;
  const uint64_t x = program.allocate(1000 * kChunk);
  const TaskGraph graph = graph_of(program, [&] {
    program.launch("known", {updates(x)}, 123'456);
    program.launch("unknown", {updates(x)}, 0);
  });
  EXPECT_EQ(graph.calls[0].call.duration_ns, 123'456u);
  EXPECT_GT(graph.calls[1].call.duration_ns, 1'000'000u);
  EXPECT_EQ(graph.estimated_count, 1u);
  EXPECT_EQ(graph.compute_ns, graph.calls[0].call.duration_ns + graph.calls[1].call.duration_ns);
}

TEST(TaskGraph, AnOpWithoutADurationTakesWhatTheSameOneTookElsewhere) {
  TraceBuilder program;
  const uint64_t x = program.allocate(1000 * kChunk), y = program.allocate(1000 * kChunk);
  const TaskGraph graph = graph_of(program, [&] {
    program.launch("kernel", {updates(x)}, 123'456);
    program.launch("kernel", {updates(y)}, 0);
  });
  EXPECT_EQ(graph.calls[1].call.duration_ns, 123'456u);
  EXPECT_EQ(graph.estimated_count, 1u);
}

TEST(TaskGraph, KnowsHowFarTheProgramHasWaited) {
  TraceBuilder program;
  const uint64_t x = program.allocate(kChunk);
  const TaskGraph graph = graph_of(program, [&] {
    program.launch("a", {updates(x)});
    program.synchronize();
    program.launch("b", {updates(x)});
    program.launch("c", {updates(x)});
  });
  EXPECT_EQ(graph.calls[0].waited, 0u);
  EXPECT_EQ(graph.calls[1].waited, 1u);
  EXPECT_EQ(graph.calls[2].waited, 1u);
  EXPECT_EQ(graph.waited_at_end, 1u);
}

TEST(TaskGraph, AddressesSayWhereSmallTensorsLie) {
  for (const bool managed : {false, true}) {
    TraceBuilder program;
    const uint64_t w = program.allocate(kChunk);
    std::vector<uint64_t> small;
    for (uint64_t i = 0; i < 3; ++i) {
      small.push_back(program.allocate(4096, trace::Origin::alloc, (100 + i) * kChunk + i * 4096));
    }
    if (managed) program.info("memory.managed", "1");
    const TaskGraph graph = graph_of(program, [&] { program.launch("step", {updates(w), reads(small[0])}); });
    EXPECT_EQ(graph.small_chunks, managed ? 3u : 1u);
  }
}

TEST(TaskGraph, TensorsOfTwoDevicesAreRefused) {
  TraceBuilder program;
  const uint64_t x = program.allocate(kChunk), y = program.allocate(kChunk);
  for (int i = 0; i < 3; ++i) program.launch("a", {updates(x), updates(y)});
  trace::Trace trace = program.trace();
  for (trace::Event& event : trace.events) {
    auto* const made = std::get_if<trace::Allocate>(&event);
    if (made != nullptr && made->record.allocation == y) made->record.device = 1;
  }
  const CallStream stream = make_call_stream(trace);
  const auto iteration = good(find_iteration(stream, 1));
  EXPECT_EQ(build_task_graph(stream, iteration, kChunk, {}).status().code(), StatusCode::unsupported);
}

TEST(TaskGraph, HasTextAndDotForms) {
  TraceBuilder program;
  const uint64_t x = program.allocate(kChunk);
  const TaskGraph graph = graph_of(program, [&] { program.launch("say \"hi\"", {updates(x)}); });
  EXPECT_TRUE(has(to_text(graph), "tensor 0 size=2097152 chunks=1 persistent\n"));
  EXPECT_TRUE(has(to_text(graph), "edge 0 -> 0 distance=1 data\n"));
  EXPECT_TRUE(has(to_dot(graph), "c0 [label=\"0 say \\\"hi\\\"\"]"));
}

TEST(Hazards, FollowsOverlappingRanges) {
  Hazards hazards;
  std::vector<Stamp> before;
  hazards.access(0, 100, true, {1, 0}, before);
  EXPECT_TRUE(before.empty());
  hazards.access(50, 150, true, {2, 0}, before);
  EXPECT_EQ(before, (std::vector<Stamp>{{1, 0}}));
  before.clear();
  hazards.access(0, 200, false, {3, 0}, before);
  EXPECT_EQ(before, (std::vector<Stamp>{{1, 0}, {2, 0}}));
  before.clear();
  hazards.access(140, 160, true, {4, 0}, before);
  EXPECT_EQ(before, (std::vector<Stamp>{{3, 0}, {3, 0}}));
  before.clear();
  hazards.frontier(before);
  EXPECT_NE(std::find(before.begin(), before.end(), Stamp{4, 0}), before.end());
  EXPECT_EQ(std::find(before.begin(), before.end(), Stamp{1, 0}), before.end());  // 3 has read all of it since
}

}  // namespace
}  // namespace reprise::analyzer
