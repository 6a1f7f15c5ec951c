#include "analyzer/taskgraph/recompute_candidates.h"

#include <algorithm>

#include "analyzer/taskgraph/recompute_uses.h"

namespace reprise::analyzer {
namespace {

constexpr size_t kMostOthers = 4;  // a longer chain is rarely worth it

class Finder {
 public:
  explicit Finder(const TaskGraph& graph) : graph_(graph), uses_(graph) {}

  std::vector<Relaunch> run() {
    std::vector<Relaunch> found;
    for (uint32_t call = 0; call < graph_.calls.size(); ++call) {
      if (!uses_.repeatable(call)) continue;
      Relaunch candidate = candidate_of(call);
      if (candidate.before == kNone) continue;
      candidate.cost_ns = graph_.calls[call].call.duration_ns;
      if (add_others(call, candidate)) found.push_back(std::move(candidate));
    }
    return found;
  }

 private:
  Relaunch candidate_of(uint32_t call) const {
    Relaunch candidate;
    candidate.call = call;
    const RelaunchUses::Idle idle = uses_.longest_idle(call);
    candidate.before = idle.before;
    candidate.idle_ns = idle.ns;
    for (const plan::Access& access : graph_.calls[call].call.accesses) {
      if (writes(access) && is_idle(access.tensor, candidate)) candidate.bytes += graph_.tensors[access.tensor].size;
    }
    return candidate;
  }

  // Unused for most of the time that the candidate is about, and used behind it.
  bool is_idle(uint32_t tensor, const Relaunch& candidate) const {
    if (candidate.before == kNone || graph_.tensors[tensor].chunk_count == 0) return false;
    const std::vector<uint32_t>& uses = uses_.uses(tensor);
    const auto next = std::lower_bound(uses.begin(), uses.end(), candidate.before);
    if (next == uses.begin() || next == uses.end()) return false;
    return 2 * uses_.time_between(*std::prev(next), candidate.before) > candidate.idle_ns;
  }

  // What the op reads must be there again: unchanged and still needed, or made again.
  bool add_others(uint32_t call, Relaunch& candidate) const {
    for (const plan::Access& access : graph_.calls[call].call.accesses) {
      if (!reads(access)) continue;
      if (uses_.written_between(access.tensor, call, candidate.before)) return false;
      if (uses_.needed_at(access.tensor, candidate.before)) continue;
      const uint32_t maker = uses_.maker(access.tensor);
      if (maker == kNone || !uses_.repeatable(maker)) return false;
      std::vector<uint32_t>& others = candidate.others;
      if (std::find(others.begin(), others.end(), maker) != others.end()) continue;
      if (others.size() == kMostOthers) return false;
      others.push_back(maker);
      candidate.cost_ns += graph_.calls[maker].call.duration_ns;
      if (!add_others(maker, candidate)) return false;
    }
    return true;
  }

  const TaskGraph& graph_;
  RelaunchUses uses_;
};

}  // namespace

std::vector<Relaunch> relaunch_candidates(const TaskGraph& graph) { return Finder(graph).run(); }

}  // namespace reprise::analyzer
