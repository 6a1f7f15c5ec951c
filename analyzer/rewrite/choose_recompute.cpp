#include "analyzer/rewrite/choose_recompute.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "analyzer/bounds/bounds.h"
#include "analyzer/bounds/fluid.h"
#include "analyzer/policies/policy.h"
#include "analyzer/rewrite/recompute.h"
#include "analyzer/schedule/retime.h"
#include "analyzer/schedule/tiers.h"
#include "analyzer/taskgraph/recompute_candidates.h"

namespace reprise::analyzer {
namespace {

constexpr uint64_t kMostOps = 200'000;  // played in all tries together
constexpr size_t kSteps = 20;           // of the first, coarse look
constexpr size_t kMostTries = 240;
constexpr size_t kMostSets = 4;          // of a small graph: which one finds the best places is luck
constexpr size_t kMostOfFluid = 2;       // and of those that the fluid bound gives
constexpr uint64_t kWorthATry = 33;      // sets that take longer than the best one by this part of its time are not
constexpr uint32_t kFluidSegments = 24;  // as the policy `fluid` has: more take much longer
constexpr double kFluidParts[] = {0.9, 0.75, 0.6, 0.5, 0.4, 0.3, 0.2};
constexpr uint64_t kForever = ~uint64_t{0};

// Candidates are alike when their ops are of one kernel and shape, and free as much: those of a model's layers are. How
// many of each kind are taken, those first that are away longest, is what is searched.
//
//   first    all of the kind that frees most bytes per second, then of the next one, ...: as many as are fastest
//   then     a few more or fewer of each kind by itself, in ever smaller steps
//
// Which of a kind are taken depends on others, too: on what still needs their inputs, and when. The fluid bound sees
// that. Those of which it recomputes at least some part are further sets of a small graph.
class SetSearch {
 public:
  SetSearch(const TaskGraph& graph, const Machine& machine, uint64_t capacity,
            const std::function<TaskGraph(const TaskGraph&)>& rewrite, const Machine* guarded)
      : graph_(graph),
        machine_(machine),
        capacity_(capacity),
        rewrite_(rewrite),
        guarded_(guarded),
        candidates_(recompute_candidates(graph)) {
    sort_kinds();
  }

  static size_t most_tries(const TaskGraph& graph) {
    return std::min<size_t>(kMostTries, kMostOps / std::max(graph.op_count, 1u));
  }

  std::vector<std::vector<uint32_t>> choose() {
    if (candidates_.empty()) return {};
    tries_ = most_tries(graph_);
    const bool small = tries_ == kMostTries;
    search_kinds();
    if (small) ask_fluid();
    return fastest(small ? kMostSets : 1);
  }

 private:
  using Taken = std::vector<size_t>;  // by kind
  using Set = std::vector<uint32_t>;  // calls, ascending
  struct TimedSet {
    uint64_t time = 0;
    Set set;
    bool of_fluid = false;
  };

  void search_kinds() {
    const size_t step = std::max<size_t>(1, candidates_.size() / kSteps);
    for (size_t count = 0; count < candidates_.size() + step; count += step) attempt(first_ones(count));
    for (double part = 1; tries_ > 0 && part > 0.01; part /= 2) {
      while (improve(part) && tries_ > 0) {
      }
    }
  }

  // Without a solver there are no such sets.
  void ask_fluid() {
    FluidOptions options;
    options.segments = kFluidSegments;
    options.guarded = guarded_ != nullptr;
    const Result<Fluid> fluid = solve_fluid(graph_, capacity_ * graph_.chunk_bytes, machine_, options, candidates_);
    if (!fluid.ok()) return;
    for (const double least : kFluidParts) {
      Set set;
      for (size_t c = 0; c < candidates_.size(); ++c) {
        if (fluid.value().recompute[c] >= least) set.push_back(candidates_[c].call);
      }
      tries_ = 1;
      attempt(set, true);
    }
  }

  // Of both origins at most `most`, fastest first.
  std::vector<Set> fastest(size_t most) {
    std::stable_sort(found_.begin(), found_.end(),
                     [](const TimedSet& a, const TimedSet& b) { return a.time < b.time; });
    std::vector<Set> sets;
    size_t taken[2] = {0, 0};
    for (const TimedSet& one : found_) {
      if (one.time > found_.front().time + found_.front().time / kWorthATry) break;
      if (one.set.empty() || taken[one.of_fluid] == (one.of_fluid ? kMostOfFluid : most)) continue;
      ++taken[one.of_fluid];
      sets.push_back(one.set);
    }
    return sets;
  }

