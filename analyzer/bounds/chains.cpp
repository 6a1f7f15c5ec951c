// LB5, the chain bound: op, copies, op, copies ... through chunks that both ops need. While op k runs, all of its
// operands are on the device. So when op m is the next one to compute, at most the rest of the device can already hold
// operands of m that k does not use; what of them existed before has to come in between the two, and nothing computes
// meanwhile. What the program's own copies may have brought does not count: they take their own time, and nothing has
// to come in for them. No plan knows a better predecessor for m than the one for which least has to come in: the sum
// over all ops is idle time of every plan.
//
// Which k can it be? The dispatcher starts no op 64 places ahead of one that has not started, so k lies less than 128
// places before m (an op that was held back may be followed by one that is 64 places ahead of those that ran before it)
// and less than 64 behind. It is none that must follow m, and none that must run before another op that m waits for.
// Only for plans that recompute nothing, and on one device.
#include <algorithm>
#include <bitset>
#include <vector>

#include "analyzer/bounds/bounds.h"
#include "analyzer/bounds/uses.h"

namespace reprise::analyzer {
namespace {

constexpr uint32_t kBack = 2 * kDispatchWindow;
constexpr uint32_t kAhead = kDispatchWindow;
using Near = std::bitset<kBack>;  // bit d: the op d + 1 places before

class Chains {
 public:
  Chains(const TaskGraph& graph, uint64_t capacity_bytes, const Machine& machine)
      : graph_(graph), capacity_(capacity_bytes), machine_(machine), uses_(uses_of(graph)) {
    count_ = static_cast<uint32_t>(uses_.call_of_op.size());
    held_.assign(count_, 0);
    needs_.resize(count_);
    for (OpIndex op{0}; op < count_; ++op) {
      for (const uint32_t tensor : operands(op)) held_[op] += bound_bytes(graph.tensors[tensor]);
    }
    for (uint32_t t = 0; t < graph.tensors.size(); ++t) {
      if (uses_.by_copies[t] != 0) continue;
      for (const Use& use : uses_.of_tensor[t]) {
        if (!use.fresh) needs_[use.op].push_back(t);
      }
    }
  }

  uint64_t bound() {
    if (count_ == 0 || !can_bind()) return graph_compute();
    rounds_before_ = (kBack + count_ - 1) / count_;
    find_ancestors(rounds_before_ + 1 + (kAhead + count_ - 1) / count_);
    uint64_t idle = 0;
    for (OpIndex op{0}; op < count_; ++op) {
      if (uses_.computes[op] != 0) idle += idle_before(op);
    }
    return graph_compute() + idle;
  }

 private:
  const std::vector<uint32_t>& operands(OpIndex op) const { return graph_.calls[uses_.call_of_op[op]].operands; }

  uint64_t graph_compute() const {
    uint64_t sum = 0;
    for (const uint64_t time : uses_.compute_ns) sum += time;
    return sum;
  }

  // Do the two largest ops together exceed the device?
  bool can_bind() const {
    uint64_t first = 0;
    uint64_t second = 0;
    for (const uint64_t bytes : held_) {
      if (bytes > first) std::swap(first, second);
      if (bytes >= first) {
        first = bytes;
      } else {
        second = std::max(second, bytes);
      }
    }
    return first + std::max(first, second) > capacity_;
  }

  // Searches as many iterations as an op's neighbourhood spans; place numbers run on from one iteration to the next.
  void find_ancestors(uint32_t rounds) {
    std::vector<std::vector<std::pair<uint32_t, uint8_t>>> before(count_);  // op -> (op, distance)
    for (const DataEdge& edge : graph_.edges) {
      const uint32_t from = uses_.op_of_call[edge.from];
      const uint32_t to = uses_.op_of_call[edge.to];
      if (from != kNone && to != kNone) before[to].push_back({from, edge.distance});
    }
    ancestors_.assign(size_t{rounds} * count_, Near{});
    passed_.assign(size_t{rounds} * count_, Near{});
    for (size_t place = 0; place < ancestors_.size(); ++place) {
      for (const auto& [from, distance] : before[place % count_]) {
        if (place / count_ < distance) continue;
        const size_t at = (place / count_ - distance) * count_ + from;
        if (at >= place || place - at > kBack) continue;
        const auto behind = static_cast<uint32_t>(place - at);
        const Near further = ancestors_[at] << behind;
        ancestors_[place] |= further;
        ancestors_[place].set(behind - 1);
        passed_[place] |= uses_.computes[from] != 0 ? further : passed_[at] << behind;
      }
    }
  }

  uint64_t idle_before(OpIndex op) const {
    if (needed_bytes(op) == 0) return 0;
    const size_t place = size_t{rounds_before_} * count_ + op;
    uint64_t least = ~uint64_t{0};
    for (size_t k = place - std::min<size_t>(place, kBack - 1); k < place && least > 0; ++k) {
      if (!passed_[place].test(place - k - 1))
        least = std::min(least, gap(OpIndex(static_cast<uint32_t>(k % count_)), op));
    }
    for (size_t k = place + 1; k < place + kAhead && k < ancestors_.size() && least > 0; ++k) {
      if (!ancestors_[k].test(k - place - 1))
        least = std::min(least, gap(OpIndex(static_cast<uint32_t>(k % count_)), op));
    }
    return least == ~uint64_t{0} ? 0 : least;
  }

  uint64_t needed_bytes(OpIndex op) const {
    uint64_t bytes = 0;
    for (const uint32_t tensor : needs_[op]) bytes += bound_bytes(graph_.tensors[tensor]);
    return bytes;
  }

  // Nothing computes for so long when `op` follows `before`.
  uint64_t gap(OpIndex before, OpIndex op) const {
    if (uses_.computes[before] == 0) return ~uint64_t{0};
    const std::vector<uint32_t>& shared = operands(before);
    uint64_t missing = 0;
    for (const uint32_t tensor : needs_[op]) {
      if (!std::binary_search(shared.begin(), shared.end(), tensor)) missing += bound_bytes(graph_.tensors[tensor]);
    }
    const uint64_t room = capacity_ > held_[before] ? capacity_ - held_[before] : 0;
    return missing > room ? copy_ns(missing - room, machine_.h2d_bytes_per_s, 0) : 0;
  }

  const TaskGraph& graph_;
  uint64_t capacity_;
  const Machine& machine_;
  Uses uses_;
  uint32_t count_ = 0;
  uint32_t rounds_before_ = 0;
  std::vector<uint64_t> held_;                // op -> bytes of its operands
  std::vector<std::vector<uint32_t>> needs_;  // op -> operands that held something before
  std::vector<Near> ancestors_;               // place -> which ops near before it must have run
  std::vector<Near> passed_;                  // place -> those of them that another one of them that computes waits for
};

}  // namespace

uint64_t chain_bound(const TaskGraph& graph, uint64_t capacity_bytes, const Machine& machine) {
  return Chains(graph, capacity_bytes, machine).bound();
}

}  // namespace reprise::analyzer
