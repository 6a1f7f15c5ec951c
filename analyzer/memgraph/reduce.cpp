// Drops predecessors that a path through another predecessor implies. Bounded: what is not found stays, and is only
// superfluous.
#include <algorithm>
#include <vector>

#include "analyzer/memgraph/build.h"

namespace reprise::analyzer {
namespace {

constexpr size_t kLook = 256;  // vertices visited per vertex

class Reducer {
 public:
  explicit Reducer(MemGraph& graph) : graph_(graph), seen_(graph.vertices.size() * 2, kNone) {}

  void run() {
    for (uint32_t vertex = 0; vertex < graph_.vertices.size(); ++vertex) reduce(vertex);
  }

 private:
  // Node: a vertex, and how many iterations back.
  size_t node(uint32_t vertex, uint8_t distance) const { return distance * graph_.vertices.size() + vertex; }

  void reduce(uint32_t vertex) {
    std::vector<plan::Predecessor>& list = graph_.vertices[vertex].vertex.predecessors;
    if (list.size() < 2) return;
    // The most recent first: only they can imply the others.
    std::sort(list.begin(), list.end(), [](const plan::Predecessor& a, const plan::Predecessor& b) {
      return a.distance != b.distance ? a.distance < b.distance : a.vertex > b.vertex;
    });
    std::vector<plan::Predecessor> kept;
    looks_ = 0;
    for (const plan::Predecessor& predecessor : list) {
      if (seen_[node(predecessor.vertex, predecessor.distance)] == vertex) continue;
      kept.push_back(predecessor);
      look_back(predecessor, vertex);
    }
    list = std::move(kept);
  }

  void look_back(const plan::Predecessor& from, uint32_t vertex) {
    queue_.assign(1, {from.vertex, from.distance});
    for (size_t next = 0; next < queue_.size() && looks_ < kLook; ++next, ++looks_) {
      const auto [at, distance] = queue_[next];
      for (const plan::Predecessor& further : graph_.vertices[at].vertex.predecessors) {
        const int total = distance + further.distance;
        if (total > 1) continue;
        uint32_t& mark = seen_[node(further.vertex, static_cast<uint8_t>(total))];
        if (mark == vertex) continue;
        mark = vertex;
        queue_.push_back({further.vertex, static_cast<uint8_t>(total)});
      }
    }
  }

  struct Place {
    uint32_t vertex;
    uint8_t distance;
  };
  MemGraph& graph_;
  std::vector<uint32_t> seen_;  // node -> last vertex whose search met it
  std::vector<Place> queue_;
  size_t looks_ = 0;
};

}  // namespace

void reduce_edges(MemGraph& graph) { Reducer(graph).run(); }

}  // namespace reprise::analyzer
