// Homes, remaps, the slab, groups.
#include "analyzer/base/groups.h"
#include "analyzer/placement/layout.h"
#include "analyzer/placement/pool.h"
#include "tests/support/test.h"

namespace reprise::analyzer {
namespace {

TaskGraph graph_with(std::vector<uint32_t> chunk_counts, uint32_t calls) {
  TaskGraph graph;
  graph.chunk_bytes = 2 << 20;
  graph.calls.resize(calls);
  for (GraphCall& entry : graph.calls) entry.call.duration_ns = 1000;
  for (const uint32_t count : chunk_counts) {
    plan::Tensor tensor;
    tensor.size = count * graph.chunk_bytes;
    tensor.chunk_count = count;
    graph.tensors.push_back(tensor);
  }
  return graph;
}

Stay stay(uint32_t tensor, uint32_t begin, uint32_t end) {
  Stay result;
  result.tensor = tensor;
  result.begin = begin;
  result.end = end;
  result.departure = Departure::offload;
  return result;
}

// No two stays have a chunk at the same time.
void expect_disjoint(const Schedule& schedule, const Layout& layout, uint32_t calls) {
  for (uint32_t call = 0; call < calls; ++call) {
    std::set<uint32_t> taken;
    for (const Stay& s : schedule.stays) {
      const bool there = s.wraps ? call >= s.begin || call < s.end : call >= s.begin && call < s.end;
      if (!there) continue;
      for (const uint32_t chunk : layout.placements[s.placement].chunks)
        EXPECT_TRUE(taken.insert(chunk).second) << call;
    }
  }
}

// Three tensors, each pair together on the device at some time, never all three, and two chunks: an odd circle. No
// tensor can keep one home, but with a remap there is a plan.
TEST(Placement, TheTriangleHasNoHomes) {
  const TaskGraph graph = graph_with({1, 1, 1}, 6);
  Schedule schedule;
  schedule.stays = {stay(0, 0, 1), stay(1, 0, 3), stay(2, 2, 5), stay(0, 4, 6)};
  EXPECT_FALSE(place(graph, schedule, 2, PlacementMode::homes));
  EXPECT_FALSE(place(graph, schedule, 2, PlacementMode::homes_then_stays));  // two have homes, the third finds no hole
  const auto layout = place(graph, schedule, 2, PlacementMode::by_begin);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->remap_count, 2u);  // there and back
  expect_disjoint(schedule, *layout, 6);
  const auto three = place(graph, schedule, 3, PlacementMode::homes);
  ASSERT_TRUE(three);
  EXPECT_EQ(three->remap_count, 0u);
}

// A tensor that is recomputed has one address in both of its lives: elsewhere in the second one is a remap.
TEST(Placement, LivesOfATensorShareItsHome) {
  TaskGraph graph = graph_with({1, 1, 1, 1}, 10);
  for (plan::Tensor& tensor : graph.tensors) tensor.allocate_call = 0;
  graph.tensors[3].recompute_of = 0;
  Schedule schedule;
  // Only the first life's chunk is used in between; the second life alone would fit better into the other one.
  schedule.stays = {stay(0, 0, 2), stay(1, 2, 7), stay(3, 7, 9), stay(2, 9, 10)};
  for (const PlacementMode mode : {PlacementMode::homes, PlacementMode::by_begin}) {
    const auto layout = place(graph, schedule, 2, mode);
    ASSERT_TRUE(layout);
    EXPECT_EQ(layout->homes[0], layout->homes[3]);
    EXPECT_EQ(schedule.stays[0].placement, schedule.stays[2].placement);
    EXPECT_EQ(layout->remap_count, 0u);
    expect_disjoint(schedule, *layout, 10);
  }
  // Both lives beside tensors that leave them no common chunk.
  schedule.stays = {stay(0, 0, 2), stay(1, 0, 6), stay(2, 3, 9), stay(3, 7, 9)};
  EXPECT_FALSE(place(graph, schedule, 2, PlacementMode::homes));
  const auto layout = place(graph, schedule, 2, PlacementMode::by_begin);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->remap_count, 2u);  // there and back
}

