// Split tensors: how the graph is rewritten, what that is worth, and what the verifier says to plans in which
// parts do not make their tensor.
#include "analyzer/rewrite/split_tensors.h"

#include "analyzer/planner/planner.h"
#include "analyzer/rewrite/reorder.h"
#include "analyzer/verify/verify.h"
#include "tests/support/trace_builder.h"
#include "tests/support/workloads.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

// A weight of five chunks and a half, an activation of four, and something small.
Workload layers() {
  TraceBuilder program;
  const uint64_t w = program.allocate(5 * kChunk + kChunk / 2), s = program.allocate(kChunk);
  for (int step = 0; step < 3; ++step) {
    program.mark("iteration");
    const uint64_t x = program.allocate(4 * kChunk);
    program.launch("make", {reads(w), writes(x)}, kMs);
    program.synchronize();
    program.launch("head", {{x, trace::kAccessRead, 0, 2 * kChunk}, updates(s)}, kMs);
    program.launch("across", {{w, trace::kAccessWrite, kChunk, 3 * kChunk}}, kMs);
    program.free(x);
  }
  program.mark("iteration");
  return workload_on(slow_link(), program);
}

std::string lines(const std::string& text, const std::string& kind) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    if (text.compare(at, kind.size(), kind) == 0) result += text.substr(at, end + 1 - at);
    at = end + 1;
  }
  return result;
}

TEST(Parts, StandForTheirTensorInAllCalls) {
  const Workload workload = layers();
  EXPECT_EQ(lines(to_text(workload.graph), "call"),
            "call 0 allocate tensor=2\n"
            "call 1 op make ns=1000000 r[0+0:0] w[2+0:0]\n"
            "call 2 op head ns=1000000 r[2+0:4194304] rw[1+0:0]\n"
            "call 3 op across ns=1000000 w[0+2097152:6291456]\n"
            "call 4 free tensor=2\n");
  const TaskGraph parts = with_split_tensors(workload.graph, 2, 100);
  EXPECT_EQ(lines(to_text(parts), "tensor"),
            "tensor 0 size=4194304 chunks=2 part_of=0+0 persistent\n"
            "tensor 1 size=4194304 chunks=2 part_of=0+4194304 persistent\n"
            "tensor 2 size=3145728 chunks=2 part_of=0+8388608 persistent\n"
            "tensor 3 size=2097152 chunks=1 persistent\n"
            "tensor 4 size=4194304 chunks=2 part_of=4+0 transient 0..5\n"
            "tensor 5 size=4194304 chunks=2 part_of=4+4194304 transient 1..6\n");
  // "make" has pointers alone and reaches every part; the others say where they go.
  EXPECT_EQ(lines(to_text(parts), "call"),
            "call 0 allocate tensor=4\n"
            "call 1 allocate tensor=5\n"
            "call 2 op make ns=1000000 r[0+0:0] r[1+0:0] r[2+0:0] w[4+0:0] w[5+0:0]\n"
            "call 3 op head ns=1000000 r[4+0:4194304] rw[3+0:0]\n"
            "call 4 op across ns=1000000 w[0+2097152:2097152] w[1+0:4194304]\n"
            "call 5 free tensor=4\n"
            "call 6 free tensor=5\n");
  EXPECT_FALSE(parts.calls[0].call.inserted);
  EXPECT_TRUE(parts.calls[1].call.inserted);
  EXPECT_EQ(parts.peak_chunks, workload.graph.peak_chunks);
  EXPECT_EQ(parts.peak_bytes, workload.graph.peak_bytes);
  EXPECT_EQ(parts.compute_ns, workload.graph.compute_ns);
  // The program had waited for its first two calls, which are three now.
  EXPECT_EQ(workload.graph.calls[2].waited, 2u);
  EXPECT_EQ(parts.calls[3].waited, 3u);
}

TEST(Parts, OnlyLargeTensorsHaveThem) {
  const TaskGraph graph = layers().graph;
  EXPECT_EQ(with_split_tensors(graph, 4, 100).tensors.size(), 4u);  // w in two
  EXPECT_EQ(with_split_tensors(graph, 6, 100).tensors.size(), 3u);
  // Larger ones first, as far as the accesses go that may be added: w has two, x has two.
  const TaskGraph few = with_split_tensors(graph, 3, 2);
  ASSERT_EQ(few.tensors.size(), 4u);
  EXPECT_EQ(few.tensors[1].part_of, 0u);
  EXPECT_EQ(few.tensors[3].part_of, kNone);
  EXPECT_EQ(with_split_tensors(graph, 3, 1).tensors.size(), 3u);
}

TEST(Parts, WhatTakesOverStaysWhole) {
  TaskGraph graph = layers().graph;
  GraphCall entry;
  entry.call.kind = plan::CallKind::free_handover;
  entry.call.tensor = 0;
  graph.calls.push_back(entry);
  entry.call.kind = plan::CallKind::allocate_handover;
  graph.calls.push_back(entry);
  complete_task_graph(graph);
  const TaskGraph parts = with_split_tensors(graph, 2, 100);
  EXPECT_EQ(parts.tensors[0].part_of, kNone);
  EXPECT_EQ(parts.tensors[2].part_of, 2u);
}

