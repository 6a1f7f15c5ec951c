#include "analyzer/placement/layout.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "analyzer/base/groups.h"
#include "analyzer/placement/pool.h"

namespace reprise::analyzer {
namespace {

// To find homes for all: attempts, and tensors that are placed in all of them together.
constexpr size_t kAttempts = 100;
constexpr size_t kAttemptsAgain = 6;  // likewise, for tensors that are placed anew
constexpr size_t kMostPlaced = 100'000;

class Placer {
 public:
  Placer(const TaskGraph& graph, Schedule& schedule, uint32_t chunks, const std::vector<uint64_t>& start_ns)
      : graph_(graph),
        schedule_(schedule),
        calls_(static_cast<uint32_t>(graph.calls.size())),
        stays_of_(graph.tensors.size(),
                  [&](auto&& put) {
                    for (uint32_t i = 0; i < schedule.stays.size(); ++i) put(root_of(schedule.stays[i]), i);
                  }),
        times_(start_ns.empty() ? start_times(graph) : start_ns),
        chunks_(chunks) {
    layout_.homes.assign(graph.tensors.size(), kNone);
    list_spans();
    pool_.emplace(chunks_, times_);
    for (Stay& stay : schedule.stays) stay.placement = kNone;
  }

  std::optional<Layout> run(PlacementMode mode, HomeOrder by) {
    if (mode != PlacementMode::by_begin) list_in_order(by);
    bool placed = mode == PlacementMode::by_begin ? place_by_begin() : place_homes(mode);
    // A tensor that found no home comes first in the next attempt.
    const size_t affordable = std::clamp<size_t>(kMostPlaced / (graph_.tensors.size() + 1), 1, kAttempts);
    const size_t attempts = mode == PlacementMode::homes ? affordable : 1;
    for (size_t i = 1; i < attempts && !placed; ++i) {
      pool_.emplace(chunks_, times_);
      layout_.placements.clear();
      layout_.homes.assign(graph_.tensors.size(), kNone);
      placed = place_homes(mode);
    }
    if (!placed) return std::nullopt;
    return finished();
  }

  std::optional<Layout> run_again(const Layout& before, std::span<const uint32_t> moved) {
    std::vector<bool> moves(graph_.tensors.size(), false);
    for (const uint32_t tensor : moved) moves[tensor] = true;
    for (uint32_t tensor = 0; tensor < stays_of_.size(); ++tensor) {
      if (stays_of_[tensor].empty() || moves[tensor]) continue;
      const std::vector<uint32_t>& chunks = before.placements[before.homes[tensor]].chunks;
      if (!pool_->take_these(chunks, spans_of(tensor))) return std::nullopt;
      settle(tensor, chunks);
    }
    // One that found no home comes first in the next attempt.
    std::vector<uint32_t> order(moved.begin(), moved.end());
    const HomePool others = *pool_;
    const size_t placed = layout_.placements.size();
    for (size_t attempt = 0;; ++attempt) {
      const auto homeless =
          std::find_if(order.begin(), order.end(), [&](uint32_t tensor) { return !take_home(tensor); });
      if (homeless == order.end()) break;
      if (attempt == kAttemptsAgain) return std::nullopt;
      std::rotate(order.begin(), homeless, homeless + 1);
      pool_.emplace(others);
      layout_.placements.resize(placed);
    }
    return finished();
  }

 private:
  Layout finished() {
    compact();
    count_remaps();
    share_homes();
    return std::move(layout_);
  }

  // The lives of a recomputed tensor have one address, so they are placed like stays of one tensor, the first.
  uint32_t root_of(const Stay& stay) const { return plan::root_of(graph_.tensors, stay.tensor); }

  static std::vector<uint64_t> start_times(const TaskGraph& graph) {
    // Calls that take no time are distinct places all the same: a nanosecond apart is enough to compare.
    std::vector<uint64_t> times = {0};
    for (const GraphCall& entry : graph.calls) times.push_back(times.back() + entry.call.duration_ns + 1);
    return times;
  }

