// The verifier against planted faults: what it lets pass computes the right thing in every order tried, and what it
// must see, it sees.
#include <rapidcheck.h>

#include "analyzer/planner/aliases.h"
#include "analyzer/verify/reach.h"
#include "analyzer/verify/unrolled.h"
#include "analyzer/verify/verify.h"
#include "tests/property/cases.h"
#include "tests/property/interpreter.h"
#include "tests/support/test.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

// Is there a path between two vertices, `distance` iterations apart? By search; no code of the verifier.
bool has_path(const plan::Plan& plan, uint32_t from, uint32_t to, uint8_t distance) {
  const size_t count = plan.vertices.size();
  std::vector<uint8_t> seen(count * 2, 0);
  std::vector<size_t> queue = {to};  // node: iterations back * count + vertex
  for (size_t next = 0; next < queue.size(); ++next) {
    const size_t back = queue[next] / count;
    for (const plan::Predecessor& p : plan.vertices[queue[next] % count].predecessors) {
      const size_t total = back + p.distance;
      if (total > 1 || seen[total * count + p.vertex] != 0) continue;
      seen[total * count + p.vertex] = 1;
      queue.push_back(total * count + p.vertex);
    }
  }
  return seen[distance * count + from] != 0;
}

std::string first_difference(const plan::Plan& plan, std::mt19937& random) {
  Interpreter interpreter(plan, 3);
  for (const Strategy& strategy : strategies(plan, random)) {
    const std::string difference = interpreter.compare(strategy.choose);
    if (!difference.empty()) return strategy.name + ": " + difference;
  }
  return "";
}

// Whatever the verifier accepts must work.
void check_sound(const plan::Plan& plan, std::mt19937& random, const char* fault) {
  if (!verify(plan).ok()) return;
  const std::string difference = first_difference(plan, random);
  if (!difference.empty()) RC_FAIL(std::string(fault) + " passed, but " + difference + "\n" + plan::to_text(plan));
}

bool has_offload(const plan::Plan& plan, uint32_t tensor) {
  return std::any_of(plan.vertices.begin(), plan.vertices.end(),
                     [&](const plan::Vertex& v) { return v.kind == plan::VertexKind::offload && v.tensor == tensor; });
}

// The planner and the verifier agree, without a common line of code, on which tensors may stay mapped: when one audited
// launch is none after all, the plan is refused just where the planner would have left an alias out.
TEST(VerifierProperty, AliasesPassAuditedLaunchesAlone) {
  int refused = 0;
  EXPECT_TRUE(rc::check("launches that are not audited", [&] {
    plan::Plan plan = any_case({}).plan;
    for (plan::Call& call : plan.calls) {
      if (call.kind == plan::CallKind::op) call.op = trace::OpKind::launch;
      if (call.kind == plan::CallKind::op && *rc::gen::inRange(0, 8) != 0) call.audited = 1;
    }
    set_aliases(plan);
    RC_ASSERT(verify(plan).ok());
    for (size_t call = 0; call < plan.calls.size(); ++call) {
      if (plan.calls[call].audited == 0) continue;
      plan::Plan broken = plan;
      broken.calls[call].audited = 0;
      plan::Plan anew = broken;
      const bool any = plan.calls.end() != std::find_if(plan.calls.begin(), plan.calls.end(), [&](const auto& other) {
                         return other.audited != 0 && &other != &plan.calls[call];
                       });
      if (!any) continue;
      set_aliases(anew);
      bool same = true;
      for (size_t t = 0; t < plan.tensors.size(); ++t)
        same = same && plan.tensors[t].aliased == anew.tensors[t].aliased;
      RC_ASSERT(verify(broken).ok() == same);
      refused += same ? 0 : 1;
    }
  }));
  EXPECT_GT(refused, 0);
}

TEST(VerifierProperty, EveryMemoryEdgeIsNeededOrImplied) {
  EXPECT_TRUE(rc::check("dropped memory edges", [] {
    const Case item = any_case({.split_tensors = *rc::gen::arbitrary<bool>()});
    int refused = 0;
    for (uint32_t v = 0; v < item.plan.vertices.size(); ++v) {
      const std::vector<plan::Predecessor>& edges = item.plan.vertices[v].predecessors;
      for (size_t e = 0; e < edges.size(); ++e) {
        if (edges[e].kind != plan::EdgeKind::memory) continue;
        plan::Plan broken = item.plan;
        broken.vertices[v].predecessors.erase(broken.vertices[v].predecessors.begin() + static_cast<std::ptrdiff_t>(e));
        if (!verify(broken).ok()) {
          ++refused;
          continue;
        }
        const plan::Vertex& from = item.plan.vertices[edges[e].vertex];
        const bool clean = from.kind == plan::VertexKind::release && has_offload(item.plan, from.tensor);
        if (!clean && !has_path(broken, edges[e].vertex, v, edges[e].distance)) {
          RC_FAIL("edge " + std::to_string(edges[e].vertex) + " -> " + std::to_string(v) +
                  " may go, says the verifier\n" + plan::to_text(item.plan));
        }
      }
    }
    RC_CLASSIFY(refused > 0, "has needed edges");
  }));
}

