// What G10 and Gemini choose, where copies are kept, and how transfers share the link.
#include "analyzer/policies/g10_periods.h"
#include "analyzer/policies/policy.h"
#include "analyzer/schedule/tiers.h"
#include "analyzer/simulate/engines.h"
#include "tests/support/workloads.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

constexpr uint64_t kChunks = 100;  // of each tensor below: 0.21 GB

// Op 0 makes a, op 1 makes b; `idle` ops of 100 ms work on c; the last two read b and then a.
Workload pyramid(int idle, const Machine& machine) {
  TraceBuilder program;
  const uint64_t c = program.allocate(kChunks * kChunk);
  for (int step = 0; step < 3; ++step) {
    program.mark("iteration");
    const uint64_t a = program.allocate(kChunks * kChunk);
    program.launch("make a", {writes(a)}, 100 * kMs);
    const uint64_t b = program.allocate(kChunks * kChunk);
    program.launch("make b", {writes(b)}, 100 * kMs);
    for (int i = 0; i < idle; ++i) program.launch("work", {updates(c)}, 100 * kMs);
    program.launch("use b", {reads(b)}, 100 * kMs);
    program.launch("use a", {reads(a)}, 100 * kMs);
    program.free(b);
    program.free(a);
  }
  program.mark("iteration");
  return workload_on(machine, program);
}

Machine with_ssd(double ssd_bytes_per_s) {
  Machine machine = with_link(4e9);
  machine.ssd_read_bytes_per_s = machine.ssd_write_bytes_per_s = ssd_bytes_per_s;
  return machine;
}

constexpr uint32_t kA = 1;  // tensor c is persistent and comes first
constexpr uint32_t kB = 2;

TEST(G10, TheLongestPeriodUnderPressureLeavesForTheSsd) {
  const Machine machine = with_ssd(1e9);
  const G10Plan plan = plan_g10(pyramid(10, machine).graph, machine, 210);
  ASSERT_EQ(plan.periods.size(), 1u);  // one is enough
  const G10Period& period = plan.periods[0];
  EXPECT_EQ(period.tensor, kA);
  EXPECT_EQ(period.tier, Tier::ssd);
  EXPECT_EQ(period.begin, 1u);
  EXPECT_EQ(period.end, 13u);
  // 0.21 GB at 0.1 GB an op: ops 1 to 3 on the way out, and to be back for op 13 it starts with op 10.
  EXPECT_EQ(period.offload_end, 3u);
  EXPECT_EQ(period.reload_begin, 10u);
  EXPECT_EQ(period.earliest_reload_begin, 10u);  // there is no room earlier
}

TEST(G10, WhatIsTooShortForTheSsdGoesToTheHost) {
  const Machine machine = with_ssd(0.25e9);  // 0.84 s one way, 1.2 s of period
  const G10Plan plan = plan_g10(pyramid(10, machine).graph, machine, 110);
  ASSERT_EQ(plan.periods.size(), 2u);
  for (const G10Period& period : plan.periods) EXPECT_EQ(period.tier, Tier::host);
}

TEST(G10, WithLittleHostMemoryLessLeaves) {
  Machine machine = with_ssd(0.25e9);
  machine.host_bytes = 150 * kChunk;
  EXPECT_EQ(plan_g10(pyramid(10, machine).graph, machine, 110).periods.size(), 1u);
}

TEST(G10, NothingLeavesWhenEverythingFits) {
  const Machine machine = with_ssd(1e9);
  EXPECT_TRUE(plan_g10(pyramid(10, machine).graph, machine, 300).periods.empty());
}

const Stay* reload_of(const Schedule& schedule, uint32_t tensor) {
  const auto found = std::find_if(schedule.stays.begin(), schedule.stays.end(), [&](const Stay& stay) {
    return stay.tensor == tensor && stay.arrival == Arrival::reload;
  });
  return found == schedule.stays.end() ? nullptr : &*found;
}

TEST(G10, TheWayBackBeginsAheadOfNeed) {
  const Machine machine = with_ssd(1e9);
  const Workload workload = pyramid(10, machine);
  const Schedule schedule = g10_late_policy().schedule({workload.graph, machine, 300 - 1, true});
  const Stay* reload = reload_of(schedule, kA);
  ASSERT_NE(reload, nullptr);
  const uint32_t need = static_cast<uint32_t>(workload.graph.calls.size()) - 3;  // "use a", and two frees
  EXPECT_EQ(workload.graph.calls[need].call.name, "use a");
  EXPECT_LT(reload->begin, need);
}

TEST(Gemini, ModelDataLeavesFirst) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk), x = program.allocate(kChunk);
  for (int step = 0; step < 3; ++step) {
    program.mark("iteration");
    const uint64_t t = program.allocate(kChunk);
    program.launch("make t", {reads(w), writes(t)});
    program.launch("needs room", {reads(x)});
    program.launch("use w", {reads(w)});
    program.launch("use t", {reads(t)});
    program.free(t);
  }
  program.mark("iteration");
  const Workload workload = workload_on(Machine{}, program);
  const PolicyInput input{workload.graph, workload.machine, 2, true};
  const auto tensors_back = [&](const Policy& policy) { return reload_of(policy.schedule(input), 2) != nullptr; };
  EXPECT_TRUE(tensors_back(disco_policy()));    // t is needed last
  EXPECT_FALSE(tensors_back(gemini_policy()));  // t is an activation
}

