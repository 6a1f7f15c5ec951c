#include "analyzer/planner/home_search.h"

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "analyzer/base/parallel.h"
#include "analyzer/plan/vertex_kinds.h"

namespace reprise::analyzer {
namespace {

constexpr uint32_t kMostOthers = 8;       // tensors without a part in the wait that are placed anew, too
constexpr uint32_t kTriesPerPlay = 6;     // layouts that are looked for, for each that is simulated
constexpr double kSlowerAtFirst = 0.003;  // so much slower than the one before a layout may be at first

class HomeSearch {
 public:
  HomeSearch(const TaskGraph& graph, const Machine& machine, PlanCandidate& best)
      : graph_(graph), machine_(machine), best_(best) {
    for (uint32_t t = 0; t < graph.tensors.size(); ++t) {
      if (best.layout.homes[t] != kNone && plan::root_of(graph.tensors, t) == t) tensors_.push_back(t);
    }
    options_.critical_path = true;
    now_ = best;
    now_.prediction = simulate(graph, now_.graph, machine, options_);
    look();
  }

  // Threshold accepting: at first a layout may be a little slower than the one before, later on less and less.
  //
  // Several processors look at as many layouts, made of the same one. What they found is gone through in the order in
  // which one processor would have found it, up to the first that is kept: the next ones would be made of that. So
  // there are no more of them than it took on average until one was kept.
  uint32_t run(uint32_t tries) {
    uint32_t played = 0;
    uint32_t kept_count = 0;
    const uint32_t most = tries * kTriesPerPlay;
    for (uint32_t i = 0; i < most && played < tries && !waits_.empty();) {
      const size_t side_by_side = std::min<size_t>(processors(), std::max(i / (kept_count + 1), 1u));
      std::vector<Attempt> attempts(std::min<size_t>(side_by_side, most - i));
      for (Attempt& attempt : attempts) {
        attempt.moved = pick();
        attempt.random = random_;
      }
      in_parallel(attempts.size(), [&](size_t at) { make(attempts[at]); });
      for (Attempt& attempt : attempts) {
        ++i;
        random_ = attempt.random;
        if (!attempt.next) continue;
        const double left = 1.0 - static_cast<double>(played++) / tries;
        const auto allowed = static_cast<double>(now_.prediction.iteration_ns) * (1 + kSlowerAtFirst * left);
        const bool kept = static_cast<double>(attempt.next->prediction.iteration_ns) <= allowed;
        if (kept) ++kept_count;
        if (kept) keep(std::move(*attempt.next));
        if (kept || played == tries) break;
      }
    }
    return played;
  }

 private:
  // One of the layouts that are looked at side by side.
  struct Attempt {
    std::vector<uint32_t> moved;
    std::mt19937_64 random;             // after the choice of these
    std::optional<PlanCandidate> next;  // nullopt: there was no room, or nothing has moved
  };

  void keep(PlanCandidate next) {
    now_ = std::move(next);
    if (now_.prediction.iteration_ns < best_.prediction.iteration_ns) best_ = now_;
    look();
  }

  void look() {
    times_ = start_times(graph_, now_);
    waits_.clear();
    for (const CriticalStep& cause : now_.prediction.critical_path) {
      if (is_memory(cause)) waits_.push_back(cause);
    }
  }

  // Does the vertex wait for chunks?
  bool is_memory(const CriticalStep& cause) const {
    const std::vector<plan::Predecessor>& all = now_.graph.vertices[cause.vertex].predecessors;
    return std::any_of(all.begin(), all.end(), [&](const plan::Predecessor& p) {
      return p.vertex == cause.before && p.kind == plan::EdgeKind::memory;
    });
  }

  // Another layout of the same schedule.
  void make(Attempt& attempt) const {
    Schedule schedule = now_.schedule;
    std::optional<Layout> layout =
        place_again(graph_, schedule, static_cast<uint32_t>(now_.recipe.chunks), now_.layout, attempt.moved, times_);
    if (!layout || same_homes(*layout)) return;
    PlanCandidate& next = attempt.next.emplace();
    next.schedule = std::move(schedule);
    next.recipe = now_.recipe;
    next.policy = now_.policy;
    next.tiers = now_.tiers;
    next.layout = std::move(*layout);
    next.graph = build_mem_graph(graph_, next.schedule, next.layout);
    next.prediction = simulate(graph_, next.graph, machine_, options_);
  }