  double rate(const RecomputeCandidate& c) const {
    uint64_t cost = c.cost_ns + guards_ns(c.call);
    for (const CallIndex other : c.others) cost += guards_ns(other);
    return static_cast<double>(c.bytes) / static_cast<double>(cost + 1);
  }

  uint64_t guards_ns(CallIndex call) const {
    const plan::Call& op = graph_.calls[call].call;
    return guarded_ == nullptr ? 0 : recompute_guards_ns(graph_, op, op, *guarded_);
  }

  void sort_kinds() {
    std::map<std::tuple<uint64_t, std::string, uint64_t, size_t>, std::vector<RecomputeCandidate>> kinds;
    for (RecomputeCandidate& c : candidates_) {
      const plan::Call& call = graph_.calls[c.call].call;
      kinds[{call.signature, call.name, c.bytes, c.others.size()}].push_back(c);
    }
    for (auto& [kind, members] : kinds) {
      std::stable_sort(members.begin(), members.end(),
                       [](const RecomputeCandidate& a, const RecomputeCandidate& b) { return a.idle_ns > b.idle_ns; });
      kinds_.push_back(std::move(members));
    }
    std::stable_sort(kinds_.begin(), kinds_.end(),
                     [&](const auto& a, const auto& b) { return rate(a.front()) > rate(b.front()); });
  }

  Taken first_ones(size_t count) const {
    Taken taken;
    for (const auto& kind : kinds_) {
      taken.push_back(std::min(count, kind.size()));
      count -= taken.back();
    }
    return taken;
  }

  Set calls(const Taken& taken) const {
    Set chosen;
    for (size_t kind = 0; kind < taken.size(); ++kind) {
      for (size_t i = 0; i < taken[kind]; ++i) chosen.push_back(kinds_[kind][i].call);
    }
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  }

  // Of each kind that part more or less than in the best one so far. Was there a better one?
  bool improve(double part) {
    const uint64_t before = time_;
    for (size_t kind = 0; kind < kinds_.size(); ++kind) {
      const size_t size = kinds_[kind].size();
      const size_t width = std::max<size_t>(1, static_cast<size_t>(part * static_cast<double>(size)));
      for (const bool more : {true, false}) {
        Taken taken = best_;
        taken[kind] = more ? std::min(taken[kind] + width, size) : taken[kind] - std::min(taken[kind], width);
        attempt(taken);
      }
    }
    return time_ < before;
  }

  void attempt(const Taken& taken) {
    const uint64_t before = time_;
    attempt(calls(taken), false);
    if (time_ < before) best_ = taken;
  }

  void attempt(const Set& set, bool of_fluid) {
    if (tries_ == 0 || !tried_.insert(set).second) return;
    --tries_;
    TaskGraph graph = with_recompute(graph_, set, guarded_);
    if (rewrite_) graph = rewrite_(graph);
    if (largest_working_set(graph).chunks > capacity_) return;
    uint64_t fastest = kForever;
    for (const Policy* policy : {&link_aware_policy(), &gemini_policy(), &g10_late_policy(), &lru_policy()}) {
      Schedule schedule = policy->schedule({graph, machine_, capacity_, true});
      if (!assign_tiers(graph, machine_, schedule).fits) continue;
      const uint64_t time = retime(graph, machine_, schedule, capacity_).iteration_ns;
      if (time != 0) fastest = std::min(fastest, time);
    }
    if (fastest != kForever) found_.push_back({fastest, set, of_fluid});
    time_ = std::min(time_, fastest);
  }

  const TaskGraph& graph_;
  const Machine& machine_;
  uint64_t capacity_;
  const std::function<TaskGraph(const TaskGraph&)>& rewrite_;
  const Machine* guarded_;
  std::vector<RecomputeCandidate> candidates_;
  std::vector<std::vector<RecomputeCandidate>> kinds_;  // those that free most bytes per second first
  std::set<Set> tried_;
  std::vector<TimedSet> found_;
  size_t tries_ = 0;  // that are left
  Taken best_;
  uint64_t time_ = kForever;
};

}  // namespace

std::vector<std::vector<uint32_t>> choose_recompute(const TaskGraph& graph, const Machine& machine, uint64_t capacity,
                                                    const std::function<TaskGraph(const TaskGraph&)>& rewrite,
                                                    const Machine* guarded) {
  if (SetSearch::most_tries(graph) < kSteps) return {};
  return SetSearch(graph, machine, capacity, rewrite, guarded).choose();
}

}  // namespace reprise::analyzer
