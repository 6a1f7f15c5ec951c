// The verifier names what is wrong. (Whether it sees everything is for tests/property.)
#include "analyzer/verify/verify.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "analyzer/planner.h"
#include "tests/unit/analyzer/trace_builder.h"

namespace reprise::analyzer {
namespace {

using namespace testing;
using plan::EdgeKind;
using plan::VertexKind;

plan::Plan tight_plan() {
  PlanOptions options;
  options.budget_bytes = 4 * kChunk;
  options.policy = "disco";
  Result<plan::Plan> plan = make_plan(train_chain(4, kChunk, 3), options);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_TRUE(verify(plan.value()).ok());
  return std::move(plan.value());
}

uint32_t first_vertex(const plan::Plan& plan, VertexKind kind) {
  for (uint32_t v = 0; v < plan.vertices.size(); ++v) {
    if (plan.vertices[v].kind == kind) return v;
  }
  return plan::kNone;
}

void expect_refusal(const plan::Plan& plan, const std::string& words) {
  const Status status = verify(plan);
  ASSERT_FALSE(status.ok()) << words;
  EXPECT_EQ(status.code(), StatusCode::internal);
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
}

TEST(Verify, NamesWhoOverwritesWhomThroughWhichChunk) {
  const plan::Plan plan = tight_plan();
  int named = 0;
  for (uint32_t v = 0; v < plan.vertices.size(); ++v) {
    plan::Plan broken = plan;
    std::erase_if(broken.vertices[v].predecessors,
                  [&](const plan::Predecessor& p) { return p.kind == EdgeKind::memory; });
    const Status status = verify(broken);
    if (status.ok()) continue;
    const std::string& message = status.message();
    if (message.find("may be overwritten by " + std::to_string(v)) != std::string::npos &&
        message.find("through chunk ") != std::string::npos) {
      ++named;
    }
  }
  EXPECT_GT(named, 0);
}

TEST(Verify, NamesAReloadThatNobodyWaitsFor) {
  plan::Plan plan = tight_plan();
  const uint32_t reload = first_vertex(plan, VertexKind::reload);
  ASSERT_NE(reload, plan::kNone);
  for (plan::Vertex& vertex : plan.vertices) {
    std::erase_if(vertex.predecessors, [&](const plan::Predecessor& p) { return p.vertex == reload; });
  }
  expect_refusal(plan, "reload of tensor");
}

TEST(Verify, NamesTheTensorThatIsNotThere) {
  plan::Plan plan = tight_plan();
  const uint32_t reload = first_vertex(plan, VertexKind::reload);
  const uint32_t tensor = plan.vertices[reload].tensor;
  // The reload goes to the end of the order and nobody waits for it.
  for (plan::Vertex& vertex : plan.vertices) {
    std::erase_if(vertex.predecessors,
                  [&](const plan::Predecessor& p) { return p.vertex == reload && p.distance == 0; });
  }
  std::erase(plan.order, reload);
  plan.order.push_back(reload);
  const Status status = verify(plan);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("tensor " + std::to_string(tensor)), std::string::npos) << status.message();
}

TEST(Verify, SeesCyclesOverTheOrder) {
  plan::Plan plan = tight_plan();
  plan.vertices[plan.order.front()].predecessors.push_back({plan.order.back(), EdgeKind::data, 0});
  expect_refusal(plan, "before its predecessor");
}

TEST(Verify, SeesWaitingForALaterCall) {
  plan::Plan plan = tight_plan();
  // Transfers may stand anywhere, so the order stays topological, but an early op now needs a late free.
  const uint32_t early = plan.calls[0].vertex;
  uint32_t release = plan::kNone;
  for (uint32_t v = 0; v < plan.vertices.size(); ++v) {
    if (plan.vertices[v].kind == VertexKind::release) release = v;
  }
  ASSERT_NE(release, plan::kNone);
  plan.vertices[early].predecessors.push_back({release, EdgeKind::memory, 0});
  std::erase(plan.order, release);
  plan.order.insert(plan.order.begin(), release);
  expect_refusal(plan, "may call only later");
}

TEST(Verify, SeesAStateThatDoesNotCloseTheCircle) {
  plan::Plan plan = tight_plan();
  for (plan::Tensor& tensor : plan.tensors) {
    if (tensor.resident_at_start) tensor.clean_at_start = true;
  }
  EXPECT_FALSE(verify(plan).ok());
}

TEST(Verify, SeesSmallTensorsThatShareBytes) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk);
  for (int i = 0; i < 3; ++i) {
    const uint64_t a = program.allocate(1000);
    const uint64_t b = program.allocate(1000);
    program.launch("ab", {updates(a), updates(b), updates(w)});
    program.free(a);
    program.free(b);
  }
  PlanOptions options;
  options.budget_fraction = 4;
  Result<plan::Plan> plan = make_plan(program.trace(), options);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  for (plan::Tensor& tensor : plan.value().tensors) tensor.slab_offset = 0;
  expect_refusal(plan.value(), "overlap in the slab");
}

TEST(Verify, SeesFewerChunksThanNeeded) {
  plan::Plan plan = tight_plan();
  --plan.chunk_count;
  expect_refusal(plan, "chunk that does not exist");
}

}  // namespace
}  // namespace reprise::analyzer
