// Examples of the papers whose figures we can say exactly.
#include <gtest/gtest.h>

#include "analyzer/planner.h"
#include "tests/unit/analyzer/trace_builder.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

constexpr uint64_t kUnit = 1'000'000;  // one transfer of one matrix, and one multiplication

// DISCO, Figures 2 and 3: a network of `layers` layers on two GPUs that share the bus to the host. Each layer's weights
// are two halves, one for each GPU, and each GPU has room for one. As a single device with room for two: the bus, and
// not where the halves lie, is what the example is about. Levelwise, both halves are multiplied when both are there.
trace::Trace network(int layers, bool levelwise) {
  TraceBuilder program;
  std::vector<uint64_t> halves;
  for (int i = 0; i < 2 * layers; ++i) halves.push_back(program.allocate(kChunk));
  for (int step = 0; step < 3; ++step) {
    program.mark("iteration");
    for (size_t i = 0; i < halves.size(); i += 2) {
      if (levelwise) {
        program.launch("layer", {reads(halves[i]), reads(halves[i + 1])}, kUnit);
      } else {
        program.launch("left half", {reads(halves[i])}, kUnit);
        program.launch("right half", {reads(halves[i + 1])}, kUnit);
      }
    }
    program.synchronize();  // every run of the network begins with an idle bus
  }
  program.mark("iteration");
  return program.trace();
}

uint64_t units(int layers, bool levelwise) {
  PlanOptions options;
  options.budget_bytes = 2 * kChunk;
  options.policy = "lru";
  options.machine = Machine{};
  options.machine->h2d_bytes_per_s = static_cast<double>(kChunk) * 1000;  // 1 ms for a half
  options.machine->latency_ns = 0;
  const Result<plan::Plan> plan = make_plan(network(layers, levelwise), options);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan.value().reload_bytes, 2 * static_cast<uint64_t>(layers) * kChunk);
  EXPECT_EQ(plan.value().predicted_ns % kUnit, 0u);
  return plan.value().predicted_ns / kUnit;
}

TEST(Disco, LevelwiseTakesThreeUnitsALayer) {
  for (const int n : {2, 3, 5, 20}) EXPECT_EQ(units(n, true), 3 * static_cast<uint64_t>(n));
}

TEST(Disco, WorkConservingTakesTwoAndOneAtTheEnd) {
  for (const int n : {2, 3, 5, 20}) EXPECT_EQ(units(n, false), 2 * static_cast<uint64_t>(n) + 1);
}

}  // namespace
}  // namespace reprise::analyzer