TEST(Placement, ATensorWithoutAHomeLivesInHoles) {
  const TaskGraph graph = graph_with({1, 1, 1}, 10);
  Schedule schedule;
  // Tensor 2 fits beside one of the others at first and beside the other one later.
  schedule.stays = {stay(0, 0, 6), stay(2, 1, 3), stay(1, 4, 10), stay(2, 7, 9)};
  EXPECT_FALSE(place(graph, schedule, 2, PlacementMode::homes));
  const auto layout = place(graph, schedule, 2, PlacementMode::homes_then_stays);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->remap_count, 2u);  // there and back
  EXPECT_EQ(schedule.stays[1].placement, layout->homes[2]);
  EXPECT_NE(schedule.stays[3].placement, layout->homes[2]);
  expect_disjoint(schedule, *layout, 10);
}

// 0 and 1 share a chunk, which a search for the widest slack would not choose.
TEST(Placement, OthersKeepTheirHomesWhenSomeArePlacedAnew) {
  const TaskGraph graph = graph_with({1, 1, 1}, 10);
  Schedule schedule;
  schedule.stays = {stay(0, 0, 2), stay(2, 1, 8), stay(1, 3, 5)};
  Layout before;
  before.placements = {{{0}}, {{0}}, {{1}}};
  before.homes = {0, 1, 2};
  before.chunk_count = 2;
  const std::vector<uint64_t> times = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const auto layout = place_again(graph, schedule, 5, before, std::vector<uint32_t>{2}, times);
  ASSERT_TRUE(layout);
  expect_disjoint(schedule, *layout, 10);
  const auto home = [&](uint32_t tensor) { return layout->placements[layout->homes[tensor]].chunks; };
  EXPECT_EQ(home(0), home(1));
}

// 0 and 1 take a chunk each, as the widest slack is in one that is free; 2 meets both and finds none, unless it is
// first.
TEST(Placement, WhatFindsNoHomeComesFirstInTheNextAttempt) {
  const TaskGraph graph = graph_with({1, 1, 1}, 12);
  Schedule schedule;
  schedule.stays = {stay(0, 0, 2), stay(2, 1, 5), stay(1, 4, 6)};
  const auto before = place(graph, schedule, 2, PlacementMode::homes);
  ASSERT_TRUE(before);
  std::vector<uint64_t> times;
  for (uint64_t at = 0; at <= 12; ++at) times.push_back(at);
  Schedule again = schedule;
  const auto layout = place_again(graph, again, 2, *before, std::vector<uint32_t>{0, 1, 2}, times);
  ASSERT_TRUE(layout);
  expect_disjoint(again, *layout, 12);
  // The others are as they were, in one chunk, and now overlap with it in both.
  Schedule longer = schedule;
  longer.stays[0] = stay(0, 0, 5);
  EXPECT_FALSE(place_again(graph, longer, 2, *before, std::vector<uint32_t>{2, 1}, times));
}

TEST(Placement, ATensorIsAnySetOfChunks) {
  const TaskGraph graph = graph_with({2, 2, 2, 4}, 10);
  Schedule schedule;
  schedule.stays = {stay(0, 0, 10), stay(1, 0, 3), stay(2, 0, 10), stay(3, 4, 10)};
  schedule.stays[0].arrival = schedule.stays[2].arrival = Arrival::always;
  for (const HomeOrder order : {HomeOrder::longest_first, HomeOrder::returning_first, HomeOrder::persistent_first}) {
    const auto layout = place(graph, schedule, 8, PlacementMode::homes, order);
    ASSERT_TRUE(layout);
    expect_disjoint(schedule, *layout, 10);
    EXPECT_EQ(layout->chunk_count, 8u);
  }
  EXPECT_FALSE(place(graph, schedule, 7, PlacementMode::homes));
}

TEST(Placement, StaysThatWrapKeepTheirChunksOverTheStart) {
  const TaskGraph graph = graph_with({1, 1}, 10);
  Schedule schedule;
  schedule.stays = {stay(1, 3, 6), stay(0, 7, 2)};
  schedule.stays[1].wraps = true;
  const auto layout = place(graph, schedule, 1, PlacementMode::homes);
  ASSERT_TRUE(layout);
  expect_disjoint(schedule, *layout, 10);
  schedule.stays[0].begin = 1;
  EXPECT_FALSE(place(graph, schedule, 1, PlacementMode::homes));
}

