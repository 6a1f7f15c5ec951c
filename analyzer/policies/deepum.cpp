// DeepUM (ASPLOS 2023), as G10 simulates it (DeepUM+, with an SSD behind the host): unified memory whose driver has
// seen the iteration before and fetches what the next kernels used then; what was used least recently makes room, but
// nothing that those kernels need. Modelled: copies for an op begin when the eighth op before it begins, never earlier;
// the correlation tables know all of the iteration. Not modelled: wrong predictions and the faults that they cost,
// pages smaller than tensors, and the driver's time.
#include <algorithm>

#include "analyzer/policies/policy.h"
#include "analyzer/schedule/walk.h"

namespace reprise::analyzer {
namespace {

constexpr uint32_t kAhead = 8;  // kernels: the degree of prefetching in G10's runs

class Correlated : public VictimChooser {
 public:
  explicit Correlated(const TaskGraph& graph) : count_(graph.calls.size()) {
    for (CallIndex call{0}; call < graph.calls.size(); ++call) {
      if (graph.calls[call].call.kind == plan::CallKind::op) ops_.push_back(call);
    }
  }

  std::vector<uint32_t> choose(const WalkState& state, uint64_t needed) override {
    const uint64_t horizon = call_ahead(state.call);
    std::vector<uint32_t> victims;
    std::vector<uint32_t> wanted;
    uint64_t have = 0;
    for (const uint32_t tensor : least_recently_used(state, kNever)) {
      if (have >= needed) return victims;
      if (state.tensors[tensor].next_use <= horizon) {
        wanted.push_back(tensor);
        continue;
      }
      victims.push_back(tensor);
      have += state.chunks(tensor);
    }
    for (const uint32_t tensor : wanted) {
      if (have >= needed) break;
      victims.push_back(tensor);
      have += state.chunks(tensor);
    }
    return victims;
  }

 private:
  // Counted on into the next iteration, as uses are.
  uint64_t call_ahead(CallIndex call) const {
    const auto place = static_cast<size_t>(std::lower_bound(ops_.begin(), ops_.end(), call) - ops_.begin()) + kAhead;
    if (place < ops_.size()) return ops_[place];
    return count_ + ops_[place % ops_.size()];
  }

  uint64_t count_;
  std::vector<uint32_t> ops_;
};

class DeepUm : public Policy {
 public:
  std::string_view name() const override { return "deepum"; }
  Schedule schedule(const PolicyInput& input) const override {
    Correlated chooser(input.graph);
    WalkOptions options{input.capacity, input.carry_visitors};
    options.lead = kAhead - 1;
    return walk(input.graph, options, chooser);
  }
};

}  // namespace

const Policy& deepum_policy() {
  static const DeepUm& policy = *new DeepUm;
  return policy;
}

}  // namespace reprise::analyzer
