// Predictions, bounds and the machine.
#include "analyzer/simulate/simulate.h"

#include "tests/support/workloads.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

plan::Plan plan_of(const trace::Trace& trace, uint64_t chunks, PlanSummary* summary = nullptr) {
  PlanOptions options;
  options.budget_bytes = chunks * kChunk;
  options.machine = slow_link();
  return good(Planning(trace, options).plan(summary));
}

// Six weights of one chunk, each read once by an op of `duration`; two chunks: every weight comes in every iteration.
trace::Trace read_in_turn(uint64_t duration) {
  TraceBuilder program;
  std::vector<uint64_t> weights;
  for (int i = 0; i < 6; ++i) weights.push_back(program.allocate(kChunk));
  for (int step = 0; step < 3; ++step) {
    for (const uint64_t w : weights) program.launch("layer", {reads(w)}, duration);
  }
  return program.trace();
}

TEST(Simulate, TransfersHideBehindLongOps) {
  const plan::Plan plan = plan_of(read_in_turn(10'000'000), 2);
  EXPECT_GT(plan.reload_bytes, 0u);
  EXPECT_EQ(plan.offload_bytes, 0u);
  EXPECT_EQ(plan.predicted_ns, plan.compute_ns);
}

// The program's own copies have an engine of their own: no plan is faster than computing alone for that.
TEST(Simulate, CopiesOfTheProgramBesideItsKernelsAreNotCountedTwice) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk), next = program.allocate(kChunk);
  for (int step = 0; step < 4; ++step) {
    program.launch("layer", {reads(w)}, 10'000'000);
    program.op(trace::OpKind::copy_host_to_device, "", {writes(next)}, 1'000'000, 0, kChunk);
    program.launch("layer", {updates(w)}, 10'000'000);
    program.launch("take", {reads(next)}, 10'000'000);
  }
  const plan::Plan plan = plan_of(program.trace(), 4);
  EXPECT_LT(plan.predicted_ns, 31'000'000u) << "the copy runs beside the kernels";
  EXPECT_LE(plan.compute_ns, plan.predicted_ns);
}

TEST(Simulate, TheLinkBoundsShortOps) {
  PlanSummary summary;
  const plan::Plan plan = plan_of(read_in_turn(1000), 2, &summary);
  EXPECT_GE(plan.predicted_ns, plan.reload_bytes / kChunk * 1'000'000);
  EXPECT_GE(plan.predicted_ns, summary.bounds.iteration_ns);
  EXPECT_GT(summary.bounds.iteration_ns, plan.compute_ns);
}

// Six chunks come and go in each iteration, and the host maps one after the other.
TEST(Simulate, StrictPlansReckonWithMappingWhatIsTransferred) {
  PlanOptions options;
  options.budget_bytes = 2 * kChunk;
  options.machine = slow_link();
  options.machine->remap_ns_per_chunk = 2 * kMs;
  const auto predicted = [&](plan::Safety safety) {
    options.safety = safety;
    const Result<plan::Plan> plan = Planning(read_in_turn(1000), options).plan();
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    return plan.ok() ? plan.value().predicted_ns : 0;
  };
  EXPECT_GE(predicted(plan::Safety::strict), 8 * kMs) << "four of six are transferred at least";
  EXPECT_EQ(predicted(plan::Safety::audited), predicted(plan::Safety::strict)) << "nothing is audited";
  EXPECT_LT(predicted(plan::Safety::trusted), 7 * kMs);
}

TEST(Simulate, TimesOfVerticesFollowTheEdges) {
  const plan::Plan plan = plan_of(train_chain(5, kChunk, 3), 4);
  for (const plan::Vertex& vertex : plan.vertices) {
    EXPECT_LE(vertex.predicted_start_ns, vertex.predicted_end_ns);
    for (const plan::Predecessor& p : vertex.predecessors) {
      if (p.distance != 0) continue;
      EXPECT_LE(plan.vertices[p.vertex].predicted_end_ns, vertex.predicted_start_ns);
    }
  }
}

