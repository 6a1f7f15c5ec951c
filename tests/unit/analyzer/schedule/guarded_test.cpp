// What only kernel facts call unchanged leaves by an offload that compares: ordered like any, but without the link.
#include "analyzer/policies/policy.h"
#include "analyzer/verify/verify.h"
#include "tests/support/workloads.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

constexpr uint32_t kUnchanged = trace::kAccessRead | trace::kAccessWrite | trace::kAccessUnchanged;

// Six layers, each with a weight that all layers' kernels may write, as recorded launches do; facts say they do not.
Workload layers(bool facts) {
  TraceBuilder program;
  std::vector<uint64_t> weights;
  for (int i = 0; i < 6; ++i) weights.push_back(program.allocate(kChunk));
  const uint64_t x = program.allocate(kChunk);
  for (int step = 0; step < 3; ++step) {
    program.mark("iteration");
    for (const uint64_t w : weights) program.launch("layer", {updates(w), updates(x)}, kMs);
  }
  program.mark("iteration");
  Workload workload = workload_on(slow_link(), program);
  for (GraphCall& entry : workload.graph.calls) {
    if (facts && !entry.call.accesses.empty()) entry.call.accesses[0].mode = kUnchanged;
  }
  complete_task_graph(workload.graph);
  return workload;
}

plan::Plan planned(const Workload& workload, const std::string& policy) {
  PlanOptions options;
  options.policy = policy;
  options.budget_bytes = workload.reserved_bytes + 4 * kChunk;
  return plan_with(workload, options);
}

TEST(Guarded, UnchangedTensorsAreComparedNotCopied) {
  const Workload known = layers(true);
  for (const Policy* policy : all_policies()) {
    const plan::Plan plan = planned(known, std::string(policy->name()));
    EXPECT_EQ(plan.offload_bytes, 0u) << policy->name();
    EXPECT_GT(plan.reload_bytes, 0u) << policy->name();
    uint32_t clean = 0;
    for (const plan::Vertex& vertex : plan.vertices) {
      if (vertex.kind != plan::VertexKind::offload) continue;
      EXPECT_TRUE(vertex.clean) << policy->name();
      EXPECT_EQ(vertex.predicted_end_ns - vertex.predicted_start_ns, hash_ns(kChunk, known.machine));
      ++clean;
    }
    uint32_t reloads = 0;
    for (const plan::Vertex& vertex : plan.vertices) reloads += vertex.kind == plan::VertexKind::reload ? 1 : 0;
    EXPECT_EQ(clean, reloads) << policy->name();
    EXPECT_FALSE(plan::drops_what_is_only_read(plan));
    for (const plan::Tensor& tensor : plan.tensors) EXPECT_FALSE(tensor.clean_at_start) << "by facts alone";
  }
}

TEST(Guarded, TheLinkIsForReloadsAlone) {
  const plan::Plan with = planned(layers(true), "auto"), without = planned(layers(false), "auto");
  EXPECT_GT(without.offload_bytes, 0u);
  EXPECT_LE(with.predicted_ns, without.predicted_ns);
}

// The verifier takes such an access for a write: without the comparison the bytes would be lost.
TEST(Guarded, ADropWithoutTheComparisonIsRefused) {
  const plan::Plan plan = planned(layers(true), "lru");
  for (uint32_t v = 0; v < plan.vertices.size(); ++v) {
    if (!plan.vertices[v].clean) continue;
    plan::Plan broken = plan;
    for (plan::Vertex& vertex : broken.vertices) {
      std::erase_if(vertex.predecessors, [&](const plan::Predecessor& p) { return p.vertex == v; });
    }
    EXPECT_FALSE(verify(broken).ok()) << "nothing waits for vertex " << v;
  }
}

TEST(Guarded, OnlyOffloadsAreClean) {
  plan::Plan plan = planned(layers(true), "lru");
  ASSERT_TRUE(plan::check_structure(plan).ok());
  const auto reload = std::find_if(plan.vertices.begin(), plan.vertices.end(),
                                   [](const plan::Vertex& v) { return v.kind == plan::VertexKind::reload; });
  ASSERT_NE(reload, plan.vertices.end());
  reload->clean = true;
  EXPECT_TRUE(has(plan::check_structure(plan).message(), "is clean but no offload"));
  reload->clean = false;
  for (plan::Vertex& vertex : plan.vertices) vertex.clean = false;
  EXPECT_TRUE(has(plan::check_structure(plan).message(), "totals"));
}

TEST(Guarded, ModesThatMeanNothingAreRefused) {
  plan::Plan plan = planned(layers(true), "lru");
  for (plan::Call& call : plan.calls) {
    if (!call.accesses.empty()) call.accesses[0].mode = trace::kAccessRead | trace::kAccessUnchanged;
  }
  EXPECT_TRUE(has(plan::check_structure(plan).message(), "no known way"));
}

}  // namespace
}  // namespace reprise::analyzer
