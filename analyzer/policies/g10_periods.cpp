#include "analyzer/policies/g10_periods.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <tuple>

#include "analyzer/policies/g10_link.h"

namespace reprise::analyzer {
namespace {

// Constants of the artifact: it plans to this part of the memory, reckons with the handling of a fault per migration,
// and wants a period to last this many times a copy out or back before it counts as hidden.
constexpr double kTarget = 0.99;
constexpr uint64_t kFaultNs = 45'000;
constexpr double kSafety = 2.5;

ByOp<CallIndex> ops_of(const TaskGraph& graph) {
  ByOp<CallIndex> ops;
  for (CallIndex call{0}; call < graph.calls.size(); ++call) {
    if (graph.calls[call].call.kind == plan::CallKind::op) ops.push_back(call);
  }
  return ops;
}

std::vector<uint64_t> durations(const TaskGraph& graph, const ByOp<CallIndex>& ops) {
  std::vector<uint64_t> result;
  result.reserve(ops.size());
  for (const CallIndex call : ops) result.push_back(graph.calls[call].call.duration_ns);
  return result;
}

class Planner {
 public:
  Planner(const TaskGraph& graph, const Machine& machine, uint64_t capacity)
      : graph_(graph),
        machine_(machine),
        capacity_(capacity),
        line_(static_cast<uint64_t>(kTarget * static_cast<double>(capacity))),
        plan_{{}, ops_of(graph)},
        ops_(static_cast<uint32_t>(plan_.call_of_op.size())),
        duration_(durations(graph, plan_.call_of_op)),
        host_(ops_, 0),
        out_(duration_, machine.d2h_bytes_per_s, machine.ssd_write_bytes_per_s),
        in_(duration_, machine.h2d_bytes_per_s, machine.ssd_read_bytes_per_s) {
    start_.push_back(0);
    for (uint32_t i = 0; i < 2 * ops_; ++i) start_.push_back(start_.back() + duration_[i % ops_]);
  }

  G10Plan plan() {
    if (ops_ > 0 && graph_.peak_chunks > capacity_) {
      find_periods();
      choose_periods();
      choose_reload_begins();
    }
    std::erase_if(periods_, [](const G10Period& period) { return !period.away; });
    plan_.periods = std::move(periods_);
    return std::move(plan_);
  }

 private:
  struct Benefit {
    double area = 0;
    double weight = 0;  // of two with equal area, the one with more bytes and time
    uint32_t period = 0;
    bool operator<(const Benefit& other) const {
      return std::tuple(area, weight, other.period) < std::tuple(other.area, other.weight, period);
    }
  };

  uint64_t chunks(const G10Period& period) const { return graph_.tensors[period.tensor].chunk_count; }
  double bytes(const G10Period& period) const { return static_cast<double>(graph_.tensors[period.tensor].size); }

  // Vitality: which tensors are alive when, and when each is not used. A persistent tensor's last period wraps around.
  void find_periods() {
    std::vector<std::vector<OpIndex>> uses(graph_.tensors.size());
    for (OpIndex op{0}; op < ops_; ++op) {
      for (const uint32_t tensor : graph_.calls[plan_.call_of_op[op]].operands) uses[tensor].push_back(op);
    }
    pressure_.assign(size_t{ops_} + 1, 0);  // changes first
    for (uint32_t t = 0; t < uses.size(); ++t) {
      const bool stays = is_persistent(graph_.tensors[t]);
      if (uses[t].empty()) continue;
      const OpIndex first = stays ? OpIndex{0} : uses[t].front();
      const OpIndex last = stays ? OpIndex{ops_ - 1} : uses[t].back();
      pressure_[first] += graph_.tensors[t].chunk_count;
      pressure_[last + 1] -= graph_.tensors[t].chunk_count;
      if (stays) uses[t].push_back(uses[t].front() + ops_);
      for (size_t i = 0; i + 1 < uses[t].size(); ++i) {
        // A gap of a single op is no period.
        if (uses[t][i + 1] > uses[t][i] + 2) periods_.push_back({{t, uses[t][i] + 1, uses[t][i + 1]}});
      }
    }
    std::partial_sum(pressure_.begin(), pressure_.end(), pressure_.begin());
    time_above_.assign(size_t{ops_} + 1, 0);
    for (OpIndex op{0}; op < ops_; ++op) {
      if (pressure_[op] <= line_) continue;
      ++above_;
      add_time_above(op, duration_[op]);
    }
  }

  // The ops of a time that may go on into the next iteration, by their place in one.
  template <typename Visit>
  void for_ops(OpIndex begin, OpIndex end, Visit&& visit) const {
    for (OpIndex at{begin % ops_}; begin < end; ++begin, at = at + 1 == ops_ ? OpIndex{0} : at + 1) visit(at);
  }

  void add_time_above(OpIndex op, uint64_t time) {
    for (uint32_t at = op + 1; at <= ops_; at += at & (~at + 1)) time_above_[at] += time;
  }
  // Of the ops before `op`, in two iterations.
  uint64_t time_above(OpIndex op) const {
    const auto sum = [&](uint32_t at) {
      uint64_t time = 0;
      for (; at > 0; at -= at & (~at + 1)) time += time_above_[at];
      return time;
    };
    return op < ops_ ? sum(op) : sum(ops_) + sum(op - ops_);
  }