// By search over the two iterations; no code of the verifier but the numbering of its nodes.
std::vector<std::vector<uint8_t>> reachable(const Unrolled& graph) {
  std::vector<std::vector<uint8_t>> result(graph.size(), std::vector<uint8_t>(graph.size(), 0));
  for (uint32_t to = 0; to < graph.size(); ++to) {
    const plan::Plan& plan = graph.plan();
    for (const plan::Predecessor& p : plan.vertices[graph.vertex_of(to)].predecessors) {
      if (p.distance > graph.round_of(to)) continue;
      const uint32_t before = graph.node(p.vertex, graph.round_of(to) - p.distance);
      result[to][before] = 1;
      for (uint32_t from = 0; from < graph.size(); ++from) result[to][from] |= result[before][from];
    }
  }
  return result;
}

TEST(VerifierProperty, ReachabilityIsThatOfASearch) {
  EXPECT_TRUE(rc::check("paths in two iterations", [] {
    const Case item = any_case({.split_tensors = *rc::gen::arbitrary<bool>()});
    const Unrolled graph(item.plan);
    const std::vector<std::vector<uint8_t>> expected = reachable(graph);
    Reach reach(graph);
    for (uint32_t to = 0; to < graph.size(); ++to) {
      std::vector<Reach::Question> yes;
      for (uint32_t from = 0; from < to; ++from) {
        if (reach.quickly(from, to)) RC_ASSERT(expected[to][from] != 0);
        if (expected[to][from] != 0) yes.push_back({from, to, 0});
        if (expected[to][from] != 0 || from % 7 != to % 7) continue;
        std::vector<Reach::Question> no = {{from, to, 0}};
        RC_ASSERT(reach.first_without(no) != nullptr);
      }
      RC_ASSERT(reach.first_without(yes) == nullptr);
    }
  }));
}

TEST(VerifierProperty, WhatPassesWithoutAnEdgeIsRight) {
  EXPECT_TRUE(rc::check("dropped edges of any kind", [] {
    const Case item = any_case({.split_tensors = *rc::gen::arbitrary<bool>()});
    std::mt19937 random(*rc::gen::arbitrary<uint32_t>());
    for (int i = 0; i < 20; ++i) {
      plan::Plan broken = item.plan;
      std::vector<plan::Predecessor>& edges = broken.vertices[random() % broken.vertices.size()].predecessors;
      if (edges.empty()) continue;
      edges.erase(edges.begin() + static_cast<std::ptrdiff_t>(random() % edges.size()));
      check_sound(broken, random, "a dropped edge");
    }
  }));
}

// Each vertex waits for what its predecessor waits for, but not for the predecessor itself.
TEST(VerifierProperty, SkippedPredecessorsAreCaught) {
  EXPECT_TRUE(rc::check("edges to the predecessors of a predecessor", [] {
    const Case item = any_case({.split_tensors = *rc::gen::arbitrary<bool>()});
    std::mt19937 random(*rc::gen::arbitrary<uint32_t>());
    int refused = 0;
    for (uint32_t v = 0; v < item.plan.vertices.size(); ++v) {
      const std::vector<plan::Predecessor>& edges = item.plan.vertices[v].predecessors;
      for (size_t e = 0; e < edges.size(); ++e) {
        plan::Plan broken = item.plan;
        std::vector<plan::Predecessor>& list = broken.vertices[v].predecessors;
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(e));
        for (const plan::Predecessor& further : item.plan.vertices[edges[e].vertex].predecessors) {
          const int distance = further.distance + edges[e].distance;
          if (distance <= 1) list.push_back({further.vertex, further.kind, static_cast<uint8_t>(distance)});
        }
        if (!verify(broken).ok()) {
          ++refused;
        } else if (edges[e].kind == plan::EdgeKind::memory || random() % 8 == 0) {
          check_sound(broken, random, "a skipped predecessor");
        }
      }
    }
    RC_CLASSIFY(refused > 0, "has needed edges");
  }));
}

