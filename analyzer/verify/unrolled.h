// The plan's graph with two iterations laid out one after the other, each in the plan's own order: nodes are numbered
// in a topological order. Used by the verifier only.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/plan/plan.h"

namespace reprise::analyzer {

class Unrolled {
 public:
  static constexpr uint32_t kRounds = 2;

  // `plan` must have passed check_structure() and must outlive this.
  explicit Unrolled(const plan::Plan& plan);

  uint32_t node(uint32_t vertex, uint32_t round) const { return round * vertices_ + place_[vertex]; }
  uint32_t vertex_of(uint32_t node) const { return plan_.order[node % vertices_]; }
  uint32_t round_of(uint32_t node) const { return node / vertices_; }
  uint32_t size() const { return vertices_ * kRounds; }
  const plan::Plan& plan() const { return plan_; }

  // `visit(node)` for every predecessor; each has a lower number.
  template <typename Visit>
  void for_predecessors(uint32_t node, Visit&& visit) const {
    const bool first_round = node < vertices_;
    const uint32_t place = first_round ? node : node - vertices_;
    for (uint32_t edge = first_edge_[place]; edge < first_edge_[place + 1]; ++edge) {
      const uint32_t from = edges_[edge];
      if ((from & kBefore) == 0) {
        visit(node - place + from);
      } else if (!first_round) {
        visit(from & ~kBefore);
      }
    }
  }

  // "12 (reload of tensor 3)", for messages.
  std::string describe(uint32_t node) const;
  // "12", or "12 of the next iteration".
  std::string number(uint32_t node) const;

 private:
  static constexpr uint32_t kBefore = 0x80000000;  // of the iteration before

  const plan::Plan& plan_;
  uint32_t vertices_;
  std::vector<uint32_t> place_;       // vertex -> place in the plan's order
  std::vector<uint32_t> first_edge_;  // by place
  std::vector<uint32_t> edges_;       // places, with kBefore
};

}  // namespace reprise::analyzer