  // The pressure above the line that an eviction takes away: from when half of it has left to when half of it is back.
  double area(const G10Period& period) const {
    const Tier tier = machine_.has_ssd() ? Tier::ssd : Tier::host;
    const OpIndex from = out_.forward(tier, bytes(period) / 2, period.begin, period.end);
    const OpIndex to = in_.backward(tier, bytes(period) / 2, period.begin, period.end);
    if (to == kNone || to <= from) return 0;
    return static_cast<double>(time_above(to) - time_above(from)) * static_cast<double>(chunks(period));
  }

  // Greatest benefit first. Benefits only fall as other tensors leave and the links fill, so an old value is an upper
  // bound and only the top of the queue needs a new one.
  void choose_periods() {
    std::priority_queue<Benefit> queue;
    for (uint32_t p = 0; p < periods_.size(); ++p) {
      const double time = static_cast<double>(start_[periods_[p].end] - start_[periods_[p].begin]);
      queue.push({area(periods_[p]), time * bytes(periods_[p]), p});
    }
    while (!queue.empty() && above_ > 0) {
      Benefit best = queue.top();
      queue.pop();
      const double now = area(periods_[best.period]);
      if (now <= 0) continue;
      best.area = now;
      if (!queue.empty() && best < queue.top()) {
        queue.push(best);
        continue;
      }
      evict(periods_[best.period]);
    }
  }

  void evict(G10Period& period) {
    const auto time = static_cast<double>(start_[period.end] - start_[period.begin]);
    const double ssd_ns = copy_ns(period, machine_.ssd_write_bytes_per_s, machine_.ssd_latency_ns);
    if (machine_.has_ssd() && time > kSafety * ssd_ns) {
      const auto ideal = static_cast<uint64_t>(static_cast<double>(start_[period.begin]) + ssd_ns);
      const auto done = std::upper_bound(start_.begin(), start_.end(), ideal) - start_.begin() - 1;
      const bool crowded = out_.is_full(Tier::ssd, period.begin, OpIndex(static_cast<uint32_t>(done)));
      go(period, crowded && host_has_room(period) ? Tier::host : Tier::ssd);
    } else if (time > kSafety * copy_ns(period, machine_.d2h_bytes_per_s, 0) && host_has_room(period)) {
      go(period, Tier::host);
    }
  }

  double copy_ns(const G10Period& period, double bytes_per_s, uint64_t latency_ns) const {
    return static_cast<double>(latency_ns + kFaultNs) + bytes(period) / bytes_per_s * 1e9;
  }

  bool host_has_room(const G10Period& period) const {
    if (machine_.host_bytes == 0) return true;
    for (OpIndex op{period.begin}; op < period.end; ++op) {
      if (host_[op % ops_] + graph_.tensors[period.tensor].size > machine_.host_bytes) return false;
    }
    return true;
  }

  void go(G10Period& period, Tier tier) {
    period.offload_end = out_.forward(tier, bytes(period), period.begin, period.end);
    period.reload_begin = in_.backward(tier, bytes(period), period.begin, period.end);
    if (period.reload_begin == kNone || period.reload_begin <= period.offload_end) return;
    period.away = true;
    period.tier = tier;
    out_.book(tier, bytes(period), period.begin, period.end);
    in_.book(tier, bytes(period), period.reload_begin, period.end);
    if (tier == Tier::host && machine_.host_bytes != 0) {
      for_ops(period.begin, period.end, [&](OpIndex op) { host_[op] += graph_.tensors[period.tensor].size; });
    }
    const uint64_t gain = chunks(period);
    for_ops(period.offload_end + 1, period.reload_begin, [&](OpIndex op) {
      const bool was = pressure_[op] > line_;
      pressure_[op] -= gain;
      if (!was || pressure_[op] > line_) return;
      --above_;
      add_time_above(op, ~duration_[op] + 1);
    });
  }

  // In the order of the latest safe times, each reload moves to the earliest time from which on it fits.
  void choose_reload_begins() {
    std::vector<G10Period*> order;
    for (G10Period& period : periods_) {
      if (period.away) order.push_back(&period);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const G10Period* a, const G10Period* b) { return a->reload_begin < b->reload_begin; });
    for (G10Period* period : order) {
      period->earliest_reload_begin = period->reload_begin;
      while (period->earliest_reload_begin > period->offload_end + 1 &&
             pressure_[(period->earliest_reload_begin - 1) % ops_] + chunks(*period) <= line_) {
        --period->earliest_reload_begin;
        pressure_[period->earliest_reload_begin % ops_] += chunks(*period);
      }
    }
  }

  const TaskGraph& graph_;
  const Machine& machine_;
  uint64_t capacity_;
  uint64_t line_;
  G10Plan plan_;
  uint32_t ops_;
  std::vector<uint64_t> duration_;
  std::vector<uint64_t> host_;  // op -> bytes in host memory
  G10Link out_;
  G10Link in_;
  std::vector<G10Period> periods_;
  std::vector<uint64_t> start_;       // of each op in two iterations, and of the end
  std::vector<uint64_t> pressure_;    // op -> chunks that are on the device
  std::vector<uint64_t> time_above_;  // Fenwick tree over ops: the durations of those whose pressure is above the line
  uint32_t above_ = 0;                // ops whose pressure is above the line
};

}  // namespace

G10Plan plan_g10(const TaskGraph& graph, const Machine& machine, uint64_t capacity) {
  return Planner(graph, machine, capacity).plan();
}

}  // namespace reprise::analyzer
