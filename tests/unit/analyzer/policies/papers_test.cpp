// Examples of the papers whose figures we can say exactly.
#include "analyzer/memgraph/build.h"
#include "analyzer/planner/planner.h"
#include "analyzer/policies/policy.h"
#include "tests/support/graph_builder.h"
#include "tests/support/test.h"

namespace reprise::analyzer {
namespace {

using testing::GraphBuilder;

constexpr uint64_t kChunk = 2 << 20;
constexpr uint64_t kUnit = 1'000'000;  // one transfer of one matrix, and one multiplication

// DISCO, Figures 2 and 3: a network on two GPUs that share the bus to the host. Each layer's weights are two halves,
// one for each GPU, and each GPU has room for one. A layer's input is what both GPUs made of the layer before: small,
// and exchanged in no time. Levelwise, a layer is multiplied when both halves are there.
TaskGraph network(int layers, bool levelwise) {
  GraphBuilder builder(2);
  std::vector<uint32_t> halves[2];
  for (uint32_t gpu : {0u, 1u}) {
    halves[gpu].reserve(static_cast<size_t>(layers));
    for (int i = 0; i < layers; ++i) halves[gpu].push_back(builder.persistent(gpu));
  }
  uint32_t x[2];        // the layer's input
  uint32_t product[2];  // of this GPU's half
  uint32_t other[2];    // that of the other GPU
  uint32_t there[2];    // this GPU's half has arrived
  uint32_t both[2];     // and the other's
  for (uint32_t gpu : {0u, 1u}) {
    for (uint32_t* small : {x, product, other, there, both}) small[gpu] = builder.small(gpu);
  }
  for (size_t i = 0; i < static_cast<size_t>(layers); ++i) {
    if (levelwise) {
      for (uint32_t gpu : {0u, 1u}) builder.kernel(gpu, "arrived", {halves[gpu][i]}, {there[gpu]}, 0);
      for (uint32_t gpu : {0u, 1u}) builder.peer("say so", there[gpu], both[1 - gpu]);
    }
    for (uint32_t gpu : {0u, 1u}) {
      std::vector<uint32_t> inputs = {x[gpu], halves[gpu][i]};
      if (levelwise) inputs.push_back(both[gpu]);
      builder.kernel(gpu, "multiply", inputs, {product[gpu]}, kUnit);
    }
    for (uint32_t gpu : {0u, 1u}) builder.peer("exchange", product[gpu], other[1 - gpu]);
    for (uint32_t gpu : {0u, 1u}) builder.kernel(gpu, "join", {product[gpu], other[gpu]}, {x[gpu]}, 0);
  }
  builder.synchronize_at_end();  // every run of the network begins with an idle bus
  return builder.build();
}

Machine shared_bus() {
  Machine machine;
  machine.devices = 2;
  machine.devices_per_link = 2;
  machine.h2d_bytes_per_s = static_cast<double>(kChunk) * 1000;  // 1 ms for a half
  machine.latency_ns = 0;
  machine.peer_bytes_per_s = 1e18;
  machine.peer_latency_ns = 0;
  return machine;
}

uint64_t units(int layers, bool levelwise) {
  PlanOptions options;
  options.policy = "disco";
  options.machine = shared_bus();
  const Result<Workload> workload = make_workload(network(layers, levelwise), options);
  EXPECT_TRUE(workload.ok()) << workload.status().message();
  EXPECT_EQ(workload.value().largest.chunks, 1u);
  options.budget_bytes = workload.value().minimum_bytes;  // room for one half, and for what is small
  const Result<plan::Plan> plan = make_plan(workload.value(), options);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan.value().device_chunks, (std::vector<uint32_t>{1, 1}));
  EXPECT_EQ(plan.value().reload_bytes, 2 * static_cast<uint64_t>(layers) * kChunk);
  EXPECT_EQ(plan.value().offload_bytes, 0u);
  EXPECT_EQ(plan.value().predicted_ns % kUnit, 0u);
  return plan.value().predicted_ns / kUnit;
}

TEST(Disco, LevelwiseTakesThreeUnitsALayer) {
  for (const int n : {2, 3, 5, 20}) EXPECT_EQ(units(n, true), 3 * static_cast<uint64_t>(n));
}

TEST(Disco, WorkConservingTakesTwoAndOneAtTheEnd) {
  for (const int n : {2, 3, 5, 20}) EXPECT_EQ(units(n, false), 2 * static_cast<uint64_t>(n) + 1);
}

// TURNIP's example (also DISCO's): six kernels and three transfers on three GPUs, which multiply two matrices. The
// figures are lost; this is what the text says of GPU 1, the only one that it speaks about.
// - It has seven tensors: the inputs A and B, and those that 1, 2, 3, 4 and 8 make there.
// - 3 reads A and 1 and is the only one to do so; 4 is the only one to read 2; 8 reads 3.
// - With five places, A and 4 share one, 1 and 8 another. Memory dependencies: 3 -> 4, and a superfluous one, 3 -> 8.
// - With four, A goes to the host and comes back. Four pairs share places; named are A and 4, and 2 and the reload of
// A.
//   Memory dependencies named: the offload of A -> 4, and 4 -> its reload.
// What follows from that: B is read by 4 or later, or 4 would have taken its place and not that of A; 1 and 2 come from
// other GPUs, for no op on this one could make them. The two pairs that are not named are B and 3, and 1 and 8: 3 can
// share with neither of its inputs, nor 8 with 3. Ours, as the paper's is lost: that 8 reads 4, too (the sum of two
// products), and all of GPUs 2 and 3.
struct Example {
  TaskGraph graph;
  std::map<std::string, uint32_t> tensor;
};

// `order`: of the vertices. With four places the text has 4 run before 3.
Example six_kernels(const std::vector<std::string>& order) {
  GraphBuilder builder(3);
  Example example;
  // Of 1 and A, which are needed next at the same time, the later tensor leaves: A, as in the paper.
  const std::pair<const char*, uint32_t> tensors[] = {{"B", 0}, {"1", 0}, {"2", 0}, {"A", 0}, {"3", 0},
                                                      {"4", 0}, {"8", 0}, {"C", 1}, {"D", 1}, {"5", 1},
                                                      {"7", 1}, {"9", 1}, {"E", 2}, {"F", 2}, {"6", 2}};
  for (const auto& [name, gpu] : tensors) example.tensor[name] = builder.transient(gpu);
  const std::map<std::string, std::vector<std::string>> reads = {
      {"3", {"A", "1"}}, {"4", {"B", "2"}}, {"5", {"C", "D"}}, {"6", {"E", "F"}}, {"8", {"3", "4"}}, {"9", {"5", "7"}}};
  const std::map<std::string, std::string> moves = {{"1", "C"}, {"2", "E"}, {"7", "6"}};
  for (const std::string& name : order) {
    if (moves.contains(name)) {
      builder.peer(name, example.tensor[moves.at(name)], example.tensor[name]);
      continue;
    }
    std::vector<uint32_t> inputs;
    if (reads.contains(name)) {
      for (const std::string& input : reads.at(name)) inputs.push_back(example.tensor[input]);
    }
    const uint32_t gpu =
        std::find_if(std::begin(tensors), std::end(tensors), [&](auto& t) { return t.first == name; })->second;
    builder.kernel(gpu, name, inputs, {example.tensor[name]}, kUnit);
  }
  example.graph = builder.build();
  return example;
}

const std::vector<std::string> kForFivePlaces = {"A", "B", "C", "D", "E", "F", "1", "2",
                                                 "3", "4", "5", "6", "7", "8", "9"};
const std::vector<std::string> kForFourPlaces = {"A", "B", "C", "D", "E", "F", "1", "2",
                                                 "4", "3", "5", "6", "7", "8", "9"};

// The schedule of the disco policy with `places` on each GPU.
Schedule schedule_for(const Example& example, uint32_t places) {
  const std::vector<DeviceSubgraph> subgraphs = device_subgraphs_of(example.graph);
  std::vector<Schedule> schedules;
  schedules.reserve(subgraphs.size());
  const Machine machine;
  for (const DeviceSubgraph& subgraph : subgraphs)
    schedules.push_back(disco_policy().schedule({subgraph.graph, machine, places, true}));
  return merge_schedules(example.graph, subgraphs, schedules);
}

// `place_of`: of GPU 1's tensors, by name, and "reload A". Others have places of their own.
MemGraph with_places(const Example& example, Schedule schedule, const std::map<std::string, uint32_t>& place_of) {
  Layout layout;
  layout.homes.assign(example.graph.tensors.size(), kNone);
  layout.chunk_count = 5;
  for (Stay& stay : schedule.stays) {
    const auto named = std::find_if(example.tensor.begin(), example.tensor.end(),
                                    [&](const auto& entry) { return entry.second == stay.tensor; });
    const std::string name = (stay.arrival == Arrival::reload ? "reload " : "") + named->first;
    const auto place = place_of.find(name);
    stay.placement = static_cast<uint32_t>(layout.placements.size());
    layout.placements.push_back({{place != place_of.end() ? place->second - 1 : layout.chunk_count++}});
    if (layout.homes[stay.tensor] == kNone) layout.homes[stay.tensor] = stay.placement;
  }
  return build_mem_graph(example.graph, schedule, layout);
}

class Edges {
 public:
  Edges(const Example& example, const MemGraph& graph) : example_(example), graph_(graph) {}

