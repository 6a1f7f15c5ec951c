// Which vertices may be issued: exactly those whose predecessors are issued and whose call the program has made, for
// random plans and random orders, over iterations that overlap.
#include "replay/progress/progress.h"

#include <rapidcheck.h>

#include "tests/support/test.h"
#include "tests/unit/replay/plan/random_plan.h"

namespace reprise::replay {
namespace {

using plan::VertexKind;
constexpr uint64_t kChunk = 4096;
using Key = std::pair<uint64_t, uint32_t>;  // iteration, vertex

PlanIndex index_of(plan::Plan plan) {
  PlanIndex index;
  std::string why;
  EXPECT_TRUE(make_plan_index(std::move(plan), {uint64_t{1} << 40, 1000 * kChunk}, kChunk, &index, &why)) << why;
  return index;
}

std::vector<Key> ready(Progress& progress, LaneKind kind) {
  std::vector<Key> found;
  progress.find_ready(kind, [&](Instance instance) {
    found.emplace_back(instance.iteration, instance.vertex);
    return false;
  });
  return found;
}

// The definition, slow.
class Model {
 public:
  Model(const PlanIndex& index, uint64_t first) : index_(index), first_(first), opened(first) {}

  bool call(uint32_t vertex) const {
    return index_.lanes[vertex] == LaneKind::compute || index_.lanes[vertex] == LaneKind::none;
  }
  bool ready(uint64_t iteration, uint32_t vertex) const {
    const Key key{iteration, vertex};
    if (iteration >= opened || issued.count(key) != 0 || taken.count(key) != 0) return false;
    if (call(vertex) && submitted.count(key) == 0) return false;
    for (const plan::Predecessor& before : index_.plan.vertices[vertex].predecessors) {
      if (iteration < first_ + before.distance) continue;
      if (issued.count({iteration - before.distance, before.vertex}) == 0) return false;
    }
    return true;
  }
  std::vector<Key> ready(LaneKind kind) const {
    std::vector<Key> found;
    for (uint64_t iteration = first_; iteration < opened; ++iteration) {
      for (const uint32_t vertex : index_.plan.order) {
        if (index_.lanes[vertex] == kind && ready(iteration, vertex)) found.emplace_back(iteration, vertex);
      }
    }
    return found;
  }
  bool finished(uint64_t iteration) const {
    if (iteration >= opened) return false;
    for (uint32_t v = 0; v < index_.plan.vertices.size(); ++v) {
      if (issued.count({iteration, v}) == 0) return false;
    }
    return true;
  }

 private:
  const PlanIndex& index_;
  uint64_t first_;

