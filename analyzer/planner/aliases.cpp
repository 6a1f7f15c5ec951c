#include "analyzer/planner/aliases.h"

#include <algorithm>
#include <vector>

#include "analyzer/base/indices.h"
#include "analyzer/plan/vertex_kinds.h"

namespace reprise::analyzer {
namespace {

// The lives of a tensor that is recomputed have one range, so they are one tensor here, the first; a drop is a move.
class Aliases {
 public:
  explicit Aliases(plan::Plan& plan)
      : plan_(plan),
        last_life_(plan.tensors.size()),
        uses_(plan.tensors.size()),
        moves_(plan.tensors.size()),
        strays_(plan.calls.size() + 1, 0),
        wanders_(plan.tensors.size(), false) {
    for (CallIndex call{0}; call < plan.calls.size(); ++call) {
      strays_[call + 1] = strays_[call] + (plan::may_stray(plan.calls[call]) ? 1 : 0);
    }
    for (uint32_t tensor = 0; tensor < plan.tensors.size(); ++tensor) last_life_[root(tensor)] = tensor;
    for (const uint32_t vertex : plan.order) collect(plan.vertices[vertex]);
    for (std::vector<uint32_t>& uses : uses_) std::sort(uses.begin(), uses.end());
  }

  void run() {
    for (uint32_t tensor = 0; tensor < plan_.tensors.size(); ++tensor) {
      const uint32_t first = root(tensor);
      plan_.tensors[tensor].aliased = first == tensor ? may_alias(tensor) : plan_.tensors[first].aliased;
    }
  }

 private:
  uint32_t root(uint32_t tensor) const { return plan::root_of(plan_.tensors, tensor); }

  // A move lies behind the uses that come before it in the plan's order, which is one that its edges allow: all uses of
  // a tensor and its moves are ordered by these.
  void collect(const plan::Vertex& vertex) {
    for (const plan::Acquire& acquire : vertex.acquires) {
      const uint32_t first = root(acquire.tensor);
      if (acquire.placement != plan_.tensors[first].home) wanders_[first] = true;
    }
    if (plan::copies(vertex.kind) || (plan::frees(vertex.kind) && last_life_[root(vertex.tensor)] != vertex.tensor)) {
      const uint32_t first = root(vertex.tensor);
      moves_[first].push_back(static_cast<uint32_t>(uses_[first].size()));
    }
    if (!plan::runs_op(vertex.kind)) return;
    for (const plan::OpAccess& access : plan_.calls[vertex.call].accesses) {
      std::vector<uint32_t>& uses = uses_[root(access.tensor)];
      if (uses.empty() || uses.back() != vertex.call) uses.push_back(vertex.call);
    }
  }

  // Of the calls in (after, before).
  bool stray(uint32_t after, uint32_t before) const { return strays_[before] != strays_[after + 1]; }
  bool stray_until_end(uint32_t after) const { return strays_.back() != strays_[after + 1]; }
  bool stray_before(CallIndex call) const { return strays_[call] != 0; }

  bool may_alias(uint32_t tensor) const {
    const plan::Tensor& what = plan_.tensors[tensor];
    const std::vector<uint32_t>& uses = uses_[tensor];
    if (what.home == kNone || uses.empty() || wanders_[tensor]) return false;
    const bool persistent = what.allocate_call == kNone;
    const uint32_t free_call = plan_.tensors[last_life_[tensor]].free_call;
    if (!persistent && (stray(what.allocate_call, uses.front()) || stray(uses.back(), free_call))) return false;
    for (const uint32_t before : moves_[tensor]) {
      const bool between = before > 0 && before < uses.size();
      if (between && stray(uses[before - 1], uses[before])) return false;
      // From the last use of one iteration to the first one of the next.
      if (!between && persistent && (stray_until_end(uses.back()) || stray_before(CallIndex(uses.front()))))
        return false;
    }
    return true;
  }

  plan::Plan& plan_;
  std::vector<uint32_t> last_life_;          // by tensor that is a first one
  std::vector<std::vector<uint32_t>> uses_;  // by tensor: calls of ops, ascending
  std::vector<std::vector<uint32_t>>
      moves_;                     // by tensor: of each offload, reload and drop, how many uses come before it
  std::vector<uint32_t> strays_;  // by call: how many before it may touch more than their operands
  std::vector<bool> wanders_;     // by tensor: has a place that is not its home
};

}  // namespace

void set_aliases(plan::Plan& plan) {
  // Without any audited launch the plan is a strict one, to the byte.
  const auto audited = [](const plan::Call& call) { return call.audited != 0; };
  if (std::any_of(plan.calls.begin(), plan.calls.end(), audited)) Aliases(plan).run();
}

}  // namespace reprise::analyzer
