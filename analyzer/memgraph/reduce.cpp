// Drops predecessors that a path through another predecessor implies. Bounded: what is not found stays, and is only
// superfluous.
#include <algorithm>
#include <vector>

#include "analyzer/memgraph/build.h"

namespace reprise::analyzer {
namespace {

constexpr size_t kLook = 128;  // vertices visited per vertex

class Reducer {
 public:
  explicit Reducer(MemGraph& graph)
      : graph_(graph),
        count_(static_cast<uint32_t>(graph.vertices.size())),
        seen_(size_t{count_} * 2, kNone),
        wanted_(size_t{count_} * 2, kNone) {
    for (MemVertex& entry : graph.vertices) {
      std::vector<plan::Predecessor>& list = entry.vertex.predecessors;
      // The most recent first: only they can imply the others.
      std::sort(list.begin(), list.end(), [](const plan::Predecessor& a, const plan::Predecessor& b) {
        return a.distance != b.distance ? a.distance < b.distance : a.vertex > b.vertex;
      });
      first_.push_back(static_cast<uint32_t>(nodes_.size()));
      for (const plan::Predecessor& predecessor : list) nodes_.push_back(node(predecessor));
      last_.push_back(static_cast<uint32_t>(nodes_.size()));
    }
  }

  void run() {
    for (uint32_t vertex = 0; vertex < count_; ++vertex) reduce(vertex);
  }

 private:
  // A vertex of the iteration before, or, `count_` higher, of this one: edges come from lower nodes.
  uint32_t node(const plan::Predecessor& predecessor) const {
    return predecessor.vertex + (predecessor.distance == 0 ? count_ : 0);
  }

  void reduce(uint32_t vertex) {
    std::vector<plan::Predecessor>& list = graph_.vertices[vertex].vertex.predecessors;
    if (list.size() < 2) return;
    for (const plan::Predecessor& predecessor : list) wanted_[node(predecessor)] = vertex;
    left_ = list.size();
    oldest_ = node(list.back());
    looks_ = 0;
    size_t kept = 0;
    for (const plan::Predecessor& predecessor : list) {
      const uint32_t from = node(predecessor);
      if (seen_[from] == vertex) continue;
      nodes_[first_[vertex] + kept] = from;
      list[kept++] = predecessor;
      --left_;
      look_back(from, vertex);
    }
    list.resize(kept);
    list.shrink_to_fit();
    last_[vertex] = first_[vertex] + static_cast<uint32_t>(kept);
  }

  void look_back(uint32_t from, uint32_t vertex) {
    queue_.assign(1, from);
    for (size_t next = 0; next < queue_.size() && looks_ < kLook && left_ > 0; ++next, ++looks_) {
      const uint32_t back = queue_[next] < count_ ? count_ : 0;  // what is before that iteration is out of sight
      const uint32_t at = queue_[next] + back - count_;
      for (uint32_t edge = first_[at]; edge < last_[at]; ++edge) {
        if (nodes_[edge] < oldest_ + back) continue;
        const uint32_t further = nodes_[edge] - back;
        if (seen_[further] == vertex) continue;
        seen_[further] = vertex;
        if (wanted_[further] == vertex) --left_;
        if (further > oldest_) queue_.push_back(further);
      }
    }
  }

  MemGraph& graph_;
  uint32_t count_;
  // Predecessors in one place, for the search looks at a few hundred per vertex: nodes_[first_[v]] to nodes_[last_[v]].
  std::vector<uint32_t> nodes_, first_, last_;
  std::vector<uint32_t> seen_;    // node -> last vertex whose search met it
  std::vector<uint32_t> wanted_;  // node -> last vertex that has it as a predecessor
  std::vector<uint32_t> queue_;   // nodes
  uint32_t oldest_ = 0;           // of its predecessors, a node: the search need not go beyond
  size_t left_ = 0;               // predecessors that are neither kept nor implied yet
  size_t looks_ = 0;
};

}  // namespace

void reduce_edges(MemGraph& graph) { Reducer(graph).run(); }

}  // namespace reprise::analyzer
