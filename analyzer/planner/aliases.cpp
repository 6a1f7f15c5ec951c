#include "analyzer/planner/aliases.h"

#include <algorithm>
#include <vector>

#include "analyzer/base/indices.h"
#include "analyzer/plan/vertex_kinds.h"

namespace reprise::analyzer {
namespace {

class Aliases {
 public:
  explicit Aliases(plan::Plan& plan)
      : plan_(plan),
        uses_(plan.tensors.size()),
        moves_(plan.tensors.size()),
        strays_(plan.calls.size() + 1, 0),
        wanders_(plan.tensors.size(), false) {
    for (CallIndex call{0}; call < plan.calls.size(); ++call) {
      const plan::Call& entry = plan.calls[call];
      const bool strays = entry.kind == plan::CallKind::op && !plan::touches_only_operands(entry);
      strays_[call + 1] = strays_[call] + (strays ? 1 : 0);
    }
    for (const uint32_t vertex : plan.order) collect(plan.vertices[vertex]);
    for (std::vector<uint32_t>& uses : uses_) std::sort(uses.begin(), uses.end());
  }

  void run() {
    for (uint32_t tensor = 0; tensor < plan_.tensors.size(); ++tensor) {
      plan_.tensors[tensor].aliased = may_alias(tensor);
    }
  }

 private:
  // A move lies behind the uses that come before it in the plan's order, which is one that its edges allow: all uses of
  // a tensor and its moves are ordered by these.
  void collect(const plan::Vertex& vertex) {
    for (const plan::Acquire& acquire : vertex.acquires) {
      if (acquire.placement != plan_.tensors[acquire.tensor].home) wanders_[acquire.tensor] = true;
    }
    if (plan::copies(vertex.kind)) {
      moves_[vertex.tensor].push_back(static_cast<uint32_t>(uses_[vertex.tensor].size()));
    }
    if (!plan::runs_op(vertex.kind)) return;
    for (const plan::OpAccess& access : plan_.calls[vertex.call].accesses) {
      std::vector<uint32_t>& uses = uses_[access.tensor];
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
    if (!persistent && (stray(what.allocate_call, uses.front()) || stray(uses.back(), what.free_call))) return false;
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
  std::vector<std::vector<uint32_t>> uses_;   // by tensor: calls of ops, ascending
  std::vector<std::vector<uint32_t>> moves_;  // by tensor: of each offload and reload, how many uses come before it
  std::vector<uint32_t> strays_;              // by call: how many before it may touch more than their operands
  std::vector<bool> wanders_;                 // by tensor: has a place that is not its home
};

}  // namespace

void set_aliases(plan::Plan& plan) {
  // Without any audited launch the plan is a strict one, to the byte.
  const auto audited = [](const plan::Call& call) { return call.audited != 0; };
  if (std::any_of(plan.calls.begin(), plan.calls.end(), audited)) Aliases(plan).run();
}

}  // namespace reprise::analyzer
