// Recompute: what may run again, how the graph is rewritten, and what the verifier says to plans that recompute the
// wrong thing.
#include "analyzer/rewrite/recompute.h"

#include "analyzer/taskgraph/recompute_candidates.h"
#include "analyzer/verify/verify.h"
#include "tests/support/workloads.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

constexpr uint64_t kChunks = 100;

struct Shape {
  bool spoils_input = false;   // an op in between writes what "make x" reads
  bool updates_later = false;  // an op in between changes x
  bool frees_input = false;    // what "make x" reads is made by "make y", and gone by then
};

// "make x" reads w; "use x" reads it at once, and again behind ten ops that work on c.
Workload layers(const Shape& shape, double link = 1e9) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunks * kChunk), c = program.allocate(kChunks * kChunk);
  for (int step = 0; step < 3; ++step) {
    program.mark("iteration");
    uint64_t y = 0;
    if (shape.frees_input) {
      y = program.allocate(kChunks * kChunk);
      program.launch("make y", {reads(w), writes(y)}, 2 * kMs);
    }
    const uint64_t x = program.allocate(kChunks * kChunk);
    program.launch("make x", {reads(shape.frees_input ? y : w), writes(x)}, 10 * kMs);
    if (y != 0) program.free(y);
    program.launch("use x", {reads(x)}, 10 * kMs);
    const uint64_t z = program.allocate(kChunks * kChunk);
    for (int i = 0; i < 10; ++i) program.launch("work", {updates(c), writes(z)}, 10 * kMs);
    program.free(z);
    if (shape.spoils_input) program.launch("spoil", {updates(w)}, 10 * kMs);
    if (shape.updates_later) program.launch("change x", {updates(x)}, 10 * kMs);
    program.launch("use x", {reads(x)}, 10 * kMs);
    program.free(x);
  }
  program.mark("iteration");
  Workload workload = workload_on(with_link(link), program);
  for (GraphCall& entry : workload.graph.calls) {
    entry.call.pure = entry.call.name == "make x" || entry.call.name == "make y";
  }
  return workload;
}

CallIndex call_named(const TaskGraph& graph, const std::string& name, int which = 0) {
  for (CallIndex call{0}; call < graph.calls.size(); ++call) {
    if (graph.calls[call].call.name == name && which-- == 0) return call;
  }
  return CallIndex{kNone};
}

TEST(Relaunch, APureOpWithALongIdleOutputIsACandidate) {
  const TaskGraph graph = layers({}).graph;
  const std::vector<RecomputeCandidate> candidates = recompute_candidates(graph);
  ASSERT_EQ(candidates.size(), 1u);
  EXPECT_EQ(candidates[0].call, call_named(graph, "make x"));
  EXPECT_EQ(candidates[0].before, call_named(graph, "use x", 1));
  EXPECT_EQ(candidates[0].bytes, kChunks * kChunk);
  EXPECT_EQ(candidates[0].cost_ns, 10 * kMs);
  EXPECT_TRUE(candidates[0].others.empty());
}

TEST(Relaunch, NoneWhereTheInputChanges) {
  EXPECT_TRUE(recompute_candidates(layers({.spoils_input = true}).graph).empty());
}
TEST(Relaunch, NoneWhereSomebodyElseWritesTheOutput) {
  EXPECT_TRUE(recompute_candidates(layers({.updates_later = true}).graph).empty());
}
// It may write w, or use x, unseen.
TEST(Relaunch, NoneAcrossAnOpThatMayStray) {
  TaskGraph graph = layers({}).graph;
  graph.strays = true;
  for (GraphCall& entry : graph.calls) entry.call.audited = 7;
  EXPECT_EQ(recompute_candidates(graph).size(), 1u);
  graph.calls[call_named(graph, "work", 3)].call.audited = 0;
  EXPECT_TRUE(recompute_candidates(graph).empty());
  graph.strays = false;
  EXPECT_EQ(recompute_candidates(graph).size(), 1u) << "of a plan for trusted safety";
}
TEST(Relaunch, NoneWhereNothingIsPure) {
  TaskGraph graph = layers({}).graph;
  for (GraphCall& entry : graph.calls) entry.call.pure = false;
  EXPECT_TRUE(recompute_candidates(graph).empty());
}

TEST(Relaunch, AChainMakesTheInputAgain) {
  const TaskGraph graph = layers({.frees_input = true}).graph;
  const std::vector<RecomputeCandidate> candidates = recompute_candidates(graph);
  ASSERT_EQ(candidates.size(), 1u);
  EXPECT_EQ(candidates[0].others, std::vector<CallIndex>{call_named(graph, "make y")});
  EXPECT_EQ(candidates[0].cost_ns, 12 * kMs);
  const TaskGraph again = with_recompute(graph, {candidates[0].call});
  EXPECT_LT(call_named(again, "make y", 1), call_named(again, "make x", 1));
  EXPECT_LT(call_named(again, "make x", 1), call_named(again, "use x", 1));
  EXPECT_EQ(again.recompute_ns, 12 * kMs);
}

