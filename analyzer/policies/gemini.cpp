// Colossal-AI's Gemini: model data (here: persistent tensors) makes room for the rest, the one that computes again last
// in this iteration first; before each of its operations there is room for the most that other data takes until the
// next one. Other data is never moved there; here it is, where nothing else is left, for a plan must exist.
#include <algorithm>

#include "analyzer/policies/policy.h"
#include "analyzer/schedule/walk.h"

namespace reprise::analyzer {
namespace {

class ModelData : public VictimChooser {
 public:
  explicit ModelData(const TaskGraph& graph) : ahead_(graph.calls.size(), 0) {
    // From the back: most of the other data alive between here and the next operation on model data.
    std::vector<uint64_t> alive(graph.calls.size(), 0);
    uint64_t now = 0;
    for (CallIndex call{0}; call < graph.calls.size(); ++call) {
      const plan::Call& entry = graph.calls[call].call;
      if (entry.kind == plan::CallKind::allocate) now += graph.tensors[entry.tensor].chunk_count;
      if (entry.kind == plan::CallKind::free) now -= graph.tensors[entry.tensor].chunk_count;
      alive[call] = now;
    }
    uint64_t most = 0;
    for (auto call = static_cast<uint32_t>(graph.calls.size()); call-- > 0;) {
      most = std::max(most, alive[call]);
      ahead_[call] = most - alive[call];
      if (uses_model_data(graph, CallIndex(call))) most = 0;
    }
  }

  std::vector<uint32_t> choose(const WalkState& state, uint64_t needed) override {
    std::vector<uint32_t> victims;
    uint64_t have = take(state, true, needed + ahead_[state.call], 0, victims);
    if (have < needed) take(state, false, needed, have, victims);
    return victims;
  }

 private:
  static bool uses_model_data(const TaskGraph& graph, CallIndex call) {
    const std::vector<uint32_t>& operands = graph.calls[call].operands;
    return std::any_of(operands.begin(), operands.end(), [&](uint32_t t) { return is_persistent(graph.tensors[t]); });
  }

  static uint64_t take(const WalkState& state, bool model, uint64_t wanted, uint64_t have,
                       std::vector<uint32_t>& victims) {
    // It looks no further than this iteration: what is used early in the next one counts as never.
    std::vector<std::pair<uint64_t, uint32_t>> order;
    for (const auto& [next, tensor] : state.by_next_use) {
      if (state.tensors[tensor].pinned || is_persistent(state.graph->tensors[tensor]) != model) continue;
      order.emplace_back(next >= state.graph->calls.size() ? 0 : state.graph->calls.size() - next, tensor);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [rank, tensor] : order) {
      if (have >= wanted) break;
      victims.push_back(tensor);
      have += state.chunks(tensor);
    }
    return have;
  }

  std::vector<uint64_t> ahead_;  // call -> chunks
};

class Gemini : public Policy {
 public:
  std::string_view name() const override { return "gemini"; }
  Schedule schedule(const PolicyInput& input) const override {
    ModelData chooser(input.graph);
    return walk(input.graph, {input.capacity, input.carry_visitors}, chooser);
  }
};

}  // namespace

const Policy& gemini_policy() {
  static const Gemini& policy = *new Gemini;
  return policy;
}

}  // namespace reprise::analyzer
