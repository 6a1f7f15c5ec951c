// Which tensors go to the SSD where host memory is too small, and how both links share the device's memory.
#include "analyzer/schedule/tiers.h"

#include "analyzer/policies/policy.h"
#include "analyzer/schedule/retime.h"
#include "tests/support/graph_builder.h"
#include "tests/support/test.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

constexpr uint32_t kTensors = 40;
constexpr uint64_t kOpNs = 1'000'000;
constexpr uint64_t kCapacity = 12;

// One op makes four tensors, one uses each on the way back. In the time per tensor the SSD carries 0.6 tensors,
// and the host's link 2.
TaskGraph there_and_back() {
  GraphBuilder program(1);
  std::vector<uint32_t> tensors;
  tensors.reserve(kTensors);
  for (uint32_t i = 0; i < kTensors; ++i) tensors.push_back(program.transient(0));
  for (uint32_t i = 0; i < kTensors; i += 4) {
    program.kernel(0, "make", {}, {tensors[i], tensors[i + 1], tensors[i + 2], tensors[i + 3]}, 4 * kOpNs);
  }
  for (uint32_t i = kTensors; i-- > 0;) program.kernel(0, "use", {tensors[i]}, {}, kOpNs);
  return program.build();
}

// The host holds half of what is away at the peak.
Machine machine_for(const TaskGraph& graph) {
  Machine machine;
  const auto size = static_cast<double>(graph.chunk_bytes);
  machine.h2d_bytes_per_s = machine.d2h_bytes_per_s = 2 * size / (kOpNs * 1e-9);
  machine.ssd_read_bytes_per_s = machine.ssd_write_bytes_per_s = 0.6 * size / (kOpNs * 1e-9);
  machine.latency_ns = machine.ssd_latency_ns = 0;
  machine.host_bytes = (kTensors - kCapacity + 2) / 2 * graph.chunk_bytes;
  return machine;
}

TEST(Tiers, TheSsdWorksThroughout) {
  const TaskGraph graph = there_and_back();
  const Machine machine = machine_for(graph);
  Schedule schedule = disco_policy().schedule({graph, machine, kCapacity, true});
  EXPECT_TRUE(assign_tiers(graph, machine, schedule).fits);
  uint32_t row = 0, longest = 0, written = 0;
  for (const Stay& stay : schedule.stays) {
    if (stay.departure != Departure::offload) continue;
    row = stay.to == Tier::ssd ? row + 1 : 0;
    written += stay.to == Tier::ssd ? 1 : 0;
    longest = std::max(longest, row);
  }
  EXPECT_GT(written, kTensors / 4);
  EXPECT_LE(longest, 3u);  // every other one, more or less
}

TEST(Tiers, NoOpWaitsForTheSsd) {
  const TaskGraph graph = there_and_back();
  const Machine machine = machine_for(graph);
  Schedule schedule = disco_policy().schedule({graph, machine, kCapacity, true});
  assign_tiers(graph, machine, schedule);
  const uint64_t played = retime(graph, machine, schedule, kCapacity).iteration_ns;
  EXPECT_LE(played, graph.compute_ns + kOpNs);
}

// Two large tensors come back, one from the SSD. The host's link could bring the other one, which is needed later, at
// any time; if it did so first, there would be no room for the slow one.
TEST(Timeline, WhatIsUrgentOnTheSlowLinkGetsItsMemoryFirst) {
  GraphBuilder program(1);
  const uint32_t soon = program.transient(0, 4), later = program.transient(0, 4), full = program.transient(0, 6);
  const uint32_t half = program.transient(0, 3);
  program.kernel(0, "make soon", {}, {soon}, kOpNs);
  program.kernel(0, "make later", {}, {later}, kOpNs);
  program.kernel(0, "full", {}, {full}, 20 * kOpNs);
  program.kernel(0, "half", {}, {half}, 10 * kOpNs);
  program.kernel(0, "use soon", {soon}, {}, kOpNs);
  program.kernel(0, "idle", {}, {}, 4 * kOpNs);
  program.kernel(0, "use later", {later}, {}, kOpNs);
  const TaskGraph graph = program.build();
  Machine machine = machine_for(graph);  // 4 chunks: 6.7 ms by the SSD, 2 by the link
  machine.host_bytes = 4 * graph.chunk_bytes;
  Schedule schedule = disco_policy().schedule({graph, machine, 8, true});
  assign_tiers(graph, machine, schedule);
  for (Stay& stay : schedule.stays) {
    if (stay.tensor == soon || stay.tensor == later) stay.to = stay.from = stay.tensor == soon ? Tier::ssd : Tier::host;
  }
  const uint64_t played = retime(graph, machine, schedule, 8).iteration_ns;
  EXPECT_LT(played, graph.compute_ns + 8 * kOpNs) << "the copies out of both keep `full` waiting, nothing else";
}

}  // namespace
}  // namespace reprise::analyzer