// A reload that does not wait for one of its predecessors.
TEST(VerifierProperty, EarlyReloadsAreCaught) {
  EXPECT_TRUE(rc::check("reloads without one edge", [] {
    const Case item = any_case({.split_tensors = *rc::gen::arbitrary<bool>()});
    for (uint32_t v = 0; v < item.plan.vertices.size(); ++v) {
      const plan::Vertex& vertex = item.plan.vertices[v];
      if (vertex.kind != plan::VertexKind::reload) continue;
      for (size_t e = 0; e < vertex.predecessors.size(); ++e) {
        plan::Plan broken = item.plan;
        std::vector<plan::Predecessor>& list = broken.vertices[v].predecessors;
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(e));
        const plan::Predecessor& gone = vertex.predecessors[e];
        const plan::Vertex& from = item.plan.vertices[gone.vertex];
        // A free that an offload has made superfluous, and an edge by which a policy delays a reload: not needed.
        const bool clean = from.kind == plan::VertexKind::release && has_offload(item.plan, from.tensor);
        if (clean || gone.kind == plan::EdgeKind::program || !verify(broken).ok()) continue;
        if (!has_path(broken, gone.vertex, v, gone.distance)) {
          RC_FAIL("reload " + std::to_string(v) + " need not wait for " + std::to_string(gone.vertex) +
                  ", says the verifier\n" + plan::to_text(item.plan));
        }
      }
    }
  }));
}

// What a tensor acquires is less than it has: two tensors share a chunk that should have been two.
TEST(VerifierProperty, ShrunkMemoryIsCaught) {
  EXPECT_TRUE(rc::check("two chunks become one", [] {
    const Case item = any_case({.split_tensors = *rc::gen::arbitrary<bool>()});
    RC_PRE(item.plan.chunk_count > 1);
    std::mt19937 random(*rc::gen::arbitrary<uint32_t>());
    const uint32_t last = item.plan.chunk_count - 1;
    for (uint32_t other = 0; other < last; ++other) {
      plan::Plan broken = item.plan;
      bool twice = false;
      for (plan::Placement& placement : broken.placements) {
        const bool has_other =
            std::find(placement.chunks.begin(), placement.chunks.end(), other) != placement.chunks.end();
        for (uint32_t& chunk : placement.chunks) {
          twice = twice || (chunk == last && has_other);
          if (chunk == last) chunk = other;
        }
      }
      --broken.chunk_count;
      if (twice) {
        RC_ASSERT(!verify(broken).ok());
      } else {
        check_sound(broken, random, "two chunks made one");
      }
    }
  }));
}

// Small changes anywhere: what passes must still be right.
TEST(VerifierProperty, ChangesOfAllKindsAreCaught) {
  EXPECT_TRUE(rc::check("one change", [] {
    const Case item = any_case({.split_tensors = *rc::gen::arbitrary<bool>()});
    RC_PRE(!item.plan.vertices.empty() && !item.plan.tensors.empty());
    std::mt19937 random(*rc::gen::arbitrary<uint32_t>());
    const auto any_of = [&](auto& list) -> auto& { return list[random() % list.size()]; };
    for (int i = 0; i < 40; ++i) {
      plan::Plan broken = item.plan;
      plan::Vertex& vertex = any_of(broken.vertices);
      const char* what = "";
      uint32_t old = 0;
      switch (random() % 6) {
        case 0:
          if (vertex.predecessors.empty()) continue;
          any_of(vertex.predecessors).distance ^= 1;
          what = "a predecessor in another iteration";
          break;
        case 1:
          if (vertex.acquires.empty()) continue;
          vertex.acquires.pop_back();
          what = "memory that is not taken";
          break;
        case 2:
          if (vertex.predecessors.empty()) continue;
          any_of(vertex.predecessors).vertex = static_cast<uint32_t>(random() % broken.vertices.size());
          what = "another predecessor";
          break;
        case 3:
          if (vertex.kind != plan::VertexKind::offload) continue;
          old = vertex.tensor;
          vertex.tensor = static_cast<uint32_t>(random() % broken.tensors.size());
          broken.offload_bytes += broken.tensors[vertex.tensor].size - item.plan.tensors[old].size;
          what = "a copy of another tensor";
          break;
        case 4:
          if (vertex.acquires.empty() || broken.placements.empty()) continue;
          any_of(vertex.acquires).placement = static_cast<uint32_t>(random() % broken.placements.size());
          what = "another placement";
          break;
        default: {
          plan::Tensor& tensor = any_of(broken.tensors);
          if (tensor.chunk_count != 0 || tensor.allocate_call == plan::kNone || tensor.slab_offset < 512) continue;
          tensor.slab_offset -= 512;
          what = "other bytes of the slab";
          break;
        }
      }
      check_sound(broken, random, what);
    }
  }));
}

