// A small program in which a tensor lies idle for long and is made of others, and plans that make it again. Callers:
// the tests of this folder.
#pragma once

#include "analyzer/rewrite/recompute.h"
#include "analyzer/verify/verify.h"
#include "tests/support/workloads.h"

namespace reprise::analyzer::testing {

struct ChainShape {
  bool keeps = true;         // the program uses what x is made of again at the end; else it frees it as soon as it can
  int makers = 2;            // "make x" reads y, which "make y" has made of z, ..., of w
  uint64_t chunks = 1;       // of each of these
  uint64_t work_chunks = 3;  // of c, on which four ops work while x is idle
};

inline const char* maker_name(int from_the_end) {
  constexpr const char* kNames[] = {"make x", "make y", "make z"};
  return kNames[from_the_end];
}

inline Workload chain(const ChainShape& shape) {
  TraceBuilder program;
  const uint64_t bytes = shape.chunks * kChunk;
  const uint64_t w = program.allocate(bytes), c = program.allocate(shape.work_chunks * kChunk);
  for (int step = 0; step < 3; ++step) {
    program.mark("iteration");
    std::vector<uint64_t> made = {w};
    for (int maker = shape.makers; maker-- > 0;) {
      made.push_back(program.allocate(bytes));
      program.launch(maker_name(maker), {reads(made[made.size() - 2]), writes(made.back())}, kMs);
      if (!shape.keeps && made.size() > 2) program.free(made[made.size() - 2]);
    }
    const uint64_t x = made.back();
    program.launch("use x", {reads(x)}, kMs);
    for (int i = 0; i < 4; ++i) program.launch("work", {updates(c)}, 10 * kMs);
    program.launch("use x", {reads(x)}, kMs);
    program.free(x);
    for (size_t i = 1; shape.keeps && i + 1 < made.size(); ++i) {
      program.launch("use y", {reads(made[i])}, kMs);
      program.free(made[i]);
    }
  }
  program.mark("iteration");
  Workload workload = workload_on(slow_link(), program);
  for (GraphCall& entry : workload.graph.calls) entry.call.pure = entry.call.name.rfind("make ", 0) == 0;
  return workload;
}

inline uint32_t call_named(const TaskGraph& graph, const std::string& name, int which) {
  for (uint32_t call = 0; call < graph.calls.size(); ++call) {
    if (graph.calls[call].call.name == name && which-- == 0) return call;
  }
  return kNone;
}

inline TaskGraph recomputed(const Workload& workload) {
  return with_recompute(workload.graph, {call_named(workload.graph, "make x", 0)});
}

// In so many chunks; the planner hands nothing out that the verifier refuses.
inline Result<plan::Plan> planned(const Workload& workload, TaskGraph graph, uint64_t chunks) {
  PlanOptions options;
  options.machine = workload.machine;
  options.policy = "lru";
  options.recompute = false;
  options.budget_bytes = chunks * kChunk;
  complete_task_graph(graph);
  return make_plan(make_workload(std::move(graph), options).value(), options);
}

// With all that names it.
inline void erase_vertex(plan::Plan& plan, uint32_t gone) {
  plan.vertices.erase(plan.vertices.begin() + gone);
  std::erase(plan.order, gone);
  for (uint32_t& vertex : plan.order) vertex -= vertex > gone ? 1 : 0;
  for (plan::Call& call : plan.calls) call.vertex -= call.vertex != kNone && call.vertex > gone ? 1 : 0;
  for (plan::Vertex& vertex : plan.vertices) {
    std::erase_if(vertex.predecessors, [&](const plan::Predecessor& p) { return p.vertex == gone; });
    for (plan::Predecessor& p : vertex.predecessors) p.vertex -= p.vertex > gone ? 1 : 0;
  }
}

}  // namespace reprise::analyzer::testing
