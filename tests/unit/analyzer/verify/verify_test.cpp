// The verifier names what is wrong. (Whether it sees everything is for tests/property.)
#include "analyzer/verify/verify.h"

#include "analyzer/planner/planner.h"
#include "tests/support/test.h"
#include "tests/support/trace_builder.h"

namespace reprise::analyzer {
namespace {

using namespace testing;
using plan::EdgeKind;
using plan::VertexKind;

plan::Plan tight_plan() {
  PlanOptions options;
  options.budget_bytes = 4 * kChunk;
  options.policy = "disco";
  Result<plan::Plan> plan = Planning(train_chain(4, kChunk, 3), options).plan();
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
  EXPECT_TRUE(has(status.message(), words));
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

// W is written and read, copied out for V, and comes back at the end. One chunk for both.
plan::Plan two_tensors_one_chunk() {
  plan::Plan plan;
  plan.chunk_bytes = plan.budget_bytes = 4096;
  plan.chunk_count = 1;
  plan.placements = {{{0}}};
  plan.tensors.resize(2);
  for (plan::Tensor& tensor : plan.tensors) {
    tensor.size = 4096;
    tensor.chunk_count = 1;
    tensor.home = 0;
  }
  plan.tensors[0].resident_at_start = true;
  plan.offload_bytes = 4096;
  plan.reload_bytes = 2 * 4096;
  const auto add = [&](VertexKind kind, uint32_t tensor, std::vector<plan::Predecessor> predecessors) {
    plan::Vertex vertex;
    vertex.kind = kind;
    vertex.tensor = tensor;
    vertex.predecessors = std::move(predecessors);
    if (kind == VertexKind::reload) vertex.acquires = {{tensor, 0}};
    plan.order.push_back(static_cast<uint32_t>(plan.vertices.size()));
    plan.vertices.push_back(vertex);
  };
  const auto op = [&](const char* name, uint32_t tensor, uint32_t mode, std::vector<plan::Predecessor> predecessors) {
    plan::Call call;
    call.op = trace::OpKind::launch;
    call.name = name;
    call.accesses = {{tensor, mode, 0, 0, trace::kNoParameter}};
    call.vertex = static_cast<uint32_t>(plan.vertices.size());
    add(VertexKind::op, plan::kNone, std::move(predecessors));
    plan.vertices.back().call = static_cast<uint32_t>(plan.calls.size());
    plan.calls.push_back(call);
  };
  op("writer", 0, trace::kAccessWrite, {{5, EdgeKind::data, 1}});
  op("reader", 0, trace::kAccessRead, {{0, EdgeKind::data, 0}});
  add(VertexKind::offload, 0, {{0, EdgeKind::data, 0}});
  add(VertexKind::reload, 1, {{2, EdgeKind::memory, 0}, {1, EdgeKind::memory, 0}});
  op("user of V", 1, trace::kAccessRead, {{3, EdgeKind::data, 0}});
  add(VertexKind::reload, 0, {{4, EdgeKind::memory, 0}});
  return plan;
}

TEST(Verify, TellsTheOrderThatBreaksIt) {
  plan::Plan plan = two_tensors_one_chunk();
  ASSERT_TRUE(verify(plan).ok()) << verify(plan).message();
  plan.vertices[3].predecessors.pop_back();
  EXPECT_EQ(verify(plan).message(),
            "the plan is wrong: tensor 0 may be overwritten by 3 (reload of tensor 1) before 1 (call 1, reader) reads "
            "it, through chunk 0; a legal order that breaks it runs 2, 3 and only then 1");
}

TEST(Verify, TellsOfAnEarlyUse) {
  plan::Plan plan = two_tensors_one_chunk();
  plan.vertices[4].predecessors = {};
  EXPECT_EQ(verify(plan).message(),
            "the plan is wrong: tensor 1 may not be in its chunks (from chunk 0 on) yet when 4 (call 2, user of V) "
            "reads it: 3 (reload of tensor 1) comes before; a legal order that breaks it runs 4 and only then 3");
}

TEST(Verify, TellsOfALostWrite) {
  plan::Plan plan = two_tensors_one_chunk();
  plan.vertices[2].predecessors = {{5, EdgeKind::data, 1}};
  EXPECT_EQ(verify(plan).message(),
            "the plan is wrong: 2 (offload of tensor 0) copies it out, tensor 0, but may run before 0 (call 0, writer) "
            "writes it; a legal order that breaks it runs 2 and only then 0");
}

TEST(Verify, TellsOfTheNextIteration) {
  plan::Plan plan = two_tensors_one_chunk();
  plan.vertices[0].predecessors = {};
  EXPECT_EQ(verify(plan).message(),
            "the plan is wrong: tensor 0 may not be in its chunks (from chunk 0 on) yet when 0 (call 0, writer) of the "
            "next iteration writes it: 5 (reload of tensor 0) comes before; a legal order that breaks it runs 0 of the "
            "next iteration and only then 5");
}

TEST(Verify, TellsWhoTookTheChunk) {
  plan::Plan plan = two_tensors_one_chunk();
  plan.calls[2].accesses[0].tensor = 0;
  EXPECT_EQ(verify(plan).message(),
            "the plan is wrong: 4 (call 2, user of V) needs tensor 0, which is not on the device: 3 (reload of tensor "
            "1) took its chunk 0 and nothing has brought it back");
}

TEST(Verify, TellsOfBytesThatAreLost) {
  plan::Plan plan = two_tensors_one_chunk();
  // It is written again after the copy.
  plan.calls[1].accesses[0].mode = trace::kAccessWrite;
  plan.vertices[1].predecessors.push_back({2, EdgeKind::data, 0});
  std::swap(plan.order[1], plan.order[2]);
  EXPECT_EQ(verify(plan).message(),
            "the plan is wrong: tensor 0 is lost: 3 (reload of tensor 1) takes its chunk 0 for tensor 1 before it was "
            "copied or freed");
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
  // The reload goes to the end of the order and no vertex waits for it.
  for (plan::Vertex& vertex : plan.vertices) {
    std::erase_if(vertex.predecessors,
                  [&](const plan::Predecessor& p) { return p.vertex == reload && p.distance == 0; });
  }
  std::erase(plan.order, reload);
  plan.order.push_back(reload);
  const Status status = verify(plan);
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(has(status.message(), "tensor " + std::to_string(tensor)));
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
  EXPECT_TRUE(plan::reorders(plan));
  // Without a wait in between the program goes on and calls it.
  for (uint32_t c = plan.vertices[release].call; c < plan.calls.size(); ++c) plan.calls[c].waited = 1;
  expect_refusal(plan, "both block for ever");
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
    const uint64_t a = program.allocate(1000), b = program.allocate(1000);
    program.launch("ab", {updates(a), updates(b), updates(w)});
    program.free(a);
    program.free(b);
  }
  PlanOptions options;
  options.budget_fraction = 4;
  Result<plan::Plan> plan = Planning(program.trace(), options).plan();
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