TEST(ChunkPool, TakesTheWidestSlackFirst) {
  const std::vector<uint64_t> times = {0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100};
  HomePool pool(2, times);
  const auto one = [](uint32_t begin, uint32_t end) { return std::vector<Span>{{begin, end}}; };
  EXPECT_EQ(pool.take(1, one(0, 2)), (std::vector<uint32_t>{0}));
  EXPECT_EQ(pool.take(1, one(4, 5)), (std::vector<uint32_t>{1}));  // the empty one
  // Behind chunk 0's span by 40, behind chunk 1's by 10.
  EXPECT_EQ(pool.take(1, one(6, 7)), (std::vector<uint32_t>{0}));
  // Now chunk 0 is free from 7 to 10 and on to 0, chunk 1 from 5 to 14.
  EXPECT_EQ(pool.take(1, one(9, 10)), (std::vector<uint32_t>{1}));
  EXPECT_EQ(pool.take(2, one(1, 3)), std::nullopt);
  EXPECT_FALSE(pool.take_these({0}, one(1, 2)));
  EXPECT_TRUE(pool.take_these({0, 1}, one(2, 3)));
  EXPECT_EQ(pool.take(1, one(2, 3)), std::nullopt);
}

TEST(Slab, SharesBytesOfTensorsThatDoNotMeet) {
  TaskGraph graph;
  graph.chunk_bytes = 2 << 20;
  const auto add = [&](uint64_t size) {
    plan::Tensor tensor;
    tensor.size = size;
    graph.tensors.push_back(tensor);
    return static_cast<uint32_t>(graph.tensors.size() - 1);
  };
  const auto call = [&](uint32_t tensor, plan::CallKind kind) {
    const auto index = static_cast<uint32_t>(graph.calls.size());
    (kind == plan::CallKind::allocate ? graph.tensors[tensor].allocate_call : graph.tensors[tensor].free_call) = index;
    graph.calls.emplace_back().call.kind = kind;
    graph.calls.back().call.tensor = tensor;
  };
  const uint32_t a = add(1000), b = add(100), c = add(512), d = add(1000);
  call(a, plan::CallKind::allocate);
  call(b, plan::CallKind::allocate);
  call(a, plan::CallKind::free);
  call(c, plan::CallKind::allocate);
  call(d, plan::CallKind::allocate);
  call(b, plan::CallKind::free);
  call(c, plan::CallKind::free);
  call(d, plan::CallKind::free);
  EXPECT_EQ(place_small_tensors(graph), 2560u);
  EXPECT_EQ(graph.tensors[a].slab_offset, 0u);
  EXPECT_EQ(graph.tensors[b].slab_offset, 1024u);
  EXPECT_EQ(graph.tensors[c].slab_offset, 0u);
  EXPECT_EQ(graph.tensors[d].slab_offset, 1536u);
}

TEST(Groups, KeepTheOrderOfWhatTheyAreGiven) {
  Groups groups(4, [](auto&& put) {
    put(2, 7);
    put(0, 5);
    put(2, 3);
    put(2, 7);
  });
  const auto group = [&](size_t at) { return std::vector<uint32_t>(groups[at].begin(), groups[at].end()); };
  ASSERT_EQ(groups.size(), 4u);
  EXPECT_EQ(group(0), std::vector<uint32_t>{5});
  EXPECT_TRUE(groups[1].empty() && groups[3].empty());
  EXPECT_EQ(group(2), (std::vector<uint32_t>{7, 3, 7}));
  std::sort(groups[2].begin(), groups[2].end());
  EXPECT_EQ(group(2), (std::vector<uint32_t>{3, 7, 7}));
  EXPECT_EQ(group(0), std::vector<uint32_t>{5});
  EXPECT_EQ(Groups().size(), 0u);
}

}  // namespace
}  // namespace reprise::analyzer