  bool same_homes(const Layout& layout) const {
    return std::all_of(tensors_.begin(), tensors_.end(), [&](uint32_t tensor) {
      return layout.placements[layout.homes[tensor]].chunks == now_.layout.placements[now_.layout.homes[tensor]].chunks;
    });
  }

  // Returns the tensor that waits, the one that had its chunks, and a few others, in this order.
  std::vector<uint32_t> pick() {
    const CriticalStep wait = waits_[below(waits_.size())];
    std::vector<uint32_t> moved;
    for (const plan::Acquire& acquire : now_.graph.vertices[wait.vertex].acquires) add(moved, acquire.tensor);
    const size_t waiting = moved.size();
    for (const uint32_t tensor : tensors_of(wait.before)) {
      const auto shares = [&](uint32_t other) { return shares_chunks(tensor, other); };
      if (std::any_of(moved.begin(), moved.begin() + static_cast<std::ptrdiff_t>(waiting), shares)) add(moved, tensor);
    }
    if (below(2) == 0) std::reverse(moved.begin(), moved.end());
    for (uint64_t others = below(kMostOthers + 1); others > 0; --others) add(moved, tensors_[below(tensors_.size())]);
    return moved;
  }

  void add(std::vector<uint32_t>& moved, uint32_t tensor) const {
    tensor = plan::root_of(graph_.tensors, tensor);
    if (now_.layout.homes[tensor] == kNone || std::find(moved.begin(), moved.end(), tensor) != moved.end()) return;
    moved.push_back(tensor);
  }

  std::vector<uint32_t> tensors_of(uint32_t vertex) const {
    const plan::Vertex& entry = now_.graph.vertices[vertex];
    if (entry.tensor != kNone) return {entry.tensor};
    return graph_.calls[entry.call].operands;
  }

  bool shares_chunks(uint32_t a, uint32_t b) const {
    a = plan::root_of(graph_.tensors, a);
    b = plan::root_of(graph_.tensors, b);
    if (now_.layout.homes[a] == kNone || now_.layout.homes[b] == kNone) return false;
    const std::vector<uint32_t>& of_a = now_.layout.placements[now_.layout.homes[a]].chunks;
    const std::vector<uint32_t>& of_b = now_.layout.placements[now_.layout.homes[b]].chunks;
    return std::any_of(of_a.begin(), of_a.end(),
                       [&](uint32_t chunk) { return std::binary_search(of_b.begin(), of_b.end(), chunk); });
  }

  uint64_t below(uint64_t count) { return random_() % count; }

  const TaskGraph& graph_;
  const Machine& machine_;
  PlanCandidate& best_;
  PlanCandidate now_;  // which the next layout is made of
  std::mt19937_64 random_{1};
  SimulationOptions options_;
  std::vector<uint32_t> tensors_;  // those with a home, the first of their lives
  std::vector<uint64_t> times_;
  std::vector<CriticalStep> waits_;  // for memory, on the critical path
};

}  // namespace

std::vector<uint64_t> start_times(const TaskGraph& graph, const PlanCandidate& candidate) {
  std::vector<int64_t> starts(graph.calls.size(), 0);
  for (size_t v = 0; v < candidate.graph.vertices.size(); ++v) {
    const plan::Vertex& vertex = candidate.graph.vertices[v];
    if (vertex.call != kNone && plan::runs_op(vertex.kind)) {
      starts[vertex.call] = candidate.prediction.start_ns[v];
    }
  }
  std::vector<uint64_t> times = {0};
  for (CallIndex call{1}; call < starts.size(); ++call) {
    times.push_back(std::max(times.back() + 1, static_cast<uint64_t>(std::max<int64_t>(starts[call], 0))));
  }
  times.push_back(std::max(times.back() + 1, candidate.prediction.iteration_ns));
  return times;
}

uint32_t search_homes(const TaskGraph& graph, const Machine& machine, uint32_t tries, PlanCandidate& best) {
  return HomeSearch(graph, machine, best).run(tries);
}

}  // namespace reprise::analyzer
