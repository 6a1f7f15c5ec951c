// Which sets of ops are offered to be recomputed.
#include "analyzer/rewrite/choose_recompute.h"

#include "analyzer/bounds/linear_program.h"
#include "analyzer/planner/workload.h"
#include "analyzer/taskgraph/recompute_candidates.h"
#include "tests/support/trace_builder.h"
#include "tests/support/workloads.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kPart = 100 * kChunk;

// x and y are made by one kernel. x is away longer, but w, which it is made of, is large and has left by the time that
// it is used; v, of which y is made, is there.
//
//   make x <- w | work on v | make y <- v | big, with v: all the memory | use x, y
TaskGraph two_of_a_kind(const Machine& machine) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kPart + kPart / 2), v = program.allocate(kPart);
  for (int step = 0; step < 3; ++step) {
    program.mark("iteration");
    const uint64_t x = program.allocate(kPart);
    program.launch("make", {reads(w), writes(x)}, kMs);
    program.launch("work", {reads(v)}, 200 * kMs);
    const uint64_t y = program.allocate(kPart);
    program.launch("make", {reads(v), writes(y)}, kMs);
    const uint64_t big = program.allocate(2 * kPart);
    program.launch("big", {reads(v), writes(big)}, kMs);
    program.free(big);
    program.launch("use", {reads(x), reads(y)}, kMs);
    program.free(x);
    program.free(y);
  }
  program.mark("iteration");
  PlanOptions options;
  options.machine = machine;
  Result<Workload> made = Planning(program.trace(), options).workload();
  EXPECT_TRUE(made.ok()) << made.status().message();
  TaskGraph graph = made.value().graph;
  for (GraphCall& entry : graph.calls) entry.call.pure = entry.call.name == "make";
  return graph;
}

// Of a kind, those that are away longest are taken first; the fluid bound sees that y alone is better.
TEST(ChooseRecompute, WhatTheFluidBoundRecomputesIsOffered) {
  if (!LinearProgram::available()) GTEST_SKIP() << "libClp.so.1 is not installed";
  const Machine machine = slow_link();
  const TaskGraph graph = two_of_a_kind(machine);
  const std::vector<RecomputeCandidate> candidates = recompute_candidates(graph);
  ASSERT_EQ(candidates.size(), 2u);
  ASSERT_GT(candidates[0].idle_ns, candidates[1].idle_ns);
  const auto sets = choose_recompute(graph, machine, 3 * kPart / kChunk);
  ASSERT_FALSE(sets.empty());
  EXPECT_EQ(sets.front(), std::vector<uint32_t>{candidates[1].call});
}

}  // namespace
}  // namespace reprise::analyzer
