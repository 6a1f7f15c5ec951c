#include "analyzer/placement/pool.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace reprise::analyzer {
namespace {

constexpr size_t kMostSearches = 8;  // of a tensor with many spans: what fits these is tried on the others
constexpr uint64_t kStepsPerTake = 48;

bool begins_before(const Span& a, const Span& b) { return a.begin < b.begin; }

}  // namespace

HomePool::HomePool(uint32_t chunks, const std::vector<uint64_t>& start_ns, uint64_t steps)
    : start_ns_(start_ns), steps_(steps), next_(chunks), group_of_(chunks, 0), gaps_(start_ns) {
  if (chunks == 0) return;
  std::iota(next_.begin(), next_.end(), 1u);
  next_.back() = kNone;
  groups_.push_back({0, chunks, {}});
  fresh_ = 0;
}

uint64_t HomePool::distance(uint32_t from, uint32_t to) const {
  const uint64_t a = start_ns_[from];
  const uint64_t b = start_ns_[to];
  return b >= a ? b - a : b + start_ns_.back() - a;
}

// Least distance to a neighbour in time, the iteration being a circle; nullopt: not free.
std::optional<uint64_t> HomePool::slack(const Group& group, std::span<const Span> spans) const {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  if (group.busy.empty()) return least;
  for (const Span& span : spans) {
    const auto next = std::lower_bound(group.busy.begin(), group.busy.end(), span.end,
                                       [](const Span& busy, uint32_t end) { return busy.begin < end; });
    // `next` is the first busy span behind this one; the one before it must end in time.
    const bool has_before = next != group.busy.begin();
    if (has_before && std::prev(next)->end > span.begin) return std::nullopt;
    const Span& before = has_before ? *std::prev(next) : group.busy.back();
    const Span& after = next != group.busy.end() ? *next : group.busy.front();
    least = std::min({least, distance(before.end, span.begin), distance(span.end, after.begin)});
  }
  return least;
}

bool HomePool::is_worse(const Rated& a, const Rated& b) const {
  if (a.slack != b.slack) return a.slack < b.slack;
  return groups_[a.group].first > groups_[b.group].first;
}

std::span<GapSearch> HomePool::searches(std::span<const Span> spans) {
  size_t count = 0;
  const auto start = [&](uint32_t begin, uint32_t end) {
    if (scratch_.searches.size() == count) scratch_.searches.emplace_back();
    scratch_.searches[count++].start(gaps_, begin, end);
  };
  // Two that meet at the iteration's start are one.
  const bool wraps = spans.size() > 1 && spans.front().begin == 0 && spans.back().end + 1 == start_ns_.size();
  if (wraps) start(spans.back().begin, spans.front().end);
  const size_t first = wraps ? 1 : 0;
  const size_t last = wraps ? spans.size() - 1 : spans.size();
  const size_t step = (last - first) / kMostSearches + 1;
  for (size_t i = first; i < last; i += step) start(spans[i].begin, spans[i].end);
  return {scratch_.searches.data(), count};
}

// Groups with at least `count` chunks together, the most slack first; fewer chunks: there are no more. A group that a
// search has not found yet has at most the slack that this search has come down to, so the search that is lowest goes
// on. With many spans that can take long: when the steps are used up, the best group found until then is good enough.
void HomePool::find(uint32_t count, std::span<const Span> spans) {
  std::vector<uint32_t>& chosen = scratch_.chosen;
  chosen.clear();
  uint64_t have = 0;
  const auto choose = [&](uint32_t group) {
    chosen.push_back(group);
    have += groups_[group].count;
  };
  if (fresh_ != kNone) choose(fresh_);
  if (have >= count) return;
  seen_.resize(groups_.size(), 0);
  ++search_;
  const std::span<GapSearch> open = searches(spans);
  steps_ += kStepsPerTake;
  std::vector<Rated>& rated = scratch_.rated;
  rated.clear();
  const auto worse = [&](const Rated& a, const Rated& b) { return is_worse(a, b); };
  while (have < count) {
    const auto lowest = std::min_element(open.begin(), open.end(), [](const GapSearch& a, const GapSearch& b) {
      return !b.is_over() && (a.is_over() || a.bound() < b.bound());
    });
    const bool over = lowest == open.end() || lowest->is_over();
    if (over && rated.empty()) break;
    if (!rated.empty() && (over || steps_ == 0 || rated.front().slack > lowest->bound())) {
      choose(rated.front().group);
      std::pop_heap(rated.begin(), rated.end(), worse);
      rated.pop_back();
      continue;
    }
    if (steps_ > 0) --steps_;
    const std::optional<uint32_t> group = lowest->step();
    if (!group || seen_[*group] == search_) continue;
    seen_[*group] = search_;
    const std::optional<uint64_t> value = slack(groups_[*group], spans);
    if (!value) continue;
    rated.push_back({*value, *group});
    std::push_heap(rated.begin(), rated.end(), worse);
  }
}

