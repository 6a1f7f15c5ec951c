// What the verifier says to plans that drop bytes which nothing makes again, or that make others.
#include "tests/unit/analyzer/verify/recompute_chain.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

void expect_refusal(const Workload& workload, TaskGraph graph, const std::string& words) {
  const Result<plan::Plan> plan = planned(workload, std::move(graph), 6);
  ASSERT_FALSE(plan.ok()) << plan::to_text(plan.value());
  EXPECT_TRUE(has(plan.status().message(), words));
}

TEST(RecomputeFaults, WithoutOneThePlansAreRight) {
  for (const bool keeps_y : {false, true}) {
    const Workload workload = chain({.keeps = keeps_y});
    for (uint64_t chunks = 3; chunks < 7; ++chunks) {
      const Result<plan::Plan> plan = planned(workload, recomputed(workload), chunks);
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      EXPECT_TRUE(plan::recomputes(plan.value()));
    }
  }
}

// What the program frees early, the plan frees late.
TEST(RecomputeFaults, AChainFreesItsMiddleLate) {
  const Workload workload = chain({.keeps = false});
  const TaskGraph graph = recomputed(workload);
  const auto late = std::find_if(graph.calls.begin(), graph.calls.end(),
                                 [](const GraphCall& entry) { return entry.call.kind == plan::CallKind::late_free; });
  ASSERT_NE(late, graph.calls.end());
  EXPECT_FALSE(late->call.inserted);
  EXPECT_NE(late->call.signature, 0u);
  const plan::Tensor& second = graph.tensors.back();
  EXPECT_EQ(graph.tensors[late->call.tensor].recompute_of, kNone);
  EXPECT_TRUE(graph.calls[second.free_call].call.inserted || graph.calls[second.free_call].call.signature != 0);
}

TEST(RecomputeFaults, AnInputThatIsOverwrittenMeanwhile) {
  const Workload workload = chain({.keeps = true});
  for (int which = 0; which < 4; ++which) {
    TaskGraph graph = recomputed(workload);
    const uint32_t y = graph.calls[call_named(graph, "make x", 0)].call.accesses[0].tensor;
    GraphCall& work = graph.calls[call_named(graph, "work", which)];
    work.call.accesses.push_back({y, trace::kAccessWrite, 0, 0, trace::kNoParameter});
    expect_refusal(workload, std::move(graph), "does not hold what that takes");
  }
}

// The same write, if facts say that it changes nothing, is none.
TEST(RecomputeFaults, AnInputThatIsUnchangedMeanwhileIsNoFault) {
  const Workload workload = chain({.keeps = true});
  TaskGraph graph = recomputed(workload);
  const uint32_t y = graph.calls[call_named(graph, "make x", 0)].call.accesses[0].tensor;
  constexpr uint32_t kUnchanged = trace::kAccessRead | trace::kAccessWrite | trace::kAccessUnchanged;
  graph.calls[call_named(graph, "work", 1)].call.accesses.push_back({y, kUnchanged, 0, 0, trace::kNoParameter});
  EXPECT_TRUE(planned(workload, std::move(graph), 6).ok());
}

// Nothing makes y again: its recompute is another op now.
TEST(RecomputeFaults, AnInputThatIsFreedMeanwhile) {
  const Workload workload = chain({.keeps = false});
  TaskGraph graph = recomputed(workload);
  GraphCall& again = graph.calls[call_named(graph, "make y", 1)];
  ASSERT_NE(again.call.recompute_of, kNone);
  again.call.recompute_of = call_named(graph, "make x", 0);
  expect_refusal(workload, std::move(graph), "is dropped and cannot be made again");
  // The second launch looks where y was.
  plan::Plan plan = planned(workload, recomputed(workload), 6).value();
  for (plan::Call& call : plan.calls) {
    if (call.recompute_of == kNone || call.name != "make x") continue;
    call.accesses[0].tensor = plan::root_of(plan.tensors, call.accesses[0].tensor);
  }
  EXPECT_TRUE(has(verify(plan).message(), "not allocated then"));
}

TEST(RecomputeFaults, AnOpThatIsNotPureOrAnotherOne) {
  const Workload workload = chain({.keeps = true});
  const auto refused = [&](const std::function<void(plan::Call&)>& spoil, const std::string& words) {
    TaskGraph graph = recomputed(workload);
    spoil(graph.calls[call_named(graph, "make x", 1)].call);
    expect_refusal(workload, std::move(graph), words);
  };
  refused([](plan::Call& call) { call.signature ^= 1; }, "is not the same call");
  refused([](plan::Call& call) { call.flags = trace::kOpSynchronous; }, "is not the same call");
  refused([](plan::Call& call) { call.accesses[0].parameter_offset = 8; }, "works on other memory");
  TaskGraph graph = recomputed(workload);
  graph.calls[call_named(graph, "make x", 0)].call.pure = false;
  expect_refusal(workload, std::move(graph), "not known to depend on its inputs alone");
}

// No op reads x any more, but the program has it and may.
TEST(RecomputeFaults, WhatIsDroppedForGood) {
  const Workload workload = chain({.keeps = true});
  TaskGraph graph = recomputed(workload);
  plan::Call& again = graph.calls[call_named(graph, "make x", 1)].call;
  again.accesses.resize(1);
  again.recompute_of = call_named(graph, "make y", 0);
  graph.calls[call_named(graph, "use x", 1)].call.accesses.clear();
  expect_refusal(workload, std::move(graph), "nothing recomputes it");
}

TEST(RecomputeFaults, AnInputThatIsNotOnTheDevice) {
  const Workload workload = chain({.keeps = true});
  plan::Plan plan = planned(workload, recomputed(workload), 3).value();
  int erased = 0;
  for (uint32_t v = 0; v < plan.vertices.size(); ++v) {
    const plan::Vertex& vertex = plan.vertices[v];
    if (vertex.kind != plan::VertexKind::reload || plan.tensors[vertex.tensor].allocate_call == kNone) continue;
    plan::Plan broken = plan;
    broken.reload_bytes -= plan.tensors[vertex.tensor].size;
    erase_vertex(broken, v);
    EXPECT_TRUE(has(verify(broken).message(), "which is not on the device"));
    ++erased;
  }
  EXPECT_GT(erased, 0);
}

// The replay indexes late frees without a look.
TEST(RecomputeFaults, LateFreesThatAreNone) {
  const Workload workload = chain({.keeps = false});
  const plan::Plan good = planned(workload, recomputed(workload), 6).value();
  const auto late = std::find_if(good.calls.begin(), good.calls.end(),
                                 [](const plan::Call& call) { return call.kind == plan::CallKind::late_free; });
  ASSERT_NE(late, good.calls.end());
  const auto index = static_cast<size_t>(late - good.calls.begin());
  const auto refused = [&](const std::function<void(plan::Plan&)>& spoil) {
    plan::Plan plan = good;
    spoil(plan);
    return plan::check_structure(plan).message();
  };
  EXPECT_TRUE(has(refused([&](plan::Plan& p) { p.calls[index].inserted = true; }), "program's free alone"));
  EXPECT_TRUE(has(refused([&](plan::Plan& p) { p.calls[index].tensor = 0; }), "not there"));
  EXPECT_TRUE(has(refused([&](plan::Plan& p) { p.calls[index].vertex = 0; }), "program's free alone"));
}

}  // namespace
}  // namespace reprise::analyzer
