#include "analyzer/placement/pool.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace reprise::analyzer {

ChunkPool::ChunkPool(uint32_t chunks, const std::vector<uint64_t>& start_ns) : start_ns_(start_ns) {
  if (chunks == 0) return;
  groups_.resize(1);
  groups_[0].chunks.resize(chunks);
  std::iota(groups_[0].chunks.begin(), groups_[0].chunks.end(), 0u);
}

uint64_t ChunkPool::distance(uint32_t from, uint32_t to) const {
  const uint64_t a = start_ns_[from];
  const uint64_t b = start_ns_[to];
  return b >= a ? b - a : b + start_ns_.back() - a;
}

std::optional<uint64_t> ChunkPool::slack(const Group& group, const std::vector<Span>& spans) const {
  if (group.busy.empty()) return std::numeric_limits<uint64_t>::max();
  uint64_t least = std::numeric_limits<uint64_t>::max() - 1;
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

void ChunkPool::occupy(Group& group, const std::vector<Span>& spans) {
  group.busy.insert(group.busy.end(), spans.begin(), spans.end());
  std::sort(group.busy.begin(), group.busy.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
}

std::optional<std::vector<uint32_t>> ChunkPool::take(uint32_t count, const std::vector<Span>& spans) {
  struct Rated {
    uint64_t slack;
    uint32_t group;
  };
  std::vector<Rated> rated;
  uint64_t available = 0;
  for (uint32_t i = 0; i < groups_.size(); ++i) {
    if (const auto value = slack(groups_[i], spans)) {
      rated.push_back({*value, i});
      available += groups_[i].chunks.size();
    }
  }
  if (available < count) return std::nullopt;
  // A heap, for mostly a few of many groups are enough.
  const auto worse = [&](const Rated& a, const Rated& b) {
    if (a.slack != b.slack) return a.slack < b.slack;
    return groups_[a.group].chunks.front() > groups_[b.group].chunks.front();
  };
  std::make_heap(rated.begin(), rated.end(), worse);
  std::vector<uint32_t> taken;
  while (taken.size() < count) {
    std::pop_heap(rated.begin(), rated.end(), worse);
    const Rated choice = rated.back();
    rated.pop_back();
    const size_t missing = count - taken.size();
    if (groups_[choice.group].chunks.size() > missing) {
      // The rest of the last group stays as it was.
      Group rest = groups_[choice.group];
      rest.chunks.erase(rest.chunks.begin(), rest.chunks.begin() + static_cast<std::ptrdiff_t>(missing));
      groups_[choice.group].chunks.resize(missing);
      groups_.push_back(std::move(rest));
    }
    Group& group = groups_[choice.group];
    taken.insert(taken.end(), group.chunks.begin(), group.chunks.end());
    occupy(group, spans);
  }
  std::sort(taken.begin(), taken.end());
  return taken;
}

bool ChunkPool::take_these(const std::vector<uint32_t>& chunks, const std::vector<Span>& spans) {
  const auto wanted = [&](uint32_t chunk) { return std::binary_search(chunks.begin(), chunks.end(), chunk); };
  const auto is_touched = [&](const Group& g) { return std::any_of(g.chunks.begin(), g.chunks.end(), wanted); };
  for (const Group& group : groups_) {
    if (is_touched(group) && !slack(group, spans)) return false;
  }
  const size_t count = groups_.size();
  for (size_t i = 0; i < count; ++i) {
    if (!is_touched(groups_[i])) continue;
    Group rest = groups_[i];
    std::erase_if(groups_[i].chunks, [&](uint32_t chunk) { return !wanted(chunk); });
    std::erase_if(rest.chunks, wanted);
    occupy(groups_[i], spans);
    if (!rest.chunks.empty()) groups_.push_back(std::move(rest));
  }
  return true;
}

}  // namespace reprise::analyzer
