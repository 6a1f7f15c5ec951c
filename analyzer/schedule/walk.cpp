#include "analyzer/schedule/walk.h"

#include <algorithm>

namespace reprise::analyzer {
namespace {

// Free passes before the walk insists that the start state shrinks from pass to pass.
constexpr int kFreePasses = 6;

struct StartState {
  std::vector<uint8_t> resident;
  std::vector<HostCopy> host;
  bool operator==(const StartState&) const = default;
};

class Walk {
 public:
  Walk(const TaskGraph& graph, const WalkOptions& options, VictimChooser& chooser)
      : graph_(graph), options_(options), chooser_(chooser), count_(graph.calls.size()) {
    uses_.resize(graph.tensors.size());
    state_.graph = &graph;
    state_.start_ns.push_back(0);
    for (CallIndex call{0}; call < count_; ++call) {
      for (const uint32_t tensor : graph.calls[call].operands) uses_[tensor].push_back(call);
      if (graph.calls[call].call.kind == plan::CallKind::op) ops_.push_back(call);
      state_.start_ns.push_back(state_.start_ns.back() + graph.calls[call].call.duration_ns);
    }
  }

  Schedule run() {
    StartState start = first_guess();
    StartState end = pass(start);
    for (int i = 0; i < kFreePasses && end != start; ++i) {
      start = end;
      end = pass(start);
    }
    // Only what was there at the start and at the end may be there at the next start; the rest leaves at the end.
    while (!closed(start, end)) {
      start = shrink(start, end);
      end = pass(start);
    }
    return finish(start);
  }

 private:
  struct Head {  // the end of a stay that was carried in
    bool ended = false;
    uint32_t end = kNone;  // kNone: it left before any use, so it may leave in the iteration before
    Departure departure = Departure::drop;
    Tier tier = Tier::host;
    uint32_t after = kNone;
  };

  bool movable(uint32_t tensor) const {
    return is_persistent(graph_.tensors[tensor]) && graph_.tensors[tensor].chunk_count > 0;
  }

  // Persistent tensors in the order of their first use, as long as they fit.
  StartState first_guess() const {
    StartState guess;
    guess.resident.assign(graph_.tensors.size(), 0);
    guess.host.assign(graph_.tensors.size(), HostCopy::stale);
    std::vector<uint32_t> order;
    for (uint32_t t = 0; t < graph_.tensors.size(); ++t) {
      if (movable(t)) order.push_back(t);
    }
    const auto first_use = [&](uint32_t t) { return uses_[t].empty() ? kNone : uses_[t].front(); };
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return first_use(a) < first_use(b); });
    uint64_t used = 0;
    for (const uint32_t t : order) {
      if (used + graph_.tensors[t].chunk_count > options_.capacity) continue;
      used += graph_.tensors[t].chunk_count;
      guess.resident[t] = 1;
    }
    return guess;
  }

  // Everything that starts resident also ends resident, in a state that is no worse, and is allowed to be carried. A
  // host copy that turns out valid at the end is worth another pass or two: it may save an offload.
  bool closed(const StartState& start, const StartState& end) const {
    for (uint32_t t = 0; t < start.resident.size(); ++t) {
      if (start.resident[t] == 0) continue;
      if (end.resident[t] == 0 || start.host[t] > end.host[t]) return false;
      if (start.host[t] < end.host[t] && shrinks_ < kFreePasses) return false;
      if (!options_.carry_visitors && heads_[t].ended) return false;
    }
    return true;
  }

  StartState shrink(const StartState& start, const StartState& end) const {
    StartState next = start;
    for (uint32_t t = 0; t < start.resident.size(); ++t) {
      const bool stays =
          start.resident[t] != 0 && end.resident[t] != 0 && (options_.carry_visitors || !heads_[t].ended);
      next.resident[t] = stays ? 1 : 0;
      // After some passes claims only shrink, too, so that this ends.
      const HostCopy most = shrinks_ < kFreePasses ? HostCopy::valid : start.host[t];
      next.host[t] = stays ? std::min(end.host[t], most) : HostCopy::stale;
    }
    ++shrinks_;
    return next;
  }

  uint64_t next_use(uint32_t tensor, uint32_t from) const {
    const std::vector<uint32_t>& uses = uses_[tensor];
    const auto next = std::lower_bound(uses.begin(), uses.end(), from);
    if (next != uses.end()) return *next;
    if (!is_persistent(graph_.tensors[tensor]) || uses.empty()) return kNever;
    return count_ + uint64_t{uses.front()};
  }