TEST(Tiers, TheHostIsFilledUpToItsLimit) {
  Machine machine = with_ssd(1e9);
  const Workload workload = pyramid(10, machine);
  Schedule schedule = lru_policy().schedule({workload.graph, machine, 100, true});
  const TierUse all = assign_tiers(workload.graph, machine, schedule);
  EXPECT_EQ(all.ssd_written_bytes, 0u);
  machine.host_bytes = all.host_peak_bytes - 1;
  const TierUse less = assign_tiers(workload.graph, machine, schedule);
  EXPECT_TRUE(less.fits);
  EXPECT_LE(less.host_peak_bytes, machine.host_bytes);
  EXPECT_GT(less.ssd_written_bytes, 0u);
  EXPECT_EQ(less.ssd_written_bytes, less.ssd_read_bytes);
  EXPECT_EQ(reload_of(schedule, kB)->from == Tier::ssd || reload_of(schedule, kA)->from == Tier::ssd, true);
  machine.ssd_read_bytes_per_s = 0;
  EXPECT_FALSE(assign_tiers(workload.graph, machine, schedule).fits);
}

TEST(Tiers, TooLittleHostMemoryIsSaid) {
  Machine machine;
  machine.host_bytes = kChunk;
  Workload workload = pyramid(3, machine);
  PlanOptions options;
  options.budget_bytes = workload.minimum_bytes;
  const Status status = make_plan(workload, options).status();
  EXPECT_EQ(status.code(), StatusCode::infeasible);
  EXPECT_TRUE(has(status.message(), "host memory"));
}

uint64_t end_of(Engines& engines, uint32_t node) {
  for (Engines::Done done = engines.next(); done.engine != Engines::kNone; done = engines.next()) {
    engines.end(done.engine, done.time);
    if (done.node == node) return done.time;
  }
  return 0;
}

TEST(Engines, TheSsdTakesItsPartOfTheLink) {
  Machine machine = with_ssd(1e9);  // a quarter of the link
  Engines engines(machine, 1);
  engines.begin(engines.to_host(0), 1, 100, 0, 0);
  engines.begin(engines.to_ssd(), 2, 40, 0, 0);
  engines.begin(engines.to_device(0), 3, 100, 0, 0);
  engines.begin(engines.compute(0), 4, 100, 0, 0);
  EXPECT_EQ(engines.next().node, 2u);
  EXPECT_EQ(engines.next().time, 40u);  // the SSD is as fast as ever
  Engines same = engines;
  EXPECT_EQ(end_of(engines, 1), 110u);  // three quarters of the speed for 40, then full speed
  EXPECT_EQ(end_of(same, 3), 100u);     // the other direction does not notice
}

TEST(Engines, DirectionsThatDisturbEachOther) {
  Machine machine = with_link(10e9);
  machine.d2h_together_bytes_per_s = 5e9;
  Engines engines(machine, 1);
  engines.begin(engines.to_host(0), 1, 100, 0, 0);
  engines.begin(engines.to_device(0), 2, 60, 20, 0);
  EXPECT_EQ(end_of(engines, 2), 80u);
  EXPECT_EQ(end_of(engines, 1), 130u);  // 20 alone, 60 at half the speed, 50 alone
}

// Devices 0 and 1 are on one link, 2 and 3 on another; the SSD's transfer for device 3 takes from the second.
TEST(Engines, NeighboursShareALinkAndOthersDoNot) {
  Machine machine = with_ssd(1e9);
  machine.devices_per_link = 2;
  machine.peer_bytes_per_s = 1e9;
  Engines engines(machine, 4);
  EXPECT_EQ(engines.to_device(1), engines.to_device(0));
  EXPECT_EQ(engines.to_host(3), engines.to_host(2));
  EXPECT_NE(engines.to_host(2), engines.to_host(0));
  EXPECT_NE(engines.compute(1), engines.compute(0));
  EXPECT_NE(engines.to_peer(1), engines.to_peer(0));
  engines.begin(engines.to_host(0), 1, 100, 0, 0);
  engines.begin(engines.to_host(2), 2, 100, 0, 0);
  engines.begin(engines.to_ssd(), 3, 40, 0, engines.link_of(3));
  Engines same = engines;
  EXPECT_EQ(end_of(engines, 1), 100u);
  EXPECT_EQ(end_of(same, 2), 110u);
  machine.peer_bytes_per_s = 0;
  const Engines without(machine, 4);
  EXPECT_EQ(without.to_peer(3), without.to_host(2));
}

}  // namespace
}  // namespace reprise::analyzer
