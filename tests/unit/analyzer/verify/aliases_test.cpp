// Tensors that stay mapped while they are away, for audited safety: which the planner chooses, and that the verifier
// sees one that it must not be.
#include "analyzer/planner/aliases.h"

#include "analyzer/verify/verify.h"
#include "tests/support/workloads.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

// Tensors 0 and 1, w and c, live on. w leaves while four ops work on c, and comes back in the next iteration; c leaves
// behind them.
Workload program() {
  TraceBuilder program;
  const uint64_t w = program.allocate(2 * kChunk), c = program.allocate(3 * kChunk);
  for (int step = 0; step < 3; ++step) {
    program.mark("iteration");
    const uint64_t x = program.allocate(2 * kChunk);
    program.launch("make x", {updates(w), writes(x)}, kMs);
    for (const char* name : {"work a", "work b", "work c", "work d"}) program.launch(name, {updates(c)}, 10 * kMs);
    program.launch("use x", {updates(x)}, kMs);
    program.free(x);
  }
  program.mark("iteration");
  return workload_on(slow_link(), program);
}

// Audited are all launches but those named.
plan::Plan planned(const std::string& but = "") {
  const Workload made = program();
  TaskGraph graph = made.graph;
  for (GraphCall& entry : graph.calls) {
    if (entry.call.kind == plan::CallKind::op && entry.call.name != but) entry.call.audited = 0x77;
  }
  graph.strays = !but.empty();
  PlanOptions options;
  options.machine = made.machine;
  options.policy = "lru";
  options.budget_bytes = 5 * kChunk;
  options.safety = plan::Safety::audited;
  complete_task_graph(graph);
  return good(make_plan(make_workload(std::move(graph), options).value(), options));
}

bool moves(const plan::Plan& plan, uint32_t tensor) {
  return std::any_of(plan.vertices.begin(), plan.vertices.end(), [tensor](const plan::Vertex& v) {
    return v.kind == plan::VertexKind::offload && v.tensor == tensor;
  });
}

TEST(Aliases, AreForTensorsThatOnlyAuditedLaunchesPassBy) {
  const plan::Plan all = planned();
  ASSERT_TRUE(moves(all, 0) && moves(all, 1)) << plan::to_text(all);
  EXPECT_TRUE(all_audited(all));
  for (const plan::Tensor& tensor : all.tensors) EXPECT_TRUE(tensor.aliased);
  for (const char* name : {"work a", "work b", "work c", "work d"}) {
    const plan::Plan one = planned(name);
    EXPECT_TRUE(moves(one, 0));
    EXPECT_FALSE(one.tensors[0].aliased) << name;
    EXPECT_TRUE(one.tensors[1].aliased) << "what uses a tensor may be anything";
    EXPECT_FALSE(all_audited(one));
  }
  EXPECT_TRUE(planned("make x").tensors[0].aliased);
  EXPECT_FALSE(planned("make x").tensors[1].aliased);
}

TEST(Aliases, WithoutAnAuditThePlanIsAStrictOne) {
  plan::Plan plan = planned();
  for (plan::Call& call : plan.calls) call.audited = 0;
  for (plan::Tensor& tensor : plan.tensors) tensor.aliased = false;
  const std::string before = plan::serialize(plan);
  set_aliases(plan);
  EXPECT_EQ(plan::serialize(plan), before);
}

// Planted: one launch that a tensor is away for was not audited.
TEST(Aliases, TheVerifierSeesALaunchThatIsNotAudited) {
  const plan::Plan plan = planned();
  ASSERT_TRUE(verify(plan).ok());
  for (const char* name : {"work a", "work b", "work c", "work d"}) {
    plan::Plan broken = plan;
    for (plan::Call& call : broken.calls) {
      if (call.name == name) call.audited = 0;
    }
    const Status refused = verify(broken);
    EXPECT_FALSE(refused.ok()) << name;
    EXPECT_TRUE(has(refused.message(), name));
    set_aliases(broken);
    EXPECT_TRUE(verify(broken).ok());
  }
}

TEST(Aliases, TheVerifierSeesARemap) {
  plan::Plan plan = planned();
  for (plan::Vertex& vertex : plan.vertices) {
    if (vertex.kind != plan::VertexKind::reload) continue;
    plan.placements.push_back(plan.placements[vertex.acquires.front().placement]);
    vertex.acquires.front().placement = static_cast<uint32_t>(plan.placements.size() - 1);
  }
  const Status refused = verify(plan);
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(has(refused.message(), "stays mapped"));
}

}  // namespace
}  // namespace reprise::analyzer
