// The plan's graph with two iterations laid out one after the other, and answers to "does a path lead from a to b".
// Used by the verifier only.
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

  uint32_t node(uint32_t vertex, uint32_t round) const { return round * vertices_ + vertex; }
  uint32_t vertex_of(uint32_t node) const { return node % vertices_; }
  uint32_t round_of(uint32_t node) const { return node / vertices_; }
  // "12 (reload of tensor 3)", for messages.
  std::string describe(uint32_t node) const;

  // All nodes in a topological order; empty when there is a cycle (of edges of distance 0).
  const std::vector<uint32_t>& order() const { return order_; }

  struct Question {
    uint32_t from = 0;  // nodes
    uint32_t to = 0;
    uint32_t note = 0;  // the caller's
  };
  // The first question (by from, to) that no path answers; nullptr when all are. Sorts and thins out `questions`.
  const Question* unanswered(std::vector<Question>& questions) const;

 private:
  const Question* unanswered_block(const Question* first, const Question* last) const;

  const plan::Plan& plan_;
  uint32_t vertices_;
  std::vector<std::vector<uint32_t>> successors_;
  std::vector<uint32_t> order_;
  std::vector<uint32_t> position_;  // node -> place in order_
};

}  // namespace reprise::analyzer
