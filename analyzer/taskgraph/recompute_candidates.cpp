#include "analyzer/taskgraph/recompute_candidates.h"

#include <algorithm>

#include "analyzer/taskgraph/recompute_uses.h"

namespace reprise::analyzer {
namespace {

constexpr size_t kMostOthers = 4;  // a longer chain is rarely worth it

class RecomputeFinder {
 public:
  explicit RecomputeFinder(const TaskGraph& graph) : graph_(graph), uses_(graph) {}

  std::vector<RecomputeCandidate> run() {
    std::vector<RecomputeCandidate> found;
    for (CallIndex call{0}; call < graph_.calls.size(); ++call) {
      if (!uses_.repeatable(call)) continue;
      RecomputeCandidate candidate = candidate_of(call);
      if (candidate.before == kNone) continue;
      candidate.cost_ns = graph_.calls[call].call.duration_ns;
      if (add_others(call, candidate)) found.push_back(std::move(candidate));
    }
    return found;
  }

 private:
  RecomputeCandidate candidate_of(CallIndex call) const {
    RecomputeCandidate candidate;
    candidate.call = call;
    const RecomputeUses::Idle idle = uses_.longest_idle(call);
    candidate.before = idle.before;
    candidate.idle_ns = idle.ns;
    for (const plan::OpAccess& access : graph_.calls[call].call.accesses) {
      if (changes(access) && is_idle(access.tensor, candidate)) candidate.bytes += graph_.tensors[access.tensor].size;
    }
    return candidate;
  }

  // Unused for most of the time that the candidate is about, and used behind it.
  bool is_idle(uint32_t tensor, const RecomputeCandidate& candidate) const {
    if (candidate.before == kNone || graph_.tensors[tensor].chunk_count == 0) return false;
    const std::vector<CallIndex>& uses = uses_.uses(tensor);
    const auto next = std::lower_bound(uses.begin(), uses.end(), candidate.before);
    if (next == uses.begin() || next == uses.end()) return false;
    return 2 * uses_.time_between(*std::prev(next), candidate.before) > candidate.idle_ns;
  }

  // What the op reads must be there: unchanged and still needed, or recomputed.
  bool add_others(CallIndex call, RecomputeCandidate& candidate) const {
    for (const plan::OpAccess& access : graph_.calls[call].call.accesses) {
      if (!reads(access)) continue;
      if (uses_.written_between(access.tensor, call, candidate.before)) return false;
      // A small one is kept until then, even if the program frees it before.
      if (uses_.needed_at(access.tensor, candidate.before) || graph_.tensors[access.tensor].chunk_count == 0) continue;
      const CallIndex maker = uses_.maker(access.tensor);
      if (maker == kNone || !uses_.repeatable(maker)) return false;
      std::vector<CallIndex>& others = candidate.others;
      if (std::find(others.begin(), others.end(), maker) != others.end()) continue;
      if (others.size() == kMostOthers) return false;
      others.push_back(maker);
      candidate.cost_ns += graph_.calls[maker].call.duration_ns;
      if (!add_others(maker, candidate)) return false;
    }
    return true;
  }

  const TaskGraph& graph_;
  RecomputeUses uses_;
};

}  // namespace

std::vector<RecomputeCandidate> recompute_candidates(const TaskGraph& graph) { return RecomputeFinder(graph).run(); }

}  // namespace reprise::analyzer