  // Within one iteration. Edges from the program's frees are left out: the paper's programs free nothing.
  std::set<std::string> of(plan::EdgeKind kind) const {
    std::set<std::string> result;
    for (uint32_t v = 0; v < graph_.vertices.size(); ++v) {
      for (const plan::Predecessor& before : graph_.vertices[v].predecessors) {
        if (before.kind != kind || before.distance != 0 || is_free(before.vertex)) continue;
        result.insert(name(before.vertex) + " -> " + name(v));
      }
    }
    return result;
  }
  bool path(const std::string& from, const std::string& to) const {
    std::set<std::string> reached = {from};
    for (uint32_t v = 0; v < graph_.vertices.size(); ++v) {  // in a topological order
      for (const plan::Predecessor& before : graph_.vertices[v].predecessors) {
        if (before.distance == 0 && !is_free(v) && reached.contains(name(before.vertex))) reached.insert(name(v));
      }
    }
    return from != to && reached.contains(to);
  }

 private:
  bool is_free(uint32_t v) const { return graph_.vertices[v].kind == plan::VertexKind::release; }
  std::string name(uint32_t v) const {
    const plan::Vertex& vertex = graph_.vertices[v];
    if (vertex.kind == plan::VertexKind::op) return example_.graph.calls[vertex.call].call.name;
    const auto named = std::find_if(example_.tensor.begin(), example_.tensor.end(),
                                    [&](const auto& entry) { return entry.second == vertex.tensor; });
    const char* kind = vertex.kind == plan::VertexKind::offload  ? "offload "
                       : vertex.kind == plan::VertexKind::reload ? "reload "
                                                                 : "free ";
    return kind + named->first;
  }

