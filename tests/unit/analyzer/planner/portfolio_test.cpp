// What the portfolio tries when a policy's own schedule finds no place.
#include "analyzer/planner/portfolio.h"

#include "analyzer/placement/layout.h"
#include "analyzer/policies/policy.h"
#include "tests/support/workloads.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

enum : uint32_t { kA, kB, kC };

Stay visit(uint32_t tensor, uint32_t begin, uint32_t end) {
  Stay stay;
  stay.tensor = tensor;
  stay.begin = begin;
  stay.end = end;
  stay.wraps = end <= begin;
  stay.clean_at_start = stay.wraps;
  return stay;
}

// For six ops that read a, c, b, a, c, b, of one chunk each. With two chunks, three stays of four ops each: never more
// than two at a time, but each one meets both others on the circle of the iteration, so that they need three chunks.
// With one chunk a stays for ever and the others come for each op; without stays over the start every tensor comes for
// each op.
class Circular : public Policy {
 public:
  std::string_view name() const override { return "circular"; }
  Schedule schedule(const PolicyInput& input) const override {
    asked.emplace_back(input.capacity, input.carry_visitors);
    Schedule result;
    if (!input.carry_visitors) {
      result.stays = {visit(kA, 0, 1), visit(kC, 1, 2), visit(kB, 2, 3),
                      visit(kA, 3, 4), visit(kC, 4, 5), visit(kB, 5, 6)};
    } else if (input.capacity >= 2) {
      result.stays = {visit(kA, 0, 4), visit(kB, 2, 6), visit(kC, 4, 2)};
    } else {
      Stay always = visit(kA, 0, 6);
      always.arrival = Arrival::always;
      always.departure = Departure::never;
      always.clean_at_start = true;
      result.stays = {always, visit(kC, 1, 2), visit(kB, 2, 3), visit(kC, 4, 5), visit(kB, 5, 6)};
    }
    for (const Stay& stay : result.stays) result.reload_bytes += stay.arrival == Arrival::reload ? kChunk : 0;
    return result;
  }
  mutable std::vector<std::pair<uint64_t, bool>> asked;  // capacity, stays over the start
};

Workload in_a_circle() {
  TraceBuilder program;
  uint64_t weights[3];
  for (uint64_t& w : weights) w = program.allocate(kChunk);
  for (int step = 0; step < 3; ++step) {
    program.mark("iteration");
    for (const uint32_t tensor : {kA, kC, kB, kA, kC, kB}) program.launch("op", {reads(weights[tensor])}, kMs / 10);
  }
  program.mark("iteration");
  Machine machine = slow_link();
  machine.remap_ns_per_chunk = 0;
  return workload_on(machine, program);
}

TEST(Portfolio, SparesAChunkWhereStaysOverTheStartFindNone) {
  const Workload workload = in_a_circle();
  const Circular policy;
  for (const PlacementMode mode : {PlacementMode::homes_then_stays, PlacementMode::by_begin}) {
    Schedule full = policy.schedule({workload.graph, workload.machine, 2, true});
    EXPECT_FALSE(place(workload.graph, full, 2, mode));
    EXPECT_TRUE(place(workload.graph, full, 3, mode));
  }
  policy.asked.clear();
  Portfolio portfolio(workload, 2);
  portfolio.run({&policy});
  ASSERT_NE(portfolio.best(), nullptr);
  EXPECT_EQ(portfolio.best()->schedule.reload_bytes, 4 * kChunk);  // not six
  EXPECT_LT(portfolio.best()->prediction.iteration_ns, 5 * kMs);
  const auto was_asked = [&](uint64_t capacity, bool carry) {
    return std::find(policy.asked.begin(), policy.asked.end(), std::pair(capacity, carry)) != policy.asked.end();
  };
  EXPECT_TRUE(was_asked(2, true) && was_asked(2, false) && was_asked(1, true));
  EXPECT_FALSE(was_asked(0, true));  // an op needs one
}

// What mapping takes is in the predicted time, and counts again, as it takes more beside other work.
TEST(Candidates, OneThatMapsIsBetterWhereItGainsMoreThanMappingTakes) {
  PlanCandidate homes;
  homes.prediction.iteration_ns = 1000;
  PlanCandidate maps = homes;
  maps.remaps_ns = 30;
  EXPECT_TRUE(is_better(homes, maps));
  maps.prediction.iteration_ns = 980;
  EXPECT_TRUE(is_better(homes, maps));
  maps.prediction.iteration_ns = 960;
  EXPECT_TRUE(is_better(maps, homes));
}

// A loop whose forward pass makes tensors of one to seven chunks that its backward pass reads in reverse.
Workload training_of_sizes(uint32_t seed, uint64_t remap_ns) {
  std::mt19937 random(seed);
  TraceBuilder program;
  std::vector<uint64_t> sizes(16);
  for (uint64_t& size : sizes) size = (1 + random() % 7) * kChunk;
  const uint64_t weights = program.allocate(3 * kChunk);
  for (int step = 0; step < 3; ++step) {
    program.mark("iteration");
    std::vector<uint64_t> made;
    for (const uint64_t size : sizes) {
      made.push_back(program.allocate(size));
      const uint64_t before = made.size() > 1 ? made[made.size() - 2] : weights;
      program.launch("forward", {reads(before), reads(weights), writes(made.back())}, kMs / 2);
    }
    for (; !made.empty(); made.pop_back()) {
      program.launch("backward", {reads(made.back()), writes(weights)}, kMs / 2);
      program.free(made.back());
    }
  }
  program.mark("iteration");
  Machine machine = slow_link();
  machine.remap_ns_per_chunk = remap_ns;
  return workload_on(machine, program);
}

// The search finds schedules that use every chunk at every moment, for which hardly ever is there one home for each
// tensor.
TEST(Portfolio, WhatFindsNoHomeLiesElsewhereWhereMappingTakesLessThanItSpares) {
  uint64_t with_homes = 0, cheap = 0;
  uint32_t mapped = 0;
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    const auto best = [&](uint64_t remap_ns) {
      const Workload workload = training_of_sizes(seed, remap_ns);
      Portfolio portfolio(workload, workload.graph.peak_chunks / 2);
      portfolio.run(reprise_members());
      portfolio.improve_homes();
      return portfolio.take_best();
    };
    const PlanCandidate homes = best(1000 * kMs);
    EXPECT_EQ(homes.layout.remap_count, 0u) << seed;
    const PlanCandidate anywhere = best(kMs / 1000);
    EXPECT_LE(anywhere.prediction.iteration_ns, homes.prediction.iteration_ns) << seed;
    with_homes += homes.prediction.iteration_ns;
    cheap += anywhere.prediction.iteration_ns;
    mapped += anywhere.layout.remap_count > 0 ? 1 : 0;
  }
  EXPECT_GT(mapped, 0u);
  EXPECT_LT(cheap, with_homes);
}

}  // namespace
}  // namespace reprise::analyzer