 public:
  uint64_t opened;
  std::set<Key> issued;
  std::set<Key> submitted;
  std::set<Key> taken;
};

TEST(ProgressPropertyTest, AVertexIsReadyExactlyWhenAllItWaitsForIsIssued) {
  EXPECT_TRUE(rc::check("ready is what the definition says", [] {
    const PlanIndex index = index_of(testing::RandomPlan(kChunk).take());
    const auto first = testing::uniform<uint64_t>(0, 5);
    Progress progress;
    if (testing::one_in(2)) {  // what an earlier activation left behind does not count
      progress.begin(&index, 40);
      progress.open(40);
      for (const Key& key : ready(progress, LaneKind::to_host)) progress.issued({key.first, key.second}, {1, 1});
    }
    progress.begin(&index, first);
    Model model(index, first);
    std::deque<LogEntry> entries;
    std::map<Key, LogEntry*> by_key;
    std::map<Key, uint64_t> positions;
    uint64_t next_call = 0;  // over all iterations
    const int steps = testing::uniform(10, 150);
    for (int step = 0; step < steps; ++step) {
      const int what = testing::uniform(0, 6);
      if (what == 0) {
        const bool may = model.opened < first + 2 || model.finished(model.opened - 2);
        RC_ASSERT(progress.open(model.opened) == may);
        if (may) ++model.opened;
        if (model.opened > first) RC_ASSERT(progress.open(model.opened - 1));
      } else if (what == 1) {
        const uint64_t iteration = first + next_call / index.plan.calls.size();
        if (iteration >= model.opened) continue;
        const plan::Call& call = index.plan.calls[next_call++ % index.plan.calls.size()];
        if (call.vertex == plan::kNone) continue;
        entries.emplace_back();
        const Key key{iteration, call.vertex};
        progress.submitted({iteration, call.vertex}, &entries.back());
        RC_ASSERT(progress.entry({iteration, call.vertex}) == &entries.back());
        model.submitted.insert(key);
        by_key[key] = &entries.back();
      } else {
        const auto kind = static_cast<LaneKind>(testing::uniform(0, kLaneKinds + 1));
        std::vector<Key> candidates = model.ready(kind);
        if (candidates.empty() && !model.taken.empty()) candidates.assign(model.taken.begin(), model.taken.end());
        if (candidates.empty()) continue;
        const Key key = testing::one_of(candidates);
        if (model.taken.count(key) == 0 && testing::one_in(4)) {
          progress.taken({key.first, key.second});
          model.taken.insert(key);
        } else {
          positions[key] = static_cast<uint64_t>(step) + 1;
          progress.issued({key.first, key.second}, {7, positions[key]});
          model.taken.erase(key);
          model.issued.insert(key);
        }
      }
      uint64_t waiting = 0;
      for (const Key& key : model.submitted) waiting += model.issued.count(key) == 0 ? 1u : 0u;
      RC_ASSERT(progress.unissued_submitted() == waiting);
      RC_ASSERT(progress.next_open() == model.opened);
      for (int kind = 0; kind <= kLaneKinds; ++kind) {
        RC_ASSERT(ready(progress, static_cast<LaneKind>(kind)) == model.ready(static_cast<LaneKind>(kind)));
      }
      const uint64_t oldest = model.opened > first + 2 ? model.opened - 2 : first;
      for (uint64_t iteration = oldest; iteration < model.opened; ++iteration) {
        RC_ASSERT(progress.is_open(iteration));
        RC_ASSERT(progress.finished(iteration) == model.finished(iteration));
        bool any = false;
        for (uint32_t v = 0; v < index.plan.vertices.size(); ++v) {
          any = any || model.submitted.count({iteration, v}) != 0;
          const auto position = positions.find({iteration, v});
          if (position != positions.end()) RC_ASSERT(progress.use({iteration, v}).position == position->second);
          const bool held = model.submitted.count({iteration, v}) != 0 && model.issued.count({iteration, v}) == 0;
          RC_ASSERT(progress.entry({iteration, v}) == (held ? by_key[{iteration, v}] : nullptr));
        }
        RC_ASSERT(progress.has_submitted(iteration) == any);
      }
      RC_ASSERT(!progress.is_open(model.opened) && !progress.finished(model.opened));
    }
  }));
}

// `count` transfers, each after the one before; the first of an iteration after the last of the one before.
PlanIndex chain(uint32_t count) {
  plan::Plan plan;
  plan.chunk_bytes = kChunk;
  plan.tensors.resize(1);
  plan.tensors[0].size = kChunk;
  plan.tensors[0].chunk_count = 1;
  plan.calls.resize(1);
  plan.calls[0].vertex = count;
  for (uint32_t v = 0; v <= count; ++v) {
    plan::Vertex vertex;
    vertex.kind = v == count ? VertexKind::op : VertexKind::reload;
    vertex.tensor = v == count ? plan::kNone : 0;
    vertex.call = v == count ? 0 : plan::kNone;
    if (v > 0) vertex.predecessors.push_back({v - 1, plan::EdgeKind::data, 0});
    if (v == 0) vertex.predecessors.push_back({count, plan::EdgeKind::data, 1});
    plan.vertices.push_back(vertex);
    plan.order.push_back(v);
  }
  return index_of(std::move(plan));
}

// More than 64 vertices, so that ready ones lie in several words.
TEST(ProgressTest, AChainGoesOneByOneThroughIterations) {
  const PlanIndex index = chain(130);
  Progress progress;
  progress.begin(&index, 3);
  LogEntry entry;
  for (uint64_t iteration = 3; iteration < 8; ++iteration) {
    ASSERT_TRUE(progress.open(iteration));
    for (uint32_t v = 0; v < 130; ++v) {
      ASSERT_EQ(ready(progress, LaneKind::to_device), (std::vector<Key>{{iteration, v}}));
      progress.issued({iteration, v}, {0, v});
    }
    EXPECT_TRUE(ready(progress, LaneKind::compute).empty()) << "the program has not called";
    progress.submitted({iteration, 130}, &entry);
    ASSERT_EQ(ready(progress, LaneKind::compute), (std::vector<Key>{{iteration, 130}}));
    progress.issued({iteration, 130}, {2, iteration});
    EXPECT_TRUE(progress.finished(iteration));
  }
}

TEST(ProgressTest, OpensAtMostTwoUnfinishedIterations) {
  const PlanIndex index = chain(1);
  Progress progress;
  progress.begin(&index, 0);
  EXPECT_TRUE(progress.open(0));
  EXPECT_TRUE(progress.open(1));
  EXPECT_FALSE(progress.open(2));
  LogEntry entry;
  progress.issued({0, 0}, {});
  progress.submitted({0, 1}, &entry);
  EXPECT_FALSE(progress.open(2));
  progress.issued({0, 1}, {});
  EXPECT_TRUE(progress.open(2));
  EXPECT_FALSE(progress.open(3));
}

TEST(ProgressTest, AVisitThatTakesOneEndsTheSearch) {
  const PlanIndex index = chain(2);
  Progress progress;
  progress.begin(&index, 0);
  progress.open(0);
  int visits = 0;
  EXPECT_TRUE(progress.find_ready(LaneKind::to_device, [&](Instance) { return ++visits == 1; }));
  EXPECT_FALSE(progress.find_ready(LaneKind::to_host, [&](Instance) { return ++visits > 0; }));
  EXPECT_EQ(visits, 1);
  // What becomes ready under the visit is visited, too: the search may issue as it goes.
  std::vector<uint32_t> issued;
  progress.find_ready(LaneKind::to_device, [&](Instance instance) {
    progress.issued(instance, {});
    issued.push_back(instance.vertex);
    return false;
  });
  EXPECT_EQ(issued, (std::vector<uint32_t>{0, 1}));
}

}  // namespace
}  // namespace reprise::replay