  void enter(uint32_t tensor, uint32_t from) {
    WalkState::TensorState& entry = state_.tensors[tensor];
    entry.resident = true;
    entry.begin = from;
    entry.last = kNone;
    entry.carried = false;
    entry.next_use = next_use(tensor, from);
    state_.by_next_use.insert({entry.next_use, tensor});
    link_newest(tensor);
    state_.free_chunks -= state_.chunks(tensor);
  }

  void link_newest(uint32_t tensor) {
    const auto end = static_cast<uint32_t>(state_.tensors.size());
    state_.older[tensor] = state_.older[end];
    state_.newer[tensor] = end;
    state_.newer[state_.older[end]] = tensor;
    state_.older[end] = tensor;
  }
  void unlink(uint32_t tensor) {
    state_.newer[state_.older[tensor]] = state_.newer[tensor];
    state_.older[state_.newer[tensor]] = state_.older[tensor];
  }

  void leave(uint32_t tensor) {
    WalkState::TensorState& entry = state_.tensors[tensor];
    state_.by_next_use.erase({entry.next_use, tensor});
    unlink(tensor);
    entry.resident = false;
    state_.free_chunks += state_.chunks(tensor);
  }

  StartState pass(const StartState& start) {
    stays_.clear();
    heads_.assign(graph_.tensors.size(), Head{});
    state_.tensors.assign(graph_.tensors.size(), WalkState::TensorState{});
    state_.by_next_use.clear();
    const auto ring = static_cast<uint32_t>(graph_.tensors.size());
    state_.older.assign(size_t{ring} + 1, ring);
    state_.newer.assign(size_t{ring} + 1, ring);
    state_.free_chunks = options_.capacity;
    touched_.assign(graph_.tensors.size(), 0);
    for (uint32_t t = 0; t < graph_.tensors.size(); ++t) {
      if (!movable(t)) continue;
      touched_[t] = 1;
      state_.tensors[t].host = start.resident[t] == 0 ? HostCopy::valid : start.host[t];
      if (start.resident[t] == 0) continue;
      enter(t, 0);
      state_.tensors[t].carried = true;
    }
    chooser_.start(state_);
    for (CallIndex call{0}; call < count_; ++call) {
      state_.call = call;
      const plan::Call& entry = graph_.calls[call].call;
      if (entry.kind == plan::CallKind::op) run_op(call);
      if (entry.kind == plan::CallKind::free) run_free(call, entry.tensor);
    }
    StartState end;
    for (const WalkState::TensorState& tensor : state_.tensors) {
      end.resident.push_back(tensor.resident ? 1 : 0);
      end.host.push_back(tensor.resident ? tensor.host : HostCopy::stale);
    }
    return end;
  }

  void run_op(CallIndex call) {
    const GraphCall& entry = graph_.calls[call];
    uint64_t needed = 0;
    for (const uint32_t tensor : entry.operands) {
      state_.tensors[tensor].pinned = true;
      if (!state_.tensors[tensor].resident) needed += state_.chunks(tensor);
    }
    if (needed > state_.free_chunks) {
      for (const uint32_t victim : chooser_.choose(state_, needed - state_.free_chunks)) {
        evict(victim, Tier::host, lead_op(call, false));
      }
    }
    for (const uint32_t tensor : entry.operands) {
      if (!state_.tensors[tensor].resident) arrive(tensor, call);
    }
    for (const uint32_t tensor : entry.unchanged) {
      HostCopy& host = state_.tensors[tensor].host;
      host = std::min(host, HostCopy::by_facts);
    }
    for (const uint32_t tensor : entry.writes) state_.tensors[tensor].host = HostCopy::stale;
    for (const uint32_t tensor : entry.operands) {
      WalkState::TensorState& operand = state_.tensors[tensor];
      operand.pinned = false;
      operand.last = call;
      unlink(tensor);
      link_newest(tensor);
      state_.by_next_use.erase({operand.next_use, tensor});
      operand.next_use = next_use(tensor, call + 1);
      state_.by_next_use.insert({operand.next_use, tensor});
    }
    for (const Leaving& leaving : chooser_.leaving(state_)) evict(leaving.tensor, leaving.tier);
  }

  void arrive(uint32_t tensor, CallIndex call) {
    enter(tensor, call);
    state_.tensors[tensor].host = touched_[tensor] != 0 ? HostCopy::valid : HostCopy::stale;
    arrivals_.resize(graph_.tensors.size());
    arrivals_[tensor] = touched_[tensor] != 0 ? Arrival::reload : Arrival::first_touch;
    arrives_after_.resize(graph_.tensors.size(), kNone);
    arrives_after_[tensor] = touched_[tensor] != 0 ? lead_op(call, true) : kNone;
    touched_[tensor] = 1;
  }