  const Example& example_;
  const MemGraph& graph_;
};

using Names = std::set<std::string>;

TEST(Turnip, WithFivePlacesNothingLeaves) {
  const Example example = six_kernels(kForFivePlaces);
  const Schedule schedule = schedule_for(example, 5);
  EXPECT_EQ(schedule.offload_bytes + schedule.reload_bytes, 0u);
  const MemGraph graph =
      with_places(example, schedule, {{"A", 1}, {"4", 1}, {"B", 2}, {"1", 3}, {"8", 3}, {"2", 4}, {"3", 5}});
  const Edges edges(example, graph);
  EXPECT_EQ(edges.of(plan::EdgeKind::memory), (Names{"3 -> 4"}));
  // 8 may overwrite 1 when 3 has read it. That needs no edge of its own, for 8 comes behind 3 anyway.
  EXPECT_TRUE(edges.path("3", "8"));
  EXPECT_FALSE(edges.path("4", "3"));
}

TEST(Turnip, WithFourPlacesAGoesToTheHostAndComesBack) {
  const Example example = six_kernels(kForFourPlaces);
  const Schedule schedule = schedule_for(example, 4);
  EXPECT_EQ(schedule.offload_bytes, kChunk);
  EXPECT_EQ(schedule.reload_bytes, kChunk);
  const MemGraph graph = with_places(
      example, schedule, {{"A", 1}, {"4", 1}, {"B", 2}, {"3", 2}, {"1", 3}, {"8", 3}, {"2", 4}, {"reload A", 4}});
  const Edges edges(example, graph);
  EXPECT_EQ(edges.of(plan::EdgeKind::memory), (Names{"offload A -> 4", "4 -> reload A"}));
  const Names data = edges.of(plan::EdgeKind::data);
  EXPECT_TRUE(data.contains("A -> offload A"));
  EXPECT_TRUE(data.contains("reload A -> 3"));
  EXPECT_TRUE(edges.path("offload A", "reload A"));
  // The pairs that the text does not name: 3 in the place of B, which 4 has read, and 8 in that of 1, which 3 has read.
  EXPECT_TRUE(edges.path("4", "3"));
  EXPECT_TRUE(edges.path("3", "8"));
}

// The whole way through the planner, with places of its own choice; every plan is verified.
TEST(Turnip, ThePlannerFindsBoth) {
  for (const uint32_t places : {5u, 4u}) {
    PlanOptions options;
    options.policy = "disco";
    options.machine = Machine{};
    options.machine->devices = 3;
    options.budget_bytes = places * kChunk;
    const Result<Workload> workload =
        make_workload(six_kernels(places == 5 ? kForFivePlaces : kForFourPlaces).graph, options);
    ASSERT_TRUE(workload.ok()) << workload.status().message();
    const auto plan = good(make_plan(workload.value(), options));
    EXPECT_EQ(plan.offload_bytes, places == 5 ? 0 : kChunk);
    EXPECT_EQ(plan.reload_bytes, places == 5 ? 0 : kChunk);
    EXPECT_EQ(plan.device_chunks[0], places);
  }
}

}  // namespace
}  // namespace reprise::analyzer