// A program that waits for the device after every op cannot be run ahead.
TEST(Simulate, WaitsOfTheProgramAreKept) {
  const auto program_with = [](bool waits) {
    TraceBuilder program;
    const uint64_t out = program.allocate(kChunk), x = program.allocate(kChunk);
    for (int step = 0; step < 3; ++step) {
      for (int i = 0; i < 3; ++i) {
        program.op(trace::OpKind::copy_device_to_host, "", {reads(out)}, 1'000'000, 0, kChunk);
        if (waits) program.synchronize();
        program.launch(std::string(1, static_cast<char>(97 + i)), {updates(x)}, 1'000'000);
        if (waits) program.synchronize();
      }
    }
    return program.trace();
  };
  EXPECT_EQ(plan_of(program_with(false), 2).predicted_ns, 3'000'000u);
  EXPECT_EQ(plan_of(program_with(true), 2).predicted_ns, 6'000'000u);
}

// G10's section 7.7: 30 writes a day of 3.2 TB, half of 3 GB/s being writes, last for 3.7 years.
TEST(Machine, AnSsdLastsAsLongAsItsMakerGrants) {
  Machine machine;
  machine.ssd_bytes = 3'200'000'000'000;
  machine.ssd_writes_per_day = 30;
  const std::optional<double> years = ssd_years(machine, 1'500'000'000, 1'000'000'000);
  ASSERT_TRUE(years);
  EXPECT_NEAR(*years, 3.7, 0.01);
  EXPECT_FALSE(ssd_years(machine, 0, 1'000'000'000));
  machine.ssd_bytes = 0;
  EXPECT_FALSE(ssd_years(machine, 1, 1));
}

TEST(Bounds, SmallestBudgetNamesTheLargestWorkingSet) {
  const auto workload = good(Planning(train_chain(5, 2 * kChunk, 3), {}).workload());
  EXPECT_EQ(workload.largest.chunks, 6u);
  EXPECT_EQ(workload.minimum_bytes, 6 * kChunk);
}

TEST(Bounds, WhatDoesNotFitHasToMove) {
  const auto workload = good(Planning(read_in_turn(1000), {}).workload());
  // Six chunks read in turn, two fit. One slot can keep a chunk for four reads, so one to two reads of six find theirs.
  const Bounds bounds = bounds_of(workload.graph, 2, slow_link());
  EXPECT_EQ(bounds.reload_bytes, 4 * kChunk);
  EXPECT_EQ(bounds.offload_bytes, 0u);
  EXPECT_EQ(bounds_of(workload.graph, 6, slow_link()).reload_bytes, 0u);
}

// 200 ops that each leave a chunk behind, then 200 that take them up again, last one first. A copy takes as long as
// two.
TEST(Bounds, AStretchOfOpsMovesWhatItMakes) {
  TraceBuilder program;
  const uint64_t state = program.allocate(kChunk);
  program.launch("prologue", {});
  for (int step = 0; step < 3; ++step) {
    std::vector<uint64_t> left;
    for (int i = 0; i < 200; ++i) {
      left.push_back(program.allocate(kChunk));
      program.launch("forward", {updates(state), writes(left.back())}, 1'000'000);
    }
    for (; !left.empty(); left.pop_back()) {
      program.launch("backward", {updates(state), reads(left.back())}, 1'000'000);
      program.free(left.back());
    }
  }
  PlanOptions options;
  options.budget_bytes = 20 * kChunk;
  const Workload workload = workload_on(with_link(static_cast<double>(kChunk) / 2e-3), program);
  const Bounds bounds = bounds_of(workload.graph, 20, workload.machine);
  // Ops from 232 on read the state and 168 chunks that ops up to 168 have made; 149 do not fit. 169 ops run before
  // that.
  EXPECT_EQ(bounds.window_ns, (2 * 149 + 169) * 1'000'000u);
  EXPECT_EQ(bounds.iteration_ns, bounds.window_ns);
  EXPECT_STREQ(bounds.binding, "bytes of a stretch of ops");
  PlanSummary summary;
  options.policy = "link_aware";
  const plan::Plan plan = plan_with(workload, options, &summary);
  EXPECT_GE(plan.predicted_ns, bounds.window_ns);
  EXPECT_TRUE(has(explain(plan, summary), "467.000 ms (bytes of a stretch of ops)"));
}

// Two ops that cannot be on the device together, one behind the other: their copies hide behind nothing.
TEST(Bounds, CopiesBetweenOpsThatDoNotFitTogether) {
  TraceBuilder program;
  const uint64_t link = program.allocate(1000), a = program.allocate(3 * kChunk), b = program.allocate(3 * kChunk);
  program.launch("prologue", {});
  for (int step = 0; step < 40; ++step) {
    program.launch("a", {updates(link), updates(a)}, 1'000'000);
    program.launch("b", {updates(link), updates(b)}, 1'000'000);
    program.synchronize();
  }
  const Workload workload = workload_on(with_link(static_cast<double>(kChunk) / 1e-3), program);
  const Bounds bounds = bounds_of(workload.graph, 4, workload.machine);
  // One chunk of the other one may be there; two come in before each op. Byte counts alone would allow 4 ms.
  EXPECT_EQ(bounds.chain_ns, 2 * (1 + 2) * 1'000'000u);
  EXPECT_EQ(bounds.iteration_ns, bounds.chain_ns);
  EXPECT_STREQ(bounds.binding, "copies between ops that do not fit together");
  PlanOptions options;
  options.budget_bytes = 4 * kChunk + workload.reserved_bytes;
  EXPECT_GE(plan_with(workload, options).predicted_ns, bounds.chain_ns);
}

// Between two ops that do not fit together the program itself makes what the second one reads: that comes over no link
// of ours.
TEST(Bounds, WhatTheProgramsCopiesMakeNeedNotComeIn) {
  for (const trace::OpKind copy : {trace::OpKind::copy_host_to_device, trace::OpKind::copy_device_to_host}) {
    const bool in = copy == trace::OpKind::copy_host_to_device;
    TraceBuilder program;
    const uint64_t link = program.allocate(1000), a = program.allocate(3 * kChunk);
    program.launch("prologue", {});
    for (int step = 0; step < 40; ++step) {
      program.launch("a", {updates(link), reads(a)}, 1'000'000);
      const uint64_t b = program.allocate(3 * kChunk);
      program.op(copy, "", {in ? writes(b) : reads(b)}, 10'000, 0, kChunk);  // reads: whatever was there
      program.launch("b", {updates(link), reads(b)}, 1'000'000);
      program.free(b);
      program.synchronize();
    }
    const Workload workload = workload_on(with_link(static_cast<double>(kChunk) / 1e-3), program);
    const Bounds bounds = bounds_of(workload.graph, 4, workload.machine);
    EXPECT_EQ(bounds.chain_ns, (2 + 2) * 1'000'000u);  // two chunks before `a`, none before `b`
    PlanOptions options;
    options.budget_bytes = 4 * kChunk + workload.reserved_bytes;
    const plan::Plan plan = plan_with(workload, options);
    EXPECT_GE(plan.predicted_ns, bounds.iteration_ns);
    EXPECT_LT(plan.predicted_ns, (2 + 2 + 2) * 1'000'000u);  // as if `b` had to come in, too
  }
}

// Small tensors that live on lie where others between them were, so they take more chunks than their bytes would.
TEST(Bounds, SmallTensorsAreReservedWhereTheyLie) {
  TraceBuilder program;
  std::vector<uint64_t> weights;
  std::vector<uint64_t> others;
  for (int i = 0; i < 6; ++i) {
    weights.push_back(program.allocate(100));
    others.push_back(program.allocate(kChunk / 2 - 512));
  }
  for (const uint64_t other : others) program.free(other);
  for (int step = 0; step < 3; ++step) program.launch("x", {updates(weights[0])});
  PlanOptions options;
  options.wanted.least_calls = 1;
  options.held_bytes = 12345;
  const auto workload = good(Planning(program.trace(), options).workload());
  EXPECT_EQ(workload.reserved_bytes, 3 * kChunk + 12345) << "two of each fill a chunk";
}

TEST(Machine, ReadsTheTraceAndIgnoresNonsense) {
  TraceBuilder program;
  program.info("link.h2d_bytes_per_s", "1e9");
  program.info("link.d2h_bytes_per_s", "-3");
  program.info("link.latency_ns", "fast");
  program.info("vmm.remap_ns_per_chunk", "39000");
  const Machine machine = machine_of(program.trace());
  EXPECT_EQ(machine.h2d_bytes_per_s, 1e9);
  EXPECT_EQ(machine.d2h_bytes_per_s, Machine{}.d2h_bytes_per_s);
  EXPECT_EQ(machine.latency_ns, Machine{}.latency_ns);
  EXPECT_EQ(machine.remap_ns_per_chunk, 39'000u);
  EXPECT_EQ(copy_ns(1000, 1e9, 7), 1007u);
}

}  // namespace
}  // namespace reprise::analyzer
