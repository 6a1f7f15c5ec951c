#include "analyzer/verify/reach.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace reprise::analyzer {
namespace {

using plan::kNone;
constexpr size_t kVisits = 48;  // of a search that must be short
// Sources that are followed at once, a bit each for every node that they may reach: many, unless the bits of a large
// graph would be more than the graph.
constexpr size_t kMostBlock = 512;
constexpr size_t kMostBits = size_t{1} << 25;

}  // namespace

Reach::Reach(const Unrolled& graph) : graph_(graph), seen_(graph.size(), 0) {
  std::vector<uint32_t> latest(graph.size(), kNone);
  std::vector<uint32_t> earliest(graph.size(), kNone);
  std::vector<uint32_t> next(graph.size(), kNone);
  for (uint32_t node = 0; node < graph.size(); ++node) {
    graph.for_predecessors(node, [&](uint32_t before) {
      if (latest[node] == kNone || before > latest[node]) latest[node] = before;
      if (earliest[node] == kNone || before < earliest[node]) earliest[node] = before;
      uint32_t& successor = next[mirrored(before)];
      if (successor == kNone) successor = mirrored(node);
    });
  }
  latest_ = number(std::move(latest));
  earliest_ = number(std::move(earliest));
  next_ = number(std::move(next));
}

Reach::Forest Reach::number(std::vector<uint32_t> parent) {
  const auto count = static_cast<uint32_t>(parent.size());
  Forest forest{std::vector<uint32_t>(count, 0), std::vector<uint32_t>(count, 0)};
  // Bottom up how many are below each, top down where each one's numbers begin; parents have lower numbers.
  std::vector<uint32_t>& below = forest.last;
  for (uint32_t node = count; node-- > 0;) {
    if (parent[node] != kNone) below[parent[node]] += below[node] + 1;
  }
  uint32_t next_root = 0;
  for (uint32_t node = 0; node < count; ++node) {
    const uint32_t size = below[node] + 1;
    uint32_t& free = parent[node] == kNone ? next_root : parent[parent[node]];
    forest.first[node] = free;
    free += size;
    forest.last[node] = forest.first[node] + size - 1;
    parent[node] = forest.first[node] + 1;  // from here on: the next number for what is below this node
  }
  return forest;
}

bool Reach::quickly(uint32_t from, uint32_t to) {
  if (from >= to) return false;
  if (known(from, to)) return true;
  ++search_;
  queue_.assign(1, to);
  bool found = false;
  for (size_t next = 0; next < queue_.size() && next < kVisits && !found; ++next) {
    graph_.for_predecessors(queue_[next], [&](uint32_t before) {
      if (found || before < from || seen_[before] == search_) return;
      seen_[before] = search_;
      found = known(from, before);
      queue_.push_back(before);
    });
  }
  return found;
}

const Reach::Question* Reach::first_without(std::vector<Question>& questions) const {
  // Sources in topological order, so that a block of them reaches only what stands behind it.
  const auto rank = [](const Question& q) { return std::tuple(q.from, q.to, q.note); };
  std::sort(questions.begin(), questions.end(),
            [&](const Question& a, const Question& b) { return rank(a) < rank(b); });
  const auto same = [](const Question& a, const Question& b) { return a.from == b.from && a.to == b.to; };
  questions.erase(std::unique(questions.begin(), questions.end(), same), questions.end());
  const size_t block = std::clamp<size_t>(kMostBits / (size_t{graph_.size()} + 1) / 64 * 64, 64, kMostBlock);
  for (size_t first = 0; first < questions.size();) {
    size_t sources = 0;
    size_t last = first;
    for (; last < questions.size(); ++last) {
      const bool another = last == first || questions[last].from != questions[last - 1].from;
      if (another && sources == block) break;
      if (another) ++sources;
    }
    const Question* failed = first_in_block(&questions[first], questions.data() + last, (sources + 63) / 64);
    if (failed != nullptr) return failed;
    first = last;
  }
  return nullptr;
}

const Reach::Question* Reach::first_in_block(const Question* first, const Question* last, size_t words) const {
  const uint32_t begin = first->from;
  uint32_t end = begin;
  for (const Question* q = first; q != last; ++q) end = std::max(end, q->to);
  std::vector<uint64_t> reached((size_t{end - begin} + 1) * words, 0);
  const auto for_each = [&](auto&& visit) {
    size_t source = 0;
    for (const Question* q = first; q != last; ++q) {
      if (q != first && q->from != (q - 1)->from) ++source;
      if (!visit(*q, source / 64, uint64_t{1} << (source % 64))) return q;
    }
    return last;
  };
  for_each([&](const Question& q, size_t word, uint64_t bit) {
    if (q.from <= end) reached[(q.from - begin) * words + word] |= bit;
    return true;
  });
  for (uint32_t node = begin + 1; node <= end; ++node) {
    uint64_t* bits = &reached[(node - begin) * words];
    graph_.for_predecessors(node, [&](uint32_t before) {
      if (before < begin) return;
      const uint64_t* other = &reached[(before - begin) * words];
      for (size_t word = 0; word < words; ++word) bits[word] |= other[word];
    });
  }
  const Question* failed = for_each([&](const Question& q, size_t word, uint64_t bit) {
    return q.from < q.to && (reached[(q.to - begin) * words + word] & bit) != 0;
  });
  return failed == last ? nullptr : failed;
}

}  // namespace reprise::analyzer