  void run_free(CallIndex call, uint32_t tensor) {
    if (!state_.tensors[tensor].resident) return;
    close_stay(tensor, call, Departure::release);
    leave(tensor);
  }

  // The op that must be done before a copy for the op at `call` begins; kNone: any time will do. With `wrap` it may be
  // one of the iteration before.
  uint32_t lead_op(CallIndex call, bool wrap) const {
    if (options_.lead >= ops_.size()) return kNone;
    const auto place = static_cast<size_t>(std::lower_bound(ops_.begin(), ops_.end(), call) - ops_.begin());
    const size_t back = size_t{options_.lead} + 1;
    if (place >= back) return ops_[place - back];
    return wrap ? ops_[place + ops_.size() - back] : kNone;
  }

  // `after`: the copy out begins behind this op.
  void evict(uint32_t tensor, Tier tier = Tier::host, uint32_t after = kNone) {
    WalkState::TensorState& entry = state_.tensors[tensor];
    const bool waits = after != kNone && (entry.last == kNone || entry.last < after);
    const uint32_t last = waits ? after : entry.last;
    if (!waits) after = kNone;
    if (entry.carried) {
      heads_[tensor] = {true, last == kNone ? kNone : last + 1, departure_with(entry.host), tier, after};
    } else {
      close_stay(tensor, last + 1, departure_with(entry.host));
      stays_.back().to = tier;
      stays_.back().leaves_after = after;
    }
    entry.host = HostCopy::valid;
    leave(tensor);
  }

  void close_stay(uint32_t tensor, uint32_t end, Departure departure) {
    Stay stay;
    stay.tensor = tensor;
    stay.begin = state_.tensors[tensor].begin;
    stay.end = end;
    stay.arrival = arrivals_[tensor];
    stay.departure = departure;
    stay.arrives_after = arrives_after_[tensor];
    stays_.push_back(stay);
  }

  // What is resident at the end either goes on in the next iteration or leaves after its last access.
  Schedule finish(const StartState& start) {
    for (uint32_t t = 0; t < graph_.tensors.size(); ++t) {
      WalkState::TensorState& entry = state_.tensors[t];
      if (!entry.resident) continue;
      if (start.resident[t] == 0) {
        evict(t);
        continue;
      }
      Stay stay;
      stay.tensor = t;
      stay.clean_at_start = start.host[t] == HostCopy::valid;
      if (entry.carried) {
        stay.end = count_;
        stay.arrival = Arrival::always;
        stay.departure = Departure::never;
      } else {
        const Head& head = heads_[t];
        stay.begin = entry.begin;
        stay.arrival = Arrival::reload;
        stay.departure = head.departure;
        stay.to = head.tier;
        stay.arrives_after = arrives_after_[t];
        stay.leaves_after = head.after;
        // Evicted in the next iteration before any use there: it may leave after its last access in this one.
        stay.wraps = head.end != kNone;
        stay.end = stay.wraps ? head.end : entry.last + 1;
        stay.clean_at_start = stay.clean_at_start && stay.wraps;
      }
      stays_.push_back(stay);
    }
    return schedule_of(graph_, std::move(stays_));
  }

  const TaskGraph& graph_;
  WalkOptions options_;
  VictimChooser& chooser_;
  uint32_t count_;
  std::vector<std::vector<uint32_t>> uses_;
  WalkState state_;
  std::vector<Stay> stays_;
  std::vector<Head> heads_;
  std::vector<Arrival> arrivals_;
  std::vector<uint32_t> arrives_after_;
  std::vector<uint32_t> ops_;  // calls
  std::vector<uint8_t> touched_;
  mutable int shrinks_ = 0;
};

}  // namespace

std::vector<uint32_t> least_recently_used(const WalkState& state, uint64_t needed) {
  const auto end = static_cast<uint32_t>(state.tensors.size());
  std::vector<uint32_t> victims;
  uint64_t have = 0;
  for (uint32_t tensor = state.newer[end]; tensor != end && have < needed; tensor = state.newer[tensor]) {
    if (state.tensors[tensor].pinned) continue;
    victims.push_back(tensor);
    have += state.chunks(tensor);
  }
  return victims;
}

void spare_superfluous(const WalkState& state, uint64_t needed, std::vector<uint32_t>& victims) {
  uint64_t have = 0;
  for (const uint32_t victim : victims) have += state.chunks(victim);
  for (size_t i = victims.size(); i-- > 0;) {
    const uint64_t chunks = state.chunks(victims[i]);
    if (have - chunks < needed) continue;
    have -= chunks;
    victims.erase(victims.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

Schedule walk(const TaskGraph& graph, const WalkOptions& options, VictimChooser& chooser) {
  return Walk(graph, options, chooser).run();
}

}  // namespace reprise::analyzer