// Two weights and a large gradient for each; updates move behind their gradients.
TEST(Parts, AGraphInAnotherOrderSaysWhereTheProgramHasItsCalls) {
  TraceBuilder program;
  const uint64_t a = program.allocate(4 * kChunk), b = program.allocate(4 * kChunk);
  for (int step = 0; step < 3; ++step) {
    program.mark("iteration");
    const uint64_t for_b = program.allocate(4 * kChunk);
    program.launch("gradient b", {reads(b), writes(for_b)}, kMs);
    const uint64_t for_a = program.allocate(4 * kChunk);
    program.launch("gradient a", {reads(a), writes(for_a)}, kMs);
    program.launch("update a", {updates(a), reads(for_a)}, kMs);
    program.free(for_a);
    program.launch("update b", {updates(b), reads(for_b)}, kMs);
    program.free(for_b);
  }
  program.mark("iteration");
  const Workload workload = workload_on(slow_link(), program);
  const TaskGraph early = with_reordered_updates(workload.graph);
  ASSERT_FALSE(early.reordered_from.empty());
  const TaskGraph then = with_split_tensors(early, 2, 100), first = with_split_tensors(workload.graph, 2, 100);
  ASSERT_EQ(then.reordered_from.size(), then.calls.size());
  std::vector<uint32_t> seen(then.calls.size(), 0);
  for (uint32_t call = 0; call < then.calls.size(); ++call) {
    const plan::Call& there = first.calls[then.reordered_from[call]].call;
    EXPECT_EQ(there.name, then.calls[call].call.name) << call;
    EXPECT_EQ(there.tensor, then.calls[call].call.tensor) << call;
    ++seen[then.reordered_from[call]];
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1u), static_cast<std::ptrdiff_t>(seen.size()));
}

// Two tensors of 64 chunks, of which 80 fit: a part has to leave, or a whole one.
Workload two_large() {
  TraceBuilder program;
  const uint64_t a = program.allocate(64 * kChunk), b = program.allocate(64 * kChunk);
  for (int step = 0; step < 3; ++step) {
    program.mark("iteration");
    for (int i = 0; i < 4; ++i) {
      program.launch("a", {updates(a)}, 2 * kMs);
      program.launch("b", {updates(b)}, 2 * kMs);
    }
  }
  program.mark("iteration");
  Machine machine = with_link(50e9);
  machine.remap_ns_per_chunk = 0;
  return workload_on(machine, program);
}

plan::Plan planned(const Workload& workload, bool split, PlanSummary* summary = nullptr) {
  PlanOptions options;
  options.policy = "reprise";
  options.split_tensors = split;
  options.budget_bytes = workload.reserved_bytes + 80 * kChunk;
  return plan_with(workload, options, summary);
}

TEST(Parts, LessMovesThanWithWholeTensors) {
  const Workload workload = two_large();
  PlanSummary summary;
  const plan::Plan whole = planned(workload, false), parts = planned(workload, true, &summary);
  EXPECT_FALSE(plan::has_split_tensors(whole));
  EXPECT_TRUE(plan::has_split_tensors(parts));
  EXPECT_LT(parts.reload_bytes, whole.reload_bytes);
  EXPECT_LT(parts.predicted_ns, whole.predicted_ns);
  EXPECT_LE(summary.bounds.iteration_ns, parts.predicted_ns + 1);
  EXPECT_LE(summary.bounds.reload_bytes, parts.reload_bytes);
  EXPECT_EQ(parts.minimum_bytes, whole.minimum_bytes);
}

// In each of these an op would find less than the program gave it.
TEST(Parts, TheVerifierRefusesPartsThatAreNotTheWhole) {
  const plan::Plan good = planned(two_large(), true);
  ASSERT_TRUE(verify(good).ok()) << verify(good).message();
  const auto refused = [&](const std::function<void(plan::Plan&)>& spoil) {
    plan::Plan plan = good;
    spoil(plan);
    return verify(plan).message();
  };
  const auto op = std::find_if(good.calls.begin(), good.calls.end(),
                               [](const plan::Call& call) { return call.kind == plan::CallKind::op; });
  const auto index = static_cast<size_t>(op - good.calls.begin());
  EXPECT_TRUE(has(refused([&](plan::Plan& p) { p.calls[index].accesses.pop_back(); }), "may go anywhere"));
  EXPECT_TRUE(has(refused([&](plan::Plan& p) { p.tensors[1].part_offset += kChunk; }), "does not continue"));
  EXPECT_TRUE(has(refused([&](plan::Plan& p) { p.tensors[1].part_of = 1; }), "does not continue"));
}

TEST(Parts, TheVerifierRefusesPartsThatDoNotLiveTogether) {
  const Workload workload = make_workload(with_split_tensors(layers().graph, 2, 100), {}).value();
  PlanOptions options;
  options.policy = "lru";
  options.budget_bytes = workload.minimum_bytes + 4 * kChunk;
  plan::Plan plan = plan_with(workload, options);
  // As if the program allocated the second part behind the op that writes all of x.
  ASSERT_EQ(plan.calls[2].name, "make");
  plan.calls[2].accesses.pop_back();
  std::swap(plan.calls[1], plan.calls[2]);
  plan.tensors[5].allocate_call = 2;
  for (plan::Vertex& vertex : plan.vertices) {
    if (vertex.call == 2) vertex.call = 1;
  }
  const Status status = verify(plan);
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(has(status.message(), "another part of it, is not"));
}

}  // namespace
}  // namespace reprise::analyzer
