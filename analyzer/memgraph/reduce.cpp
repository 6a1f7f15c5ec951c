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
  explicit Reducer(EdgeList& list)
      : edges_(list.edges),
        first_(list.first),
        last_(list.last),
        count_(static_cast<uint32_t>(list.first.size())),
        seen_(size_t{count_} * 2, kNone),
        wanted_(size_t{count_} * 2, kNone) {
    // The most recent first: only they can imply the others.
    for (uint32_t vertex = 0; vertex < count_; ++vertex) {
      std::sort(edges_.begin() + first_[vertex], edges_.begin() + last_[vertex],
                [](const plan::Predecessor& a, const plan::Predecessor& b) {
                  return a.distance != b.distance ? a.distance < b.distance : a.vertex > b.vertex;
                });
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
    const uint32_t first = first_[vertex];
    const uint32_t last = last_[vertex];
    if (last - first < 2) return;
    for (uint32_t edge = first; edge < last; ++edge) wanted_[node(edges_[edge])] = vertex;
    left_ = last - first;
    oldest_ = node(edges_[last - 1]);
    looks_ = 0;
    uint32_t kept = first;
    for (uint32_t edge = first; edge < last; ++edge) {
      const plan::Predecessor predecessor = edges_[edge];
      const uint32_t from = node(predecessor);
      if (seen_[from] == vertex) continue;
      edges_[kept++] = predecessor;
      --left_;
      look_back(from, vertex);
    }
    last_[vertex] = kept;
  }

  void look_back(uint32_t from, uint32_t vertex) {
    queue_.assign(1, from);
    for (size_t next = 0; next < queue_.size() && looks_ < kLook && left_ > 0; ++next, ++looks_) {
      const uint32_t back = queue_[next] < count_ ? count_ : 0;  // what is before that iteration is out of sight
      const uint32_t at = queue_[next] + back - count_;
      for (uint32_t edge = first_[at]; edge < last_[at]; ++edge) {
        const uint32_t before = node(edges_[edge]);
        if (before < oldest_ + back) continue;
        const uint32_t further = before - back;
        if (seen_[further] == vertex) continue;
        seen_[further] = vertex;
        if (wanted_[further] == vertex) --left_;
        if (further > oldest_) queue_.push_back(further);
      }
    }
  }

  std::vector<plan::Predecessor>& edges_;
  const std::vector<uint32_t>& first_;
  std::vector<uint32_t>& last_;
  uint32_t count_;
  std::vector<uint32_t> seen_;    // node -> last vertex whose search met it
  std::vector<uint32_t> wanted_;  // node -> last vertex that has it as a predecessor
  std::vector<uint32_t> queue_;   // nodes
  uint32_t oldest_ = 0;           // of its predecessors, a node: the search need not go beyond
  size_t left_ = 0;               // predecessors that are neither kept nor implied yet
  size_t looks_ = 0;
};

}  // namespace

void reduce_edges(EdgeList& list) { Reducer(list).run(); }

}  // namespace reprise::analyzer
