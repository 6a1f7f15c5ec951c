#include "analyzer/rewrite/choose_recompute.h"

#include <algorithm>
#include <map>

#include "analyzer/bounds/bounds.h"
#include "analyzer/policies/policy.h"
#include "analyzer/rewrite/recompute.h"
#include "analyzer/schedule/retime.h"
#include "analyzer/schedule/tiers.h"
#include "analyzer/taskgraph/recompute_candidates.h"

namespace reprise::analyzer {
namespace {

constexpr uint64_t kMostOps = 200'000;  // played in all tries together
constexpr size_t kSteps = 20;           // of the first, coarse look
constexpr size_t kMostTries = 120;
constexpr uint64_t kForever = ~uint64_t{0};
constexpr double kAlike = 0.04;  // rates that differ by less are one rung of the ladder

class Ladder {
 public:
  Ladder(const TaskGraph& graph, const Machine& machine, uint64_t capacity,
         const std::function<TaskGraph(const TaskGraph&)>& rewrite, const Machine* guarded)
      : graph_(graph),
        machine_(machine),
        capacity_(capacity),
        rewrite_(rewrite),
        guarded_(guarded),
        candidates_(recompute_candidates(graph)) {
    // Chains are left out: several ops that run again for one tensor are dearer than the link.
    std::erase_if(candidates_, [](const RecomputeCandidate& c) { return !c.others.empty(); });
    sort_rungs();
  }

  static size_t most_tries(const TaskGraph& graph) {
    return std::min<size_t>(kMostTries, kMostOps / std::max(graph.op_count, 1u));
  }

  std::vector<uint32_t> choose() {
    const size_t tries = most_tries(graph_);
    if (candidates_.empty()) return {};
    const size_t step = std::max<size_t>(1, candidates_.size() / kSteps);
    for (size_t count = 0; count < candidates_.size() + step; count += step) attempt(count);
    // Around the best one, in ever smaller steps.
    for (size_t width = step / 2; width > 0 && times_.size() < tries; width /= 2) {
      for (const bool up : {false, true}) {
        while (times_.size() < tries && better_at(width, up)) {
        }
      }
    }
    return calls(best_);
  }

 private:
  static double rate(const RecomputeCandidate& c) {
    return static_cast<double>(c.bytes) / static_cast<double>(c.cost_ns + 1);
  }

  // Rungs of like rates, the highest first; within a rung, what would be away longest first.
  void sort_rungs() {
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const RecomputeCandidate& a, const RecomputeCandidate& b) { return rate(a) > rate(b); });
    for (auto begin = candidates_.begin(); begin != candidates_.end();) {
      const double lowest = rate(*begin) * (1 - kAlike);
      const auto end =
          std::find_if(begin, candidates_.end(), [&](const RecomputeCandidate& c) { return rate(c) < lowest; });
      std::stable_sort(begin, end,
                       [](const RecomputeCandidate& a, const RecomputeCandidate& b) { return a.idle_ns > b.idle_ns; });
      begin = end;
    }
  }

  std::vector<uint32_t> calls(size_t count) const {
    std::vector<uint32_t> chosen;
    for (size_t i = 0; i < std::min(count, candidates_.size()); ++i) chosen.push_back(candidates_[i].call);
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  }

  bool better_at(size_t width, bool up) {
    if (!up && best_ < width) return false;
    const size_t count = up ? std::min(best_ + width, candidates_.size()) : best_ - width;
    const size_t before = best_;
    if (!times_.contains(count)) attempt(count);
    return best_ != before;
  }

  void attempt(size_t count) {
    count = std::min(count, candidates_.size());
    if (times_.contains(count)) return;
    TaskGraph graph = with_recompute(graph_, calls(count), guarded_);
    if (rewrite_) graph = rewrite_(graph);
    uint64_t fastest = kForever;
    for (const Policy* policy : {&link_aware_policy(), &gemini_policy(), &g10_late_policy(), &lru_policy()}) {
      if (largest_working_set(graph).chunks > capacity_) break;
      Schedule schedule = policy->schedule({graph, machine_, capacity_, true});
      if (!assign_tiers(graph, machine_, schedule).fits) continue;
      const uint64_t time = retime(graph, machine_, schedule, capacity_).iteration_ns;
      if (time != 0) fastest = std::min(fastest, time);
    }
    times_[count] = fastest;
    if (fastest < time_ || (fastest == time_ && count < best_)) {
      time_ = fastest;
      best_ = count;
    }
  }

  const TaskGraph& graph_;
  const Machine& machine_;
  uint64_t capacity_;
  const std::function<TaskGraph(const TaskGraph&)>& rewrite_;
  const Machine* guarded_;
  std::vector<RecomputeCandidate> candidates_;
  std::map<size_t, uint64_t> times_;  // number of candidates -> time
  size_t best_ = 0;
  uint64_t time_ = kForever;
};

}  // namespace

std::vector<uint32_t> choose_recompute(const TaskGraph& graph, const Machine& machine, uint64_t capacity,
                                       const std::function<TaskGraph(const TaskGraph&)>& rewrite,
                                       const Machine* guarded) {
  if (Ladder::most_tries(graph) < kSteps) return {};
  return Ladder(graph, machine, capacity, rewrite, guarded).choose();
}

}  // namespace reprise::analyzer
