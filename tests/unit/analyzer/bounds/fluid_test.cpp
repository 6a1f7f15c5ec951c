// The linear program, what it is made of, and the fluid bound.
#include "analyzer/bounds/fluid.h"

#include "analyzer/bounds/linear_program.h"
#include "analyzer/planner/planner.h"
#include "analyzer/policies/policy.h"
#include "tests/support/test.h"
#include "tests/support/trace_builder.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kChunks = 100;

class Fluids : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!LinearProgram::available()) GTEST_SKIP() << "libClp.so.1 is not installed";
  }
};

TEST_F(Fluids, AProgramWithItsSolution) {
  LinearProgram program;  // least x + y with x + 2y >= 4 and 3x + y >= 6
  const uint32_t x = program.add_column(1), y = program.add_column(1);
  const uint32_t first = program.add_row(4, LinearProgram::kInfinity);
  program.set(first, x, 1);
  program.set(first, y, 2);
  const uint32_t second = program.add_row(6, LinearProgram::kInfinity);
  program.set(second, x, 3);
  program.set(second, y, 1);
  const auto solution = good(program.minimise(10));
  EXPECT_NEAR(solution.objective, 2.8, 1e-6);
  EXPECT_NEAR(solution.x[x], 1.6, 1e-6);
  EXPECT_NEAR(solution.x[y], 1.2, 1e-6);
}

TEST_F(Fluids, AProgramWithoutSolutionSaysSo) {
  LinearProgram program;
  const uint32_t x = program.add_column(1, 0, 1);
  program.set(program.add_row(2, LinearProgram::kInfinity), x, 1);
  EXPECT_EQ(program.minimise(10).status().code(), StatusCode::infeasible);
}

// Op 0 updates w; op 1 fills x, as large as w, which op 2 reads.
Workload two_that_do_not_fit(const Machine& machine) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunks * kChunk);
  for (int step = 0; step < 3; ++step) {
    program.mark("iteration");
    program.launch("update w", {updates(w)}, 100 * kMs);
    const uint64_t x = program.allocate(kChunks * kChunk);
    program.launch("make x", {writes(x)}, 100 * kMs);
    program.launch("use x", {reads(x)}, 100 * kMs);
    program.free(x);
  }
  program.mark("iteration");
  PlanOptions options;
  options.machine = machine;
  return good(Planning(program.trace(), options).workload());
}

Machine with_link(double out, double in) {
  Machine machine;
  machine.d2h_bytes_per_s = out;
  machine.h2d_bytes_per_s = in;
  machine.latency_ns = 0;
  machine.remap_ns_per_chunk = 0;
  return machine;
}

TEST_F(Fluids, VersionsAndTheirPeriods) {
  const Workload workload = two_that_do_not_fit(with_link(1e9, 1e9));
  const Vitality vitality = vitality_of(workload.graph);
  ASSERT_EQ(vitality.versions.size(), 1u);  // x has no period
  const Version& w = vitality.versions[0];
  EXPECT_EQ(w.tensor, 0u);
  EXPECT_EQ(w.written, 0u);
  EXPECT_FALSE(w.on_host);
  ASSERT_EQ(w.periods.size(), 1u);
  EXPECT_EQ(w.periods[0].from, 0u);
  EXPECT_EQ(w.periods[0].to, 3u);  // op 0 of the next iteration
  EXPECT_EQ(vitality.alive, (std::vector<uint64_t>{kChunks * kChunk, 2 * kChunks * kChunk, 2 * kChunks * kChunk}));
}

// All of w must have left before op 1 starts, and nothing of it can be back before op 2 ends.
TEST_F(Fluids, WhatMustLeaveAndComeBackCostsBothWays) {
  const Machine machine = with_link(1e9, 2e9);
  const Workload workload = two_that_do_not_fit(machine);
  const auto fluid = good(solve_fluid(workload.graph, kChunks * kChunk, machine, {}));
  const double bytes = static_cast<double>(kChunks * kChunk);
  EXPECT_NEAR(static_cast<double>(fluid.iteration_ns), 300e6 + bytes / 1e9 * 1e9 + bytes / 2e9 * 1e9, 1e4);
}

TEST_F(Fluids, HalfTheExcessCostsHalf) {
  const Machine machine = with_link(1e9, 1e9);
  const Workload workload = two_that_do_not_fit(machine);
  const auto fluid = good(solve_fluid(workload.graph, 3 * kChunks * kChunk / 2, machine, {}));
  EXPECT_NEAR(static_cast<double>(fluid.iteration_ns), 300e6 + static_cast<double>(kChunks * kChunk), 1e4);
}

TEST_F(Fluids, MemoryForAllCostsNothing) {
  const Machine machine = with_link(1e9, 1e9);
  const Workload workload = two_that_do_not_fit(machine);
  const auto fluid = good(solve_fluid(workload.graph, 2 * kChunks * kChunk, machine, {}));
  EXPECT_EQ(fluid.iteration_ns, workload.graph.compute_ns);
}

CallIndex call_named(const TaskGraph& graph, const std::string& name) {
  for (CallIndex call{0}; call < graph.calls.size(); ++call) {
    if (graph.calls[call].call.name == name) return call;
  }
  return CallIndex{kNone};
}

