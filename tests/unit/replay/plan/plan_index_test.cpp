// The index of a plan says what a scan of the plan says, and refuses what could not be enforced.
#include "replay/plan/plan_index.h"

#include <rapidcheck.h>

#include "preload/base/causes.h"
#include "tests/support/test.h"
#include "tests/unit/replay/plan/random_plan.h"

namespace reprise::replay {
namespace {

using plan::VertexKind;
constexpr uint64_t kChunk = 4096;
constexpr Zone kZone{uint64_t{1} << 40, 1000 * kChunk};

struct Made {
  bool ok;
  PlanIndex index;
  std::string why;
};

Made index_of(plan::Plan plan, Zone zone = kZone, uint64_t chunk_bytes = kChunk) {
  Made made;
  made.ok = make_plan_index(std::move(plan), zone, chunk_bytes, &made.index, &made.why);
  return made;
}

// Two transient tensors, one of two chunks and one small, used by one op each.
plan::Plan small_plan() {
  plan::Plan plan;
  plan.chunk_bytes = kChunk;
  plan.slab_bytes = 2 * 512;
  plan.tensors.resize(3);
  plan.tensors[0].size = plan.tensors[1].size = 2 * kChunk;
  plan.tensors[0].chunk_count = plan.tensors[1].chunk_count = 2;
  plan.tensors[2].size = 512;
  const auto call = [&](plan::CallKind kind, uint32_t tensor, uint32_t vertex) {
    plan.calls.emplace_back();
    plan.calls.back().kind = kind;
    plan.calls.back().tensor = tensor;
    plan.calls.back().vertex = vertex;
  };
  const auto vertex = [&](VertexKind kind, uint32_t of_call, uint32_t tensor, std::vector<plan::Predecessor> before) {
    plan::Vertex made;
    made.kind = kind;
    made.call = of_call;
    made.tensor = tensor;
    made.predecessors = std::move(before);
    plan.order.push_back(static_cast<uint32_t>(plan.vertices.size()));
    plan.vertices.push_back(made);
  };
  for (const uint32_t tensor : {1u, 2u}) {
    plan.tensors[tensor].allocate_call = tensor - 1;
    plan.tensors[tensor].free_call = tensor + 2;
    call(plan::CallKind::allocate, tensor, plan::kNone);
  }
  call(plan::CallKind::op, plan::kNone, 0);
  plan.calls[2].accesses = {
      {0, trace::kAccessRead, 0, 0}, {1, trace::kAccessWrite, 0, 0}, {2, trace::kAccessWrite, 0, 0}};
  call(plan::CallKind::free, 1, 1);
  call(plan::CallKind::free, 2, 2);
  vertex(VertexKind::op, 2, plan::kNone, {});
  vertex(VertexKind::release, 3, 1, {});
  vertex(VertexKind::release, 4, 2, {});
  vertex(VertexKind::reload, plan::kNone, 0, {{1, plan::EdgeKind::memory, 0}});
  return plan;
}

TEST(PlanIndexTest, LaysTheRangesOfSeveralPlansBehindEachOther) {
  PlanIndex first;
  PlanIndex second;
  std::string why;
  ASSERT_TRUE(make_plan_index(small_plan(), kZone, kChunk, &first, &why, plan::Safety::trusted, 16 * kChunk)) << why;
  EXPECT_EQ(first.ranges.base, kZone.base + 16 * kChunk);
  EXPECT_EQ(first.ranges.bytes, 3 * kChunk) << "with the guard";
  ASSERT_TRUE(make_plan_index(small_plan(), kZone, kChunk, &second, &why, plan::Safety::trusted, 19 * kChunk)) << why;
  EXPECT_EQ(second.addresses[1], first.addresses[1] + 3 * kChunk);
  EXPECT_EQ(second.addresses[2], first.addresses[2]) << "small ones share a region";
  EXPECT_FALSE(make_plan_index(small_plan(), kZone, kChunk, &second, &why, plan::Safety::trusted, kChunk))
      << "the region of small ones is larger";
  EXPECT_FALSE(make_plan_index(small_plan(), kZone, kChunk, &second, &why, plan::Safety::trusted, 998 * kChunk));
}

TEST(PlanIndexTest, LaysTheOwnTensorsOutWithGuards) {
  const Made made = index_of(small_plan());
  ASSERT_TRUE(made.ok) << made.why;
  EXPECT_EQ(made.index.slab_bytes, kChunk) << "whole chunks";
  EXPECT_EQ(made.index.addresses, (std::vector<uint64_t>{0, kZone.base + 2 * kChunk, kZone.base}));
  EXPECT_EQ(made.index.persistent_count, 1u);
  EXPECT_EQ(made.index.last_call, 4u);
}

TEST(PlanIndexTest, TheZoneMustHoldAllOfThem) {
  // The slab and its guard, two chunks and their guard.
  EXPECT_TRUE(index_of(small_plan(), {kZone.base, 5 * kChunk}).ok);
  const Made made = index_of(small_plan(), {kZone.base, 5 * kChunk - 1});
  EXPECT_FALSE(made.ok);
  EXPECT_EQ(made.why, phrase<Cause::plan_above_addresses>());
}

TEST(PlanIndexTest, AReleaseFollowsWhatUsesItsTensorAndTransfersWaitThroughIt) {
  const Made made = index_of(small_plan());
  ASSERT_TRUE(made.ok);
  EXPECT_EQ(made.index.predecessors, (std::vector<uint32_t>{0, 1, 1, 1}));
  ASSERT_EQ(made.index.waits[3].size(), 1u) << "the reload takes the release's chunks";
  EXPECT_EQ(made.index.waits[3][0].vertex, 0u) << "so it waits on the device for the op";
  EXPECT_TRUE(made.index.waits[1].empty()) << "a release runs nothing";
}

// With audited safety a plan of audited launches alone is a trusted one; else aliases are what the plan says, and no
// other safety reads them.
TEST(PlanIndexTest, AliasesAreForAuditedSafetyAlone) {
  plan::Plan plan = small_plan();
  plan.calls[2].op = trace::OpKind::launch;
  plan.tensors[1].aliased = true;
  std::string why;
  for (const plan::Safety safety : {plan::Safety::strict, plan::Safety::audited, plan::Safety::trusted}) {
    for (const uint64_t audited : {0u, 7u}) {
      plan.calls[2].audited = audited;
      for (plan::OpAccess& access : plan.calls[2].accesses) access.mode = trace::kAccessRead | trace::kAccessWrite;
      PlanIndex index;
      ASSERT_TRUE(make_plan_index(plan, kZone, kChunk, &index, &why, safety)) << why;
      const bool safe = safety == plan::Safety::audited;
      EXPECT_EQ(index.as_trusted, safe && audited != 0);
      EXPECT_EQ(index.aliased, (std::vector<bool>{false, safe && audited == 0, false}));
      plan.calls[2].accesses[0].mode = trace::kAccessRead;  // it may leave without a copy
      PlanIndex clean;
      const bool allowed = safety == plan::Safety::trusted || (safe && audited != 0);
      EXPECT_EQ(make_plan_index(plan, kZone, kChunk, &clean, &why, safety), allowed);
    }
  }
}

// Its mapping is there for the next iteration's tensor, too, but where it comes back to other chunks.
TEST(PlanIndexTest, WhatComesBackToItsChunksKeepsItsMapping) {
  for (const bool elsewhere : {false, true}) {
    plan::Plan plan = small_plan();
    plan.chunk_count = 6;
    plan.placements = {{{0, 1}}, {{2, 3}}, {{4, 5}}};
    plan.tensors[0].home = 0;
    plan.tensors[1].home = 1;
    plan.vertices[0].acquires = {{1, 1}};
    for (const VertexKind kind : {VertexKind::offload, VertexKind::reload}) {
      plan::Vertex made;
      made.kind = kind;
      made.tensor = 1;
      if (kind == VertexKind::reload) made.acquires = {{1, elsewhere ? 2u : 1u}};
      made.predecessors = {{kind == VertexKind::offload ? 0u : 4u, plan::EdgeKind::memory, 0}};
      plan.order.push_back(static_cast<uint32_t>(plan.vertices.size()));
      plan.vertices.push_back(made);
    }
    const Made made = index_of(plan);
    ASSERT_TRUE(made.ok) << made.why;
    EXPECT_EQ(made.index.keeps_mapping[1], !elsewhere);
    EXPECT_FALSE(made.index.keeps_mapping[0]) << "it lives on";
  }
}

// Between the allocation of tensor 1, which shares its chunks, and the op that touches it first.
plan::Plan with_work_between(trace::OpKind op, uint64_t audited) {
  plan::Plan plan = small_plan();
  plan.chunk_count = 2;
  plan.placements = {{{0, 1}}};
  plan.tensors[0].home = plan.tensors[1].home = 0;
  plan.vertices[0].acquires = {{1, 0}};
  const auto later = [](uint32_t* call) { *call += *call != plan::kNone && *call > 0 ? 1 : 0; };
  for (plan::Tensor& tensor : plan.tensors) {
    later(&tensor.allocate_call);
    later(&tensor.free_call);
  }
  for (plan::Vertex& vertex : plan.vertices) later(&vertex.call);
  plan::Call call;
  call.op = op;
  call.audited = audited;
  call.vertex = static_cast<uint32_t>(plan.vertices.size());
  plan.calls.insert(plan.calls.begin() + 1, call);
  plan::Vertex vertex;
  vertex.kind = VertexKind::op;
  vertex.call = 1;
  plan.order.insert(plan.order.begin(), call.vertex);
  plan.vertices.push_back(vertex);
  return plan;
}

TEST(PlanIndexTest, WorkThatTouchesItsOperandsAloneTakesNoMapping) {
  const auto keeps = [](trace::OpKind op, uint64_t audited) {
    const Made made = index_of(with_work_between(op, audited));
    EXPECT_TRUE(made.ok) << made.why;
    return made.ok && made.index.keeps_mapping[1];
  };
  EXPECT_TRUE(keeps(trace::OpKind::memset, 0));
  EXPECT_TRUE(keeps(trace::OpKind::launch, 7)) << "it is audited";
  EXPECT_FALSE(keeps(trace::OpKind::launch, 0)) << "it may have the address of tensor 1";
}

TEST(PlanIndexTest, RefusesWhatItCannotEnforce) {
  const auto why = [](plan::Plan plan) {
    const Made made = index_of(std::move(plan));
    EXPECT_FALSE(made.ok);
    return made.why;
  };
  EXPECT_TRUE(has(index_of(small_plan(), kZone, 2 * kChunk).why, "chunks of 4096 bytes"));
  plan::Plan devices = small_plan();
  devices.device_chunks = {1, 1};
  EXPECT_TRUE(has(why(devices), "2 devices"));
  plan::Plan recomputing = small_plan();
  recomputing.calls[2].recompute_of = 2;
  PlanIndex index;
  std::string strictly;
  EXPECT_FALSE(make_plan_index(recomputing, kZone, kChunk, &index, &strictly, plan::Safety::strict));
  EXPECT_TRUE(has(strictly, "recompute"));
  plan::Plan reordered = small_plan();
  reordered.vertices[0].predecessors = {{1, plan::EdgeKind::memory, 0}};
  reordered.order = {1, 0, 2, 3};
  EXPECT_TRUE(has(why(reordered), "reorders"));
  plan::Plan split = small_plan();
  split.tensors[0].part_of = 0;
  EXPECT_TRUE(has(why(split), "splits"));
  plan::Plan empty;
  empty.chunk_bytes = kChunk;
  EXPECT_TRUE(has(why(empty), "no calls"));
}

TEST(PlanIndexTest, SmallTensorsThatAreAliveTogetherMustNotOverlap) {
  plan::Plan plan = small_plan();
  plan.tensors[1].chunk_count = 0;
  plan.tensors[1].size = 512;
  plan.tensors[1].slab_offset = 512;
  EXPECT_TRUE(index_of(plan).ok);
  plan.tensors[1].slab_offset = 511;
  EXPECT_FALSE(index_of(plan).ok) << "it reaches into the one before";
  plan.tensors[1].slab_offset = 0;
  plan.tensors[2].slab_offset = 511;
  EXPECT_FALSE(index_of(plan).ok) << "and the other way round";
  plan.tensors[1].slab_offset = 513;
  plan.tensors[2].slab_offset = 0;
  EXPECT_FALSE(index_of(plan).ok) << "beyond the slab";
  plan.slab_bytes = 1025;
  EXPECT_TRUE(index_of(plan).ok);
  // One after the other they may share a place.
  std::swap(plan.calls[1], plan.calls[3]);
  plan.tensors[1].slab_offset = 0;
  std::swap(plan.calls[2], plan.calls[3]);
  EXPECT_TRUE(index_of(plan).ok) << index_of(plan).why;
}

using Waits = std::set<std::pair<uint32_t, uint32_t>>;

// Backwards from `vertex` over releases, by the definition.
void scan_waits(const plan::Plan& plan, uint32_t vertex, uint32_t distance, int depth, Waits* found) {
  for (const plan::Predecessor& before : plan.vertices[vertex].predecessors) {
    if (plan.vertices[before.vertex].kind != VertexKind::release) {
      found->emplace(before.vertex, distance + before.distance);
    } else if (depth < 8) {
      scan_waits(plan, before.vertex, distance + before.distance, depth + 1, found);
    }
  }
}

bool same_stream(const plan::Plan& plan, uint32_t a, uint32_t b) {
  const plan::Vertex& first = plan.vertices[a];
  const plan::Vertex& second = plan.vertices[b];
  if (first.kind != second.kind) return false;
  return first.kind != VertexKind::op || plan.calls[first.call].stream == plan.calls[second.call].stream;
}

TEST(PlanIndexPropertyTest, LookUpsEqualAScanOfThePlan) {
  EXPECT_TRUE(rc::check("every table is that of a scan", [] {
    const plan::Plan original = testing::RandomPlan(kChunk).take();
    const Made made = index_of(original);
    if (!made.ok) RC_LOG() << made.why;
    RC_ASSERT(made.ok);
    const PlanIndex& index = made.index;
    const plan::Plan& plan = index.plan;
    for (uint32_t i = 0; i < plan.order.size(); ++i) RC_ASSERT(index.rank[plan.order[i]] == i);
    std::vector<bool> waited_for(plan.vertices.size(), false);
    std::multiset<std::tuple<uint32_t, uint32_t, uint32_t>> forward;
    std::multiset<std::tuple<uint32_t, uint32_t, uint32_t>> backward;
    for (uint32_t v = 0; v < plan.vertices.size(); ++v) {
      const plan::Vertex& vertex = plan.vertices[v];
      const auto of = [&](bool same) {
        return static_cast<uint32_t>(
            std::count_if(vertex.predecessors.begin(), vertex.predecessors.end(),
                          [&](const plan::Predecessor& before) { return (before.distance == 0) == same; }));
      };
      RC_ASSERT(index.predecessors[v] == of(true));
      RC_ASSERT(index.cyclic[v] == of(false));
      for (const plan::Predecessor& before : vertex.predecessors) backward.emplace(before.vertex, v, before.distance);
      for (const Edge& edge : index.successors[v]) forward.emplace(v, edge.vertex, edge.distance);
      RC_ASSERT((index.lanes[v] == LaneKind::compute) == (vertex.kind == VertexKind::op));
      RC_ASSERT((index.lanes[v] == LaneKind::to_device) == (vertex.kind == VertexKind::reload));
      RC_ASSERT((index.lanes[v] == LaneKind::to_host) == (vertex.kind == VertexKind::offload));
      Waits expected;
      if (vertex.kind != VertexKind::release) scan_waits(plan, v, 0, 0, &expected);
      const auto same = [&](const auto& wait) { return same_stream(plan, wait.first, v); };
      if (vertex.kind != VertexKind::op) std::erase_if(expected, same);  // the program may use other streams by now
      Waits found;
      for (const Edge& edge : index.waits[v]) RC_ASSERT(found.emplace(edge.vertex, edge.distance).second);
      RC_ASSERT(found == expected);
      std::erase_if(expected, same);
      for (const auto& wait : expected) waited_for[wait.first] = true;
      // What touches a tensor comes before its release, and no edge of the plan is lost.
      for (uint32_t r = 0; r < plan.vertices.size(); ++r) {
        if (plan.vertices[r].kind != VertexKind::release || r == v) continue;
        const uint32_t tensor = plan.vertices[r].tensor;
        bool uses = vertex.kind != VertexKind::release && vertex.kind != VertexKind::op && vertex.tensor == tensor;
        if (vertex.kind == VertexKind::op) {
          for (const plan::OpAccess& access : plan.calls[vertex.call].accesses) uses = uses || access.tensor == tensor;
        }
        const auto& before = plan.vertices[r].predecessors;
        const auto times = std::count_if(before.begin(), before.end(),
                                         [&](const plan::Predecessor& p) { return p.vertex == v && p.distance == 0; });
        RC_ASSERT(!uses || times == 1);
      }
      for (size_t i = 0; i < original.vertices[v].predecessors.size(); ++i) {
        RC_ASSERT(vertex.predecessors[i].vertex == original.vertices[v].predecessors[i].vertex);
      }
    }
    RC_ASSERT(forward == backward);
    RC_ASSERT(index.waited_for == waited_for);
    std::vector<std::pair<uint64_t, uint64_t>> ranges = {{kZone.base, kZone.base + index.slab_bytes}};
    for (uint32_t t = 0; t < plan.tensors.size(); ++t) {
      const bool offloaded = std::any_of(plan.vertices.begin(), plan.vertices.end(), [&](const plan::Vertex& vertex) {
        return vertex.kind == VertexKind::offload && vertex.tensor == t;
      });
      RC_ASSERT(index.offloaded[t] == offloaded);
      const plan::Tensor& tensor = plan.tensors[t];
      if (tensor.allocate_call == plan::kNone) {
        RC_ASSERT(index.addresses[t] == 0u);
      } else if (tensor.chunk_count == 0) {
        RC_ASSERT(index.addresses[t] == kZone.base + tensor.slab_offset);
        RC_ASSERT(index.addresses[t] + tensor.size <= kZone.base + index.slab_bytes);
      } else {
        ranges.emplace_back(index.addresses[t], index.addresses[t] + tensor.chunk_count * kChunk);
      }
    }
    std::sort(ranges.begin(), ranges.end());
    for (size_t i = 0; i < ranges.size(); ++i) {
      RC_ASSERT(ranges[i].first % kChunk == 0 && ranges[i].second + kChunk <= kZone.base + kZone.bytes);
      if (i > 0) RC_ASSERT(ranges[i].first >= ranges[i - 1].second + kChunk);
    }
  }));
}

}  // namespace
}  // namespace reprise::replay
