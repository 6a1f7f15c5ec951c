#include "analyzer/bounds/periods.h"

#include <algorithm>

namespace reprise::analyzer {
namespace {

struct PeriodUse {
  OpIndex op;
  bool writes;
};

class VitalityFinder {
 public:
  explicit VitalityFinder(const TaskGraph& graph)
      : graph_(graph), uses_(graph.tensors.size()), freed_(graph.tensors.size()) {
    for (CallIndex call{0}; call < graph.calls.size(); ++call) {
      const GraphCall& entry = graph.calls[call];
      const OpIndex op{static_cast<uint32_t>(result_.call_of_op.size())};
      if (entry.call.kind == plan::CallKind::free) freed_[entry.call.tensor] = op;
      if (entry.call.kind != plan::CallKind::op) continue;
      result_.call_of_op.push_back(call);
      for (const uint32_t tensor : entry.operands) {
        uses_[tensor].push_back({op, std::binary_search(entry.writes.begin(), entry.writes.end(), tensor)});
      }
    }
  }

  Vitality run() {
    ops_ = static_cast<uint32_t>(result_.call_of_op.size());
    std::vector<int64_t> change(size_t{ops_} + 1, 0);
    for (uint32_t tensor = 0; tensor < uses_.size(); ++tensor) {
      const auto bytes = static_cast<int64_t>(graph_.tensors[tensor].size);
      if (graph_.tensors[tensor].chunk_count == 0 || uses_[tensor].empty()) continue;
      const bool stays = is_persistent(graph_.tensors[tensor]);
      change[stays ? OpIndex{0} : uses_[tensor].front().op] += bytes;
      change[stays ? OpIndex{ops_} : freed_[tensor]] -= bytes;
      add_versions(tensor, stays);
    }
    int64_t alive = 0;
    for (OpIndex op{0}; op < ops_; ++op) {
      alive += change[op];
      result_.alive.push_back(static_cast<uint64_t>(alive));
    }
    return std::move(result_);
  }

 private:
  void add_versions(uint32_t tensor, bool stays) {
    std::vector<PeriodUse>& uses = uses_[tensor];
    bool written = true;
    if (!stays) {
      uses.front().writes = true;  // the memory was new
    } else {
      // From a write on, around the iteration.
      const auto first = std::find_if(uses.begin(), uses.end(), [](const PeriodUse& use) { return use.writes; });
      written = first != uses.end();
      if (written) std::rotate(uses.begin(), first, uses.end());
      for (size_t i = 1; i < uses.size(); ++i) {
        if (uses[i].op < uses[i - 1].op) uses[i].op += ops_;
      }
    }
    Version version{tensor, uses.front().op, !written, {}};
    for (size_t i = 0; i < uses.size(); ++i) {
      if (i > 0 && uses[i].writes) {
        finish(version);
        version = {tensor, uses[i].op, false, {}};
      }
      const bool last = i + 1 == uses.size();
      const OpIndex to = !last ? uses[i + 1].op : stays ? uses.front().op + ops_ : freed_[tensor];
      if (to > uses[i].op + 1) version.periods.push_back({uses[i].op, to, last && !stays});
    }
    finish(version);
  }

  void finish(Version& version) {
    if (version.periods.empty()) return;
    const uint32_t back = version.written / ops_ * ops_;
    version.written -= back;
    for (Period& period : version.periods) {
      period.from -= back;
      period.to -= back;
    }
    result_.versions.push_back(version);
  }

  const TaskGraph& graph_;
  std::vector<std::vector<PeriodUse>> uses_;  // by tensor
  std::vector<OpIndex> freed_;                // tensor -> number of ops before its free
  uint32_t ops_ = 0;
  Vitality result_;
};

}  // namespace

Vitality vitality_of(const TaskGraph& graph) { return VitalityFinder(graph).run(); }

}  // namespace reprise::analyzer