  static size_t spans_of_one(const Stay& stay, uint32_t calls, Span* spans) {
    spans[0] = {stay.wraps ? 0 : stay.begin, stay.end};
    spans[1] = {stay.begin, calls};
    return stay.wraps ? 2 : 1;
  }
  // Lists the spans of each tensor's stays once, because every attempt reads them.
  void list_spans() {
    first_span_.reserve(stays_of_.size() + 1);
    spans_.reserve(schedule_.stays.size() * 2);
    for (size_t tensor = 0; tensor < stays_of_.size(); ++tensor) {
      first_span_.push_back(static_cast<uint32_t>(spans_.size()));
      for (const uint32_t stay : stays_of_[tensor]) {
        Span both[2];
        spans_.insert(spans_.end(), both, both + spans_of_one(schedule_.stays[stay], calls_, both));
      }
      std::sort(spans_.begin() + first_span_.back(), spans_.end(),
                [](const Span& a, const Span& b) { return a.begin < b.begin; });
    }
    first_span_.push_back(static_cast<uint32_t>(spans_.size()));
  }
  std::span<const Span> spans_of(uint32_t tensor) const {
    return {spans_.data() + first_span_[tensor], spans_.data() + first_span_[tensor + 1]};
  }

  // At the start of the iteration a tensor is at its home, so a stay that is carried over the start decides on it.
  static bool at_start(const Stay& stay) { return stay.wraps || stay.arrival == Arrival::always; }

  uint32_t add_placement(std::vector<uint32_t> chunks) {
    layout_.placements.push_back({std::move(chunks)});
    return static_cast<uint32_t>(layout_.placements.size() - 1);
  }

  std::pair<uint64_t, uint64_t> rank_of(uint32_t tensor, HomeOrder by) const {
    const std::span<const uint32_t> stays = stays_of_[tensor];
    const Stay& first = schedule_.stays[stays.front()];
    if (first.arrival == Arrival::always) return {0, 0};  // fits nowhere but in chunks of its own
    if (by == HomeOrder::returning_first) return {stays.size() > 1 || at_start(first) ? 1 : 2, first.begin};
    if (by == HomeOrder::persistent_first) return {is_persistent(graph_.tensors[tensor]) ? 1 : 2, first.begin};
    uint64_t on_device = 0;
    for (const Span& span : spans_of(tensor)) on_device += times_[span.end] - times_[span.begin];
    return {1, times_.back() - on_device};
  }

  void list_in_order(HomeOrder by) {
    std::vector<std::pair<uint64_t, uint64_t>> rank(stays_of_.size());
    for (uint32_t t = 0; t < stays_of_.size(); ++t) {
      if (stays_of_[t].empty()) continue;
      order_.push_back(t);
      rank[t] = rank_of(t, by);
    }
    std::stable_sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) { return rank[a] < rank[b]; });
    const auto stays_for_ever = [&](uint32_t t) { return rank[t].first == 0; };
    for_ever_ =
        static_cast<size_t>(std::partition_point(order_.begin(), order_.end(), stays_for_ever) - order_.begin());
  }

  // Next time before all others of its kind: those that never leave stay in front.
  void put_first(size_t place) {
    const auto at = order_.begin() + static_cast<std::ptrdiff_t>(place);
    std::rotate(order_.begin() + static_cast<std::ptrdiff_t>(place < for_ever_ ? 0 : for_ever_), at, at + 1);
  }

  bool take_home(uint32_t tensor) {
    auto chunks = pool_->take(graph_.tensors[tensor].chunk_count, spans_of(tensor));
    if (!chunks) return false;
    settle(tensor, std::move(*chunks));
    return true;
  }

  void settle(uint32_t tensor, std::vector<uint32_t> chunks) {
    layout_.homes[tensor] = add_placement(std::move(chunks));
    for (const uint32_t stay : stays_of_[tensor]) schedule_.stays[stay].placement = layout_.homes[tensor];
  }

  bool place_homes(PlacementMode mode) {
    std::vector<uint32_t> homeless;
    for (size_t place = 0; place < order_.size(); ++place) {
      const uint32_t tensor = order_[place];
      if (take_home(tensor)) continue;
      if (mode == PlacementMode::homes) {
        put_first(place);
        return false;
      }
      homeless.push_back(tensor);
    }
    std::vector<uint32_t> stays;
    for (const uint32_t tensor : homeless)
      stays.insert(stays.end(), stays_of_[tensor].begin(), stays_of_[tensor].end());
    return place_stays(std::move(stays));
  }

