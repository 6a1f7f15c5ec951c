#include "analyzer/schedule/local_search.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <random>

#include "analyzer/base/parallel.h"
#include "analyzer/schedule/gap_choices.h"
#include "analyzer/schedule/tiers.h"

namespace reprise::analyzer {
namespace {

constexpr uint32_t kNear = 12;    // copies shortly before a wait, one of which may be to blame
constexpr uint32_t kVictims = 4;  // of the best tensors to leave for another one, one is taken
constexpr uint32_t kMostVictims = 12;
constexpr uint32_t kTriesPerPlay = 4;
constexpr uint32_t kPatience = 60;  // plays without any gain
constexpr uint64_t kNotPlayed = ~uint64_t{0};

class Search {
 public:
  Search(const TaskGraph& graph, const Machine& machine, const Schedule& schedule, uint64_t capacity)
      : graph_(graph), machine_(machine), player_(graph, machine, capacity), now_(graph, schedule, capacity) {
    play(now_.schedule());
  }

  uint64_t time() const { return best_.iteration_ns; }
  bool is_done() const { return waits_for_nothing() || in_vain_ >= kPatience; }
  bool waits_for_nothing() const { return best_.waits.empty(); }
  RetimedSchedule take() { return std::move(best_); }

  void run(uint32_t plays) {
    uint32_t tries = kTriesPerPlay * plays;
    for (uint32_t i = 0; i < plays && tries > 0 && !is_done(); --tries) {
      changed_.clear();
      const bool found = change();
      if (found) ++i, ++in_vain_;
      if (found && play(now_.schedule())) continue;
      const std::vector<std::pair<uint32_t, bool>> changed = std::move(changed_);
      for (const auto& [gap, tier] : changed) toggle(gap, tier);
    }
  }

 private:
  // True: it is no slower than the best one, and takes its place.
  bool play(Schedule schedule) {
    if (!assign_tiers(graph_, machine_, schedule).fits) return false;
    std::optional<RetimedSchedule> retimed = player_.play(schedule, best_.iteration_ns);
    if (!retimed || retimed->iteration_ns == 0) return false;
    if (retimed->iteration_ns < best_.iteration_ns) in_vain_ = 0;
    best_ = std::move(*retimed);
    return true;
  }

  // `tier`: whether it may go to the SSD, instead of whether it is away.
  void toggle(uint32_t gap, bool tier = false) {
    const Gap& entry = now_.gaps()[gap];
    if (tier) {
      now_.set_not_to_ssd(gap, !entry.not_to_ssd);
    } else {
      now_.set_away(gap, !entry.away);
    }
    changed_.emplace_back(gap, tier);
  }

  // False: nothing was found to change.
  bool change() {
    const Wait& wait = pick_wait();
    const uint32_t gap = wait.tensor == kNone || flip(3) ? pick_near(wait) : now_.gap_before(wait.tensor, wait.op);
    if (gap == kNone || !now_.gaps()[gap].away) return false;
    if (machine_.has_ssd() && machine_.host_bytes != 0 && flip(2)) {
      toggle(gap, true);
      return true;
    }
    toggle(gap);
    if (!make_room(gap)) return false;
    fill();
    return true;
  }

  uint32_t below(uint32_t count) { return static_cast<uint32_t>(random_() % count); }
  bool flip(uint32_t of) { return below(of) == 0; }

  // Of gaps with a rank: one of those that rank first; kNone: there is none.
  template <typename Rank>
  uint32_t one_of_first(std::vector<std::pair<Rank, uint32_t>>& gaps, size_t most) {
    const size_t count = std::min(most, gaps.size());
    if (count == 0) return kNone;
    std::partial_sort(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(count), gaps.end());
    return gaps[below(static_cast<uint32_t>(count))].second;
  }

  // Longer ones more often.
  const Wait& pick_wait() {
    uint64_t total = 0;
    for (const Wait& wait : best_.waits) total += wait.ns;
    uint64_t at = random_() % total;
    for (const Wait& wait : best_.waits) {
      if (at < wait.ns) return wait;
      at -= wait.ns;
    }
    return best_.waits.back();
  }