TEST(VerifierProperty, EarlyTransfersAreCaught) {
  EXPECT_TRUE(rc::check("transfers without predecessors", [] {
    const Case item = any_case({.split_tensors = *rc::gen::arbitrary<bool>()});
    std::mt19937 random(*rc::gen::arbitrary<uint32_t>());
    for (uint32_t v = 0; v < item.plan.vertices.size(); ++v) {
      const plan::Vertex& vertex = item.plan.vertices[v];
      if (vertex.kind == plan::VertexKind::op || vertex.predecessors.empty()) continue;
      plan::Plan broken = item.plan;
      broken.vertices[v].predecessors.clear();
      check_sound(broken, random, "an early transfer");
    }
  }));
}

TEST(VerifierProperty, MovedChunksAreCaught) {
  EXPECT_TRUE(rc::check("a placement with another chunk", [] {
    const Case item = any_case({.split_tensors = *rc::gen::arbitrary<bool>()});
    RC_PRE(!item.plan.placements.empty());
    std::mt19937 random(*rc::gen::arbitrary<uint32_t>());
    for (int i = 0; i < 10; ++i) {
      plan::Plan broken = item.plan;
      std::vector<uint32_t>& chunks = broken.placements[random() % broken.placements.size()].chunks;
      const auto other = static_cast<uint32_t>(random() % broken.chunk_count);
      if (std::find(chunks.begin(), chunks.end(), other) != chunks.end()) continue;
      chunks[random() % chunks.size()] = other;
      check_sound(broken, random, "a moved chunk");
    }
    plan::Plan fewer = item.plan;
    --fewer.chunk_count;
    RC_ASSERT(!verify(fewer).ok());
  }));
}

TEST(VerifierProperty, WrongStartStatesAreCaught) {
  EXPECT_TRUE(rc::check("flipped start states", [] {
    const Case item = any_case({.split_tensors = *rc::gen::arbitrary<bool>()});
    std::mt19937 random(*rc::gen::arbitrary<uint32_t>());
    for (uint32_t t = 0; t < item.plan.tensors.size(); ++t) {
      plan::Plan broken = item.plan;
      plan::Tensor& tensor = broken.tensors[t];
      if (tensor.home == plan::kNone || tensor.allocate_call != plan::kNone) continue;
      if (random() % 2 == 0) {
        tensor.resident_at_start = !tensor.resident_at_start;
        tensor.clean_at_start = false;
      } else {
        tensor.clean_at_start = tensor.resident_at_start && !tensor.clean_at_start;
      }
      check_sound(broken, random, "another start state");
    }
  }));
}

TEST(VerifierProperty, SwappedOrderIsCaught) {
  EXPECT_TRUE(rc::check("an order against an edge", [] {
    const Case item = any_case({.split_tensors = *rc::gen::arbitrary<bool>()});
    for (uint32_t v = 0; v < item.plan.vertices.size(); ++v) {
      for (const plan::Predecessor& p : item.plan.vertices[v].predecessors) {
        if (p.distance != 0) continue;
        plan::Plan broken = item.plan;
        std::swap(*std::find(broken.order.begin(), broken.order.end(), v),
                  *std::find(broken.order.begin(), broken.order.end(), p.vertex));
        RC_ASSERT(!verify(broken).ok());
      }
    }
  }));
}

// An edge from a later call of the program to an earlier one can block it for ever.
TEST(VerifierProperty, WaitingForALaterCallIsCaught) {
  EXPECT_TRUE(rc::check("edges against the program's order", [] {
    const Case item = any_case({.split_tensors = *rc::gen::arbitrary<bool>()});
    std::mt19937 random(*rc::gen::arbitrary<uint32_t>());
    const auto v = static_cast<uint32_t>(random() % item.plan.vertices.size());
    const auto w = static_cast<uint32_t>(random() % item.plan.vertices.size());
    const uint32_t call_v = item.plan.vertices[v].call;
    const uint32_t call_w = item.plan.vertices[w].call;
    RC_PRE(call_v != plan::kNone && call_w != plan::kNone && call_v < call_w);
    plan::Plan broken = item.plan;
    broken.vertices[v].predecessors.push_back({w, plan::EdgeKind::program, 0});
    // Where the program has waited in between both would block for ever; else the plan reorders, and says so.
    const bool refused = !verify(broken).ok();
    RC_ASSERT(refused || plan::reorders(broken));
    RC_ASSERT(refused || broken.calls[call_w].waited <= call_v);
  }));
}

}  // namespace
}  // namespace reprise::analyzer