  bool place_by_begin() {
    std::vector<uint32_t> stays(schedule_.stays.size());
    std::iota(stays.begin(), stays.end(), 0u);
    return place_stays(std::move(stays));
  }

  // One by one, those over the iteration's start first; at the tensor's home where that is free, else anywhere.
  bool place_stays(std::vector<uint32_t> stays) {
    const auto rank = [&](uint32_t i) {
      return std::pair(at_start(schedule_.stays[i]) ? 0 : 1, schedule_.stays[i].begin);
    };
    std::stable_sort(stays.begin(), stays.end(), [&](uint32_t a, uint32_t b) { return rank(a) < rank(b); });
    for (const uint32_t index : stays) {
      Stay& stay = schedule_.stays[index];
      uint32_t& home = layout_.homes[root_of(stay)];
      Span both[2];
      const std::span<const Span> spans{both, spans_of_one(stay, calls_, both)};
      if (home != kNone && pool_->take_these(layout_.placements[home].chunks, spans)) {
        stay.placement = home;
        continue;
      }
      auto chunks = pool_->take(graph_.tensors[stay.tensor].chunk_count, spans);
      if (!chunks) return false;
      stay.placement = add_placement(std::move(*chunks));
      if (home == kNone) home = stay.placement;
    }
    return true;
  }

  void share_homes() {
    std::vector<uint32_t> homes(graph_.tensors.size(), kNone);
    for (const Stay& stay : schedule_.stays) homes[stay.tensor] = layout_.homes[root_of(stay)];
    layout_.homes = std::move(homes);
  }

  // Numbers the chunks in use without holes.
  void compact() {
    uint32_t highest = 0;
    for (const plan::Placement& placement : layout_.placements) highest = std::max(highest, placement.chunks.back());
    std::vector<uint32_t> renamed(size_t{highest} + 1, kNone);
    for (const plan::Placement& placement : layout_.placements) {
      for (const uint32_t chunk : placement.chunks) renamed[chunk] = 0;
    }
    uint32_t next = 0;
    for (uint32_t& name : renamed) {
      if (name != kNone) name = next++;
    }
    for (plan::Placement& placement : layout_.placements) {
      for (uint32_t& chunk : placement.chunks) chunk = renamed[chunk];
    }
    layout_.chunk_count = next;
  }

  void count_remaps() {
    for (size_t tensor = 0; tensor < stays_of_.size(); ++tensor) {
      const std::span<const uint32_t> stays = stays_of_[tensor];
      for (size_t i = 0; i < stays.size(); ++i) {
        const uint32_t before = schedule_.stays[stays[(i + stays.size() - 1) % stays.size()]].placement;
        if (schedule_.stays[stays[i]].placement == before) continue;
        ++layout_.remap_count;
        layout_.remapped_chunks += graph_.tensors[tensor].chunk_count;
      }
    }
  }

  const TaskGraph& graph_;
  Schedule& schedule_;
  uint32_t calls_;
  const Groups stays_of_;        // by tensor, the first of its lives
  std::vector<uint64_t> times_;  // of each call position, one more at the end
  uint32_t chunks_;
  std::optional<HomePool> pool_;
  std::vector<Span> spans_;  // by tensor, each one's sorted
  std::vector<uint32_t> first_span_;
  std::vector<uint32_t> order_;  // in which tensors get homes
  size_t for_ever_ = 0;          // so many at its beginning never leave
  Layout layout_;
};

}  // namespace

std::optional<Layout> place(const TaskGraph& graph, Schedule& schedule, uint32_t chunks, PlacementMode mode,
                            HomeOrder order, const std::vector<uint64_t>& start_ns) {
  return Placer(graph, schedule, chunks, start_ns).run(mode, order);
}

std::optional<Layout> place_again(const TaskGraph& graph, Schedule& schedule, uint32_t chunks, const Layout& layout,
                                  std::span<const uint32_t> moved, const std::vector<uint64_t>& start_ns) {
  return Placer(graph, schedule, chunks, start_ns).run_again(layout, moved);
}

}  // namespace reprise::analyzer