  // One of the copies out (memory is missing) or in that stand shortly before the wait.
  uint32_t pick_near(const Wait& wait) {
    std::vector<std::pair<uint32_t, uint32_t>> near;
    const uint32_t ops = now_.op_count();
    for (uint32_t i = 0; i < now_.gaps().size(); ++i) {
      const Gap& gap = now_.gaps()[i];
      if (!gap.away) continue;
      const uint32_t at = wait.tensor == kNone ? gap.from : gap.to;
      near.emplace_back((wait.op + 2 * ops - at) % ops, i);
    }
    return one_of_first(near, kNear);
  }

  // Other tensors leave until every op has room.
  bool make_room(uint32_t kept) {
    const Gap gap = now_.gaps()[kept];
    for (uint32_t step = 0; step < kMostVictims; ++step) {
      OpIndex op{gap.from + 1};
      while (op < gap.to && now_.room(op) >= 0) ++op;
      if (op == gap.to) return true;
      const uint32_t victim = pick_victim(OpIndex{op % now_.op_count()}, kept);
      if (victim == kNone) return false;
      toggle(victim);
    }
    return false;
  }

  uint32_t pick_victim(OpIndex op, uint32_t kept) {
    std::vector<std::pair<double, uint32_t>> best;
    const uint32_t ops = now_.op_count();
    for (uint32_t i = 0; i < now_.gaps().size(); ++i) {
      const Gap& gap = now_.gaps()[i];
      if (gap.away || i == kept) continue;
      const bool covers = (gap.from < op && op < gap.to) || op + ops < gap.to;
      if (!covers) continue;
      const auto idle = static_cast<double>(now_.start_ns(gap.to) - now_.start_ns(gap.from + 1));
      const auto lacking = static_cast<double>(-now_.room(op));
      const auto chunks = static_cast<double>(now_.chunks(gap));
      const double fits = chunks <= lacking ? 1 : lacking / chunks;
      best.emplace_back(-idle * fits, i);
    }
    return one_of_first(best, kVictims);
  }

  // Where there is room now, tensors that are away stay on the device, the largest first.
  void fill() {
    std::vector<std::pair<int64_t, uint32_t>> away;
    for (uint32_t i = 0; i < now_.gaps().size(); ++i) {
      if (now_.gaps()[i].away) away.emplace_back(-now_.chunks(now_.gaps()[i]), i);
    }
    std::sort(away.begin(), away.end());
    for (const auto& [chunks, i] : away) {
      if (now_.has_room(now_.gaps()[i])) toggle(i);
    }
  }

  const TaskGraph& graph_;
  const Machine& machine_;
  SchedulePlayer player_;
  std::mt19937_64 random_{1};
  GapChoices now_;
  std::vector<std::pair<uint32_t, bool>> changed_;  // gaps, since the best one
  RetimedSchedule best_{{}, kNotPlayed, {}};
  uint32_t in_vain_ = 0;  // plays since the last one that was faster
};

}  // namespace

std::optional<RetimedSchedule> search_stalls(const TaskGraph& graph, const Machine& machine,
                                             const std::vector<Schedule>& starts, uint64_t capacity, uint32_t plays) {
  std::vector<std::unique_ptr<Search>> searches(starts.size());
  in_parallel(starts.size(),
              [&](size_t i) { searches[i] = std::make_unique<Search>(graph, machine, starts[i], capacity); });
  std::erase_if(searches, [](const auto& search) { return search->time() == kNotPlayed; });
  if (searches.empty()) return std::nullopt;
  const auto rounds = static_cast<uint32_t>(std::bit_width(searches.size()));
  while (true) {
    const uint32_t of_each = plays / rounds / static_cast<uint32_t>(searches.size());
    in_parallel(searches.size(), [&](size_t i) { searches[i]->run(of_each); });
    std::stable_sort(searches.begin(), searches.end(),
                     [](const auto& a, const auto& b) { return a->time() < b->time(); });
    if (searches.size() == 1 || searches.front()->waits_for_nothing()) return searches.front()->take();
    searches.resize(searches.size() / 2);
  }
}

}  // namespace reprise::analyzer