std::optional<std::vector<uint32_t>> HomePool::take(uint32_t count, std::span<const Span> spans) {
  find(count, spans);
  uint64_t available = 0;
  for (const uint32_t group : scratch_.chosen) available += groups_[group].count;
  if (available < count) return std::nullopt;
  std::vector<uint32_t> taken;
  taken.reserve(count);
  for (uint32_t group : scratch_.chosen) {
    const auto missing = static_cast<uint32_t>(count - taken.size());
    // The rest of the last group stays as it was.
    if (groups_[group].count > missing) group = split(group, missing);
    for (uint32_t chunk = groups_[group].first; chunk != kNone; chunk = next_[chunk]) taken.push_back(chunk);
    occupy(group, spans);
  }
  std::sort(taken.begin(), taken.end());
  return taken;
}

bool HomePool::take_these(const std::vector<uint32_t>& chunks, std::span<const Span> spans) {
  std::vector<uint32_t>& touched = scratch_.touched;
  touched.clear();
  for (const uint32_t chunk : chunks) touched.push_back(group_of_[chunk]);
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  for (const uint32_t group : touched) {
    if (!slack(groups_[group], spans)) return false;
  }
  for (uint32_t group : touched) {
    // Those that are wanted to the front, in order.
    std::vector<uint32_t> members;
    for (uint32_t chunk = groups_[group].first; chunk != kNone; chunk = next_[chunk]) members.push_back(chunk);
    const auto rest = std::stable_partition(members.begin(), members.end(), [&](uint32_t chunk) {
      return std::binary_search(chunks.begin(), chunks.end(), chunk);
    });
    groups_[group].first = members.front();
    for (size_t i = 0; i < members.size(); ++i) next_[members[i]] = i + 1 < members.size() ? members[i + 1] : kNone;
    if (rest != members.end()) group = split(group, static_cast<uint32_t>(rest - members.begin()));
    occupy(group, spans);
  }
  return true;
}

// The first `count` chunks, but not all, as a group of their own.
uint32_t HomePool::split(uint32_t group, uint32_t count) {
  const uint32_t part = copy_of(group);
  groups_[part].first = groups_[group].first;
  groups_[part].count = count;
  uint32_t chunk = groups_[group].first;
  for (uint32_t i = 1; i < count; ++i, chunk = next_[chunk]) group_of_[chunk] = part;
  group_of_[chunk] = part;
  groups_[group].first = next_[chunk];
  groups_[group].count -= count;
  next_[chunk] = kNone;
  return part;
}

// A group without chunks that is busy at the same times.
uint32_t HomePool::copy_of(uint32_t group) {
  const auto copy = static_cast<uint32_t>(groups_.size());
  groups_.push_back({kNone, 0, groups_[group].busy});
  const std::vector<Span>& busy = groups_[copy].busy;
  for (size_t i = 0; i < busy.size(); ++i) {
    const uint32_t end = busy[(i + 1) % busy.size()].begin;
    if (busy[i].end != end) gaps_.add(copy, busy[i].end, end);
  }
  return copy;
}

void HomePool::occupy(uint32_t group, std::span<const Span> spans) {
  if (group == fresh_) fresh_ = kNone;
  for (const Span& span : spans) occupy(group, span);
}

void HomePool::occupy(uint32_t group, const Span& span) {
  if (span.begin == span.end) return;
  std::vector<Span>& busy = groups_[group].busy;
  const auto at = std::lower_bound(busy.begin(), busy.end(), span, begins_before);
  if (!busy.empty()) {
    const uint32_t free_from = at == busy.begin() ? busy.back().end : std::prev(at)->end;
    const uint32_t free_to = at == busy.end() ? busy.front().begin : at->begin;
    gaps_.remove(group, free_from, free_to);
    if (free_from != span.begin) gaps_.add(group, free_from, span.begin);
    if (free_to != span.end) gaps_.add(group, span.end, free_to);
  } else {
    gaps_.add(group, span.end, span.begin);
  }
  busy.insert(at, span);
}

}  // namespace reprise::analyzer
