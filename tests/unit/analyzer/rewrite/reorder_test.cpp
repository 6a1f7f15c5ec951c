// Reordered updates: what moves where, what must not, and what it is worth.
#include "analyzer/rewrite/reorder.h"

#include "analyzer/verify/verify.h"
#include "tests/support/workloads.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

constexpr int kLayers = 6;

struct Shape {
  bool waits = false;  // the program waits for the device between gradients and updates
  bool reads = false;  // layer 0's gradient is made from all weights
  bool norms = false;  // a kernel reads all gradients before the updates
};

// A gradient for each of `kLayers` weights, then an update of each weight by its gradient.
Workload optimizer(const Shape& shape, double link = 50e9) {
  TraceBuilder program;
  uint64_t weight[kLayers];
  for (uint64_t& w : weight) w = program.allocate(4 * kChunk);
  const uint64_t norm = program.allocate(kChunk);
  for (int step = 0; step < 3; ++step) {
    program.mark("iteration");
    uint64_t gradient[kLayers];
    for (int i = kLayers; i-- > 0;) {
      gradient[i] = program.allocate(4 * kChunk);
      std::vector<Use> accesses = {reads(weight[i]), writes(gradient[i])};
      if (shape.reads && i == 0) {
        for (int other = 1; other < kLayers; ++other) accesses.push_back(reads(weight[other]));
      }
      program.launch("gradient " + std::to_string(i), accesses, kMs);
    }
    if (shape.norms) {
      std::vector<Use> accesses = {writes(norm)};
      for (const uint64_t g : gradient) accesses.push_back(reads(g));
      program.launch("norm", accesses, kMs);
    }
    if (shape.waits) program.synchronize();
    for (int i = 0; i < kLayers; ++i) {
      program.launch("update " + std::to_string(i), {updates(weight[i]), reads(gradient[i])}, kMs);
      program.free(gradient[i]);
    }
  }
  program.mark("iteration");
  return workload_on(with_link(link), program);
}

// The names of the ops, in the graph's order, "g5 u5 ...".
std::string order(const TaskGraph& graph) {
  std::string text;
  for (const GraphCall& entry : graph.calls) {
    if (entry.call.kind != plan::CallKind::op) continue;
    if (!text.empty()) text += ' ';
    text += entry.call.name.substr(0, 1) +
            (entry.call.name == "norm" ? "" : entry.call.name.substr(entry.call.name.size() - 1));
  }
  return text;
}

TEST(EarlyUpdates, StandRightBehindTheirGradients) {
  const Workload workload = optimizer({});
  EXPECT_EQ(order(workload.graph), "g5 g4 g3 g2 g1 g0 u0 u1 u2 u3 u4 u5");
  const TaskGraph early = with_reordered_updates(workload.graph);
  EXPECT_EQ(order(early), "g5 u5 g4 u4 g3 u3 g2 u2 g1 u1 g0 u0");
  std::vector<uint32_t> sorted = early.reordered_from;
  std::sort(sorted.begin(), sorted.end());
  for (uint32_t i = 0; i < sorted.size(); ++i) EXPECT_EQ(sorted[i], i);
  EXPECT_EQ(early.compute_ns, workload.graph.compute_ns);
  // One gradient at a time, instead of all.
  EXPECT_EQ(workload.graph.peak_chunks, early.peak_chunks + (kLayers - 1) * 4);
}

TEST(EarlyUpdates, StayBehindWhoReadsTheOldWeights) {
  EXPECT_EQ(order(with_reordered_updates(optimizer({.reads = true}).graph)), "g5 g4 g3 g2 g1 g0 u0 u1 u2 u3 u4 u5");
}

TEST(EarlyUpdates, DoNotPassAWaitNorTheNormOfAllGradients) {
  EXPECT_TRUE(with_reordered_updates(optimizer({.waits = true}).graph).reordered_from.empty());
  // The norm reads the gradients; nothing says that the updates read the norm, but it must see what they free.
  EXPECT_EQ(order(with_reordered_updates(optimizer({.norms = true}).graph)), "g5 u5 g4 u4 g3 u3 g2 u2 g1 u1 g0 u0 n");
}

plan::Plan planned(const Workload& workload, bool reorder) {
  PlanOptions options;
  options.policy = "reprise";
  options.budget_bytes = workload.reserved_bytes + (kLayers + 4) * 4 * kChunk;
  options.reorder = reorder;
  return plan_with(workload, options);
}

TEST(EarlyUpdates, SaveTransfersAndThePlanSaysThatItOvertakes) {
  const Workload workload = optimizer({}, 1e9);
  const plan::Plan kept = planned(workload, false), early = planned(workload, true);
  EXPECT_GT(kept.predicted_ns, early.predicted_ns);
  EXPECT_FALSE(plan::reorders(kept));
  EXPECT_TRUE(plan::reorders(early));
  // The calls stand as the program makes them.
  for (uint32_t i = 0; i < workload.graph.calls.size(); ++i) {
    EXPECT_EQ(early.calls[i].signature, workload.graph.calls[i].call.signature) << i;
  }
}

TEST(EarlyUpdates, APlanThatWaitsForWhatComesAfterAWaitIsRefused) {
  plan::Plan early = planned(optimizer({}, 1e9), true);
  ASSERT_TRUE(verify(early).ok());
  // As if the program had waited for all gradients before its first update.
  bool updates = false;
  for (uint32_t i = 0; i < early.calls.size(); ++i) {
    plan::Call& call = early.calls[i];
    updates = updates || call.name == "update 0";
    if (updates) call.waited = 2 * kLayers;
  }
  const Status status = verify(early);
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(has(status.message(), "both block for ever"));
}

}  // namespace
}  // namespace reprise::analyzer