// Over a link that carries nothing, h can be dropped: it is made of t, which is freed, so both are made again, and what
// is compared is read twice more.
TEST_F(Fluids, AChainIsRecomputedWhole) {
  Machine machine = with_link(1, 1);
  machine.digest_bytes_per_s = 100e9;
  machine.launch_ns = 0;
  TraceBuilder program;
  for (int step = 0; step < 3; ++step) {
    program.mark("iteration");
    const uint64_t t = program.allocate(kChunks * kChunk);
    program.launch("make t", {writes(t)}, 10 * kMs);
    const uint64_t h = program.allocate(kChunks * kChunk);
    program.launch("make h", {reads(t), writes(h)}, 10 * kMs);
    program.free(t);
    const uint64_t x = program.allocate(2 * kChunks * kChunk);
    program.launch("make x", {writes(x)}, 100 * kMs);
    program.free(x);
    program.launch("use h", {reads(h)}, 10 * kMs);
    program.free(h);
  }
  program.mark("iteration");
  PlanOptions options;
  options.machine = machine;
  const auto made = good(Planning(program.trace(), options).workload());
  const TaskGraph& graph = made.graph;
  RecomputeCandidate candidate;
  candidate.call = call_named(graph, "make h");
  candidate.before = call_named(graph, "use h");
  const uint64_t capacity = 2 * kChunks * kChunk;
  const auto iteration_ms = [&](const FluidOptions& how) {
    const auto fluid = solve_fluid(graph, capacity, machine, how, {candidate});
    EXPECT_TRUE(fluid.ok()) << fluid.status().message();
    return fluid.ok() ? static_cast<double>(fluid.value().iteration_ns) / 1e6 : 0;
  };
  EXPECT_NEAR(iteration_ms({}), 140, 0.01) << "h alone";
  candidate.others = {call_named(graph, "make t")};
  EXPECT_NEAR(iteration_ms({}), 150, 0.01);
  FluidOptions guarded;
  guarded.guarded = true;
  const double digest_ms = static_cast<double>(kChunks * kChunk) / 100e9 * 1e3;
  EXPECT_NEAR(iteration_ms(guarded), 150 + 2 * digest_ms + 2 * digest_ms, 0.01);
}

// h is made of w, which is as large, and x takes all there is. When h is made again w has to be there before h is used:
// while that takes its time it can no longer come in.
TEST_F(Fluids, WhatIsRecomputedNeedsItsInputs) {
  Machine machine = with_link(1e9, 1e9);
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunks * kChunk);
  for (int step = 0; step < 3; ++step) {
    program.mark("iteration");
    const uint64_t h = program.allocate(kChunks * kChunk);
    program.launch("make h", {reads(w), writes(h)}, 1 * kMs);
    const uint64_t x = program.allocate(2 * kChunks * kChunk);
    program.launch("make x", {writes(x)}, 1 * kMs);
    program.free(x);
    program.launch("use h", {reads(h)}, 100 * kMs);
    program.free(h);
  }
  program.mark("iteration");
  PlanOptions options;
  options.machine = machine;
  const auto made = good(Planning(program.trace(), options).workload());
  RecomputeCandidate candidate;
  candidate.call = call_named(made.graph, "make h");
  candidate.before = call_named(made.graph, "use h");
  const auto fluid = good(solve_fluid(made.graph, 2 * kChunks * kChunk, machine, {}, {candidate}));
  // 1 ms for x, which nothing can overlap, 1 for h each time, of which the second one is the link's, too.
  const double copy_ms = static_cast<double>(kChunks * kChunk) / 1e9 * 1e3;
  EXPECT_NEAR(static_cast<double>(fluid.iteration_ns) / 1e6, 102 + copy_ms, 0.1);
}

// As above, but h is made of t, which is freed and made of w: with h, t is made again.
TEST_F(Fluids, WhatRunsAgainWithItNeedsItsInputs) {
  Machine machine = with_link(1e9, 1e9);
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunks * kChunk);
  for (int step = 0; step < 3; ++step) {
    program.mark("iteration");
    const uint64_t t = program.allocate(kChunk);
    program.launch("make t", {reads(w), writes(t)}, 1 * kMs);
    const uint64_t h = program.allocate(kChunks * kChunk);
    program.launch("make h", {reads(t), writes(h)}, 1 * kMs);
    program.free(t);
    const uint64_t x = program.allocate(2 * kChunks * kChunk);
    program.launch("make x", {writes(x)}, 1 * kMs);
    program.free(x);
    program.launch("use h", {reads(h)}, 100 * kMs);
    program.free(h);
  }
  program.mark("iteration");
  PlanOptions options;
  options.machine = machine;
  const Result<Workload> made = Planning(program.trace(), options).workload();
  ASSERT_TRUE(made.ok()) << made.status().message();
  RecomputeCandidate candidate;
  candidate.call = call_named(made.value().graph, "make h");
  candidate.before = call_named(made.value().graph, "use h");
  candidate.others = {call_named(made.value().graph, "make t")};
  const auto fluid = good(solve_fluid(made.value().graph, (2 * kChunks + 1) * kChunk, machine, {}, {candidate}));
  // x leaves room for one chunk: 99 of w leave while t or h is made the first time. They come back before h is used,
  // while both are made again, which takes 2 ms.
  const double copy_ms = static_cast<double>((kChunks - 1) * kChunk) / 1e9 * 1e3;
  EXPECT_NEAR(static_cast<double>(fluid.iteration_ns) / 1e6, 103 + copy_ms, 0.5);
}

TEST_F(Fluids, NoPolicyIsFaster) {
  const Machine machine = with_link(1e9, 1e9);
  const Workload workload = two_that_do_not_fit(machine);
  const auto fluid = good(solve_fluid(workload.graph, kChunks * kChunk, machine, {}));
  for (const Policy* policy : all_policies()) {
    PlanOptions options;
    options.budget_bytes = workload.reserved_bytes + kChunks * kChunk;
    options.policy = policy->name();
    EXPECT_GE(good(make_plan(workload, options)).predicted_ns + 10'000, fluid.iteration_ns) << policy->name();
  }
}

}  // namespace
}  // namespace reprise::analyzer
