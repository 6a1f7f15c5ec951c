// Does a path lead from one node to another? Most questions are answered at once, from spanning forests of the graph or
// a short search; the rest is followed exactly, many at a time. Used by the verifier only.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/verify/unrolled.h"

namespace reprise::analyzer {

class Reach {
 public:
  explicit Reach(const Unrolled& graph);

  // True: there is a path. False: none was found at once; ask first_without().
  bool quickly(uint32_t from, uint32_t to);

  struct Question {
    uint32_t from = 0;
    uint32_t to = 0;
    uint32_t note = 0;  // the caller's
  };
  // The first question (by from, to, note) that no path answers; nullptr when all are. Sorts and thins out `questions`.
  const Question* first_without(std::vector<Question>& questions) const;

 private:
  // A forest: every node hangs below one of its neighbours. What is below a node has the numbers from first to last.
  struct Forest {
    std::vector<uint32_t> first;
    std::vector<uint32_t> last;
    bool has(uint32_t ancestor, uint32_t node) const {
      return first[ancestor] <= first[node] && first[node] <= last[ancestor];
    }
  };
  static Forest number(std::vector<uint32_t> parent);
  uint32_t mirrored(uint32_t node) const { return graph_.size() - 1 - node; }
  bool known(uint32_t from, uint32_t to) const {
    return from == to || latest_.has(from, to) || next_.has(mirrored(to), mirrored(from)) || earliest_.has(from, to);
  }
  // `words` of 64 bits have room for a bit of every source.
  const Question* first_in_block(const Question* first, const Question* last, size_t words) const;

  const Unrolled& graph_;
  Forest latest_;               // below the latest predecessor: mostly the program's own chain of ops
  Forest earliest_;             // below the earliest predecessor: along tensors that stay for long
  Forest next_;                 // below the earliest successor; nodes by their mirrored numbers
  std::vector<uint32_t> seen_;  // node -> last search that met it
  uint32_t search_ = 0;
  std::vector<uint32_t> queue_;
};

}  // namespace reprise::analyzer