// Digests before and behind, of w, y and x; but y, which is made again itself, shows that "make x" leaves it alone.
TEST(Relaunch, GuardsTakeTheirTime) {
  const Workload workload = layers({.frees_input = true});
  const TaskGraph& graph = workload.graph;
  const uint64_t digest = hash_ns(kChunks * kChunk, workload.machine);
  ASSERT_GT(digest, 0u);
  const TaskGraph chain = with_recompute(graph, {call_named(graph, "make x")}, &workload.machine);
  EXPECT_EQ(chain.recompute_ns, 12 * kMs + 6 * digest);
  const TaskGraph single = layers({}).graph;
  const TaskGraph again = with_recompute(single, {call_named(single, "make x")}, &workload.machine);
  EXPECT_EQ(again.recompute_ns, 10 * kMs + 4 * digest);
}

TEST(Relaunch, TheOutputLivesTwice) {
  const TaskGraph graph = layers({}).graph;
  const TaskGraph again = with_recompute(graph, {call_named(graph, "make x")});
  const uint32_t second = call_named(again, "make x", 1);
  ASSERT_NE(second, kNone);
  EXPECT_EQ(again.calls[second].call.recompute_of, call_named(again, "make x", 0));
  const plan::Tensor& life = again.tensors.back();
  EXPECT_EQ(again.tensors[life.recompute_of].size, life.size);
  EXPECT_LT(again.tensors[life.recompute_of].free_call, life.allocate_call);
  EXPECT_LT(again.peak_chunks, graph.peak_chunks);
  EXPECT_EQ(again.compute_ns, graph.compute_ns);
  EXPECT_EQ(again.recompute_ns, 10 * kMs);
}

plan::Plan planned(const Workload& workload, bool recompute, PlanSummary* summary = nullptr) {
  PlanOptions options;
  options.policy = "reprise";
  options.recompute = recompute;
  options.budget_bytes = workload.reserved_bytes + 3 * kChunks * kChunk;
  return plan_with(workload, options, summary);
}

TEST(Relaunch, ThePlannerTakesItWhenTheLinkIsSlow) {
  const Workload workload = layers({});
  PlanSummary summary;
  const plan::Plan with = planned(workload, true, &summary);
  // Bounds on the bytes that move are not for plans that make them again.
  EXPECT_LE(summary.bounds.iteration_ns, with.predicted_ns + 1);
  EXPECT_LE(summary.bounds.reload_bytes, with.reload_bytes);
  EXPECT_LE(summary.bounds.offload_bytes, with.offload_bytes);
  const plan::Plan without = planned(workload, false);
  EXPECT_TRUE(recomputes(with));
  EXPECT_FALSE(recomputes(without));
  EXPECT_EQ(summary.recompute_ns, 10 * kMs);
  EXPECT_LT(with.predicted_ns, without.predicted_ns);
  EXPECT_EQ(with.predicted_ns, with.compute_ns + 10 * kMs);
}

TEST(Relaunch, ThePlannerLeavesItWhenTheLinkIsFast) { EXPECT_FALSE(recomputes(planned(layers({}, 1e12), true))); }

// Each of these would compute other bytes.
TEST(Relaunch, TheVerifierRefusesAWrongSecondLaunch) {
  const plan::Plan good = planned(layers({}), true);
  ASSERT_TRUE(verify(good).ok());
  const auto again = std::find_if(good.calls.begin(), good.calls.end(),
                                  [](const plan::Call& call) { return call.recompute_of != plan::kNone; });
  const auto index = static_cast<size_t>(again - good.calls.begin());
  const auto refused = [&](const std::function<void(plan::Plan&)>& spoil) {
    plan::Plan plan = good;
    spoil(plan);
    return verify(plan).message();
  };
  EXPECT_TRUE(has(refused([&](plan::Plan& p) { p.calls[p.calls[index].recompute_of].pure = false; }), "depend on"));
  EXPECT_TRUE(has(refused([&](plan::Plan& p) { p.calls[index].signature ^= 1; }), "not the same call"));
  EXPECT_TRUE(has(refused([&](plan::Plan& p) { p.calls[index].accesses.front().offset = 512; }), "other memory"));
  // "work" writes w as well: what "make x" reads is no longer what it was.
  EXPECT_TRUE(has(refused([&](plan::Plan& p) {
                    for (plan::Call& call : p.calls) {
                      if (call.name == "work")
                        call.accesses.push_back({0, trace::kAccessWrite, 0, 0, trace::kNoParameter});
                    }
                  }),
                  "does not hold what that takes"));
  // Without the second launch nothing brings the bytes back.
  EXPECT_TRUE(has(refused([&](plan::Plan& p) {
                    p.calls[index].recompute_of = plan::kNone;
                    p.calls[index].inserted = false;
                    p.calls[index].accesses.pop_back();
                  }),
                  "nothing recomputes it"));
}

}  // namespace
}  // namespace reprise::analyzer
