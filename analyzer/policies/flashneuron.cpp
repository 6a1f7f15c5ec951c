// FlashNeuron (FAST 2021): intermediate tensors of the forward pass go to an SSD right behind their last use there, the
// first ones of the iteration first, as many as it takes until the rest fits; weights stay. Modelled: that linear
// choice, the SSD as the only place (the host where the machine has no SSD), reloads as early as there is memory for
// them. Not modelled: compression, and its allocator's need for contiguous memory, for which it fails on some models;
// what its choice leaves too large is evicted on demand here, intermediate tensors before weights, for a plan must
// exist.
#include <algorithm>
#include <map>

#include "analyzer/policies/policy.h"
#include "analyzer/schedule/walk.h"

namespace reprise::analyzer {
namespace {

struct UnusedTime {
  uint32_t from = 0;  // calls: the use before it, and the one behind it
  uint32_t to = 0;
};

class LinearChoice {
 public:
  LinearChoice(const TaskGraph& graph, uint64_t capacity)
      : graph_(graph), capacity_(capacity), pressure_(graph.calls.size(), 0), uses_(graph.tensors.size()) {
    for (CallIndex call{0}; call < graph.calls.size(); ++call) {
      start_.push_back(start_.empty() ? 0 : start_.back() + graph.calls[call - 1].call.duration_ns);
      for (const uint32_t tensor : graph.calls[call].operands) uses_[tensor].push_back(call);
    }
    for (uint32_t tensor = 0; tensor < graph.tensors.size(); ++tensor) {
      const bool stays = is_persistent(graph.tensors[tensor]);
      if (!stays && uses_[tensor].empty()) continue;
      const uint32_t begin = stays ? 0 : uses_[tensor].front();
      const auto end = stays ? static_cast<uint32_t>(pressure_.size()) : uses_[tensor].back() + 1;
      for (CallIndex call{begin}; call < end; ++call) pressure_[call] += graph.tensors[tensor].chunk_count;
    }
  }

  // Call -> tensors that leave right behind it.
  std::map<uint32_t, std::vector<Leaving>> choose() {
    std::vector<uint32_t> order;
    for (uint32_t tensor = 0; tensor < graph_.tensors.size(); ++tensor) {
      if (!is_persistent(graph_.tensors[tensor]) && uses_[tensor].size() > 1) order.push_back(tensor);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return uses_[a].front() < uses_[b].front(); });
    std::map<uint32_t, std::vector<Leaving>> leaving;
    for (const uint32_t tensor : order) {
      if (*std::max_element(pressure_.begin(), pressure_.end()) <= capacity_) break;
      const UnusedTime gap = longest(uses_[tensor]);
      if (!relieves(gap)) continue;
      for (CallIndex call{gap.from + 1}; call < gap.to; ++call) pressure_[call] -= graph_.tensors[tensor].chunk_count;
      leaving[gap.from].push_back({tensor, Tier::ssd});
    }
    return leaving;
  }

 private:
  // That from the forward to the backward pass.
  UnusedTime longest(const std::vector<uint32_t>& uses) const {
    UnusedTime best{uses.front(), uses.front()};
    for (size_t i = 0; i + 1 < uses.size(); ++i) {
      if (start_[uses[i + 1]] - start_[uses[i]] > start_[best.to] - start_[best.from]) best = {uses[i], uses[i + 1]};
    }
    return best;
  }
  bool relieves(const UnusedTime& gap) const {
    for (CallIndex call{gap.from + 1}; call < gap.to; ++call) {
      if (pressure_[call] > capacity_) return true;
    }
    return false;
  }

  const TaskGraph& graph_;
  uint64_t capacity_;
  std::vector<uint64_t> pressure_;  // call -> chunks
  std::vector<uint64_t> start_;
  std::vector<std::vector<uint32_t>> uses_;
};

class Chosen : public VictimChooser {
 public:
  explicit Chosen(std::map<uint32_t, std::vector<Leaving>> leaving) : leaving_(std::move(leaving)) {}
  std::vector<Leaving> leaving(const WalkState& state) override {
    std::vector<Leaving> result;
    const auto found = leaving_.find(state.call);
    if (found == leaving_.end()) return result;
    for (const Leaving& entry : found->second) {
      if (state.tensors[entry.tensor].resident) result.push_back(entry);
    }
    return result;
  }
  std::vector<uint32_t> choose(const WalkState& state, uint64_t needed) override {
    std::vector<uint32_t> order = least_recently_used(state, kNever);
    std::stable_partition(order.begin(), order.end(),
                          [&](uint32_t tensor) { return !is_persistent(state.graph->tensors[tensor]); });
    std::vector<uint32_t> victims;
    for (uint64_t have = 0; have < needed; have += state.chunks(victims.back())) {
      victims.push_back(order[victims.size()]);
    }
    return victims;
  }

 private:
  std::map<uint32_t, std::vector<Leaving>> leaving_;
};

class FlashNeuron : public Policy {
 public:
  std::string_view name() const override { return "flashneuron"; }
  Schedule schedule(const PolicyInput& input) const override {
    Chosen chooser(LinearChoice(input.graph, input.capacity).choose());
    return walk(input.graph, {input.capacity, input.carry_visitors}, chooser);
  }
};

}  // namespace

const Policy& flashneuron_policy() {
  static const FlashNeuron& policy = *new FlashNeuron;
  return policy;
}

}  // namespace reprise::analyzer
