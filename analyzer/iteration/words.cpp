#include "analyzer/iteration/words.h"

#include <algorithm>

#include "preload/trace/signature.h"

namespace reprise::analyzer {
namespace {

using trace::hash_mix;

uint64_t lifetime(const CallStream& stream, const AllocationSpan& span) {
  return (span.freed == kNone ? stream.size() : span.freed) - uint64_t{span.allocated};
}

uint64_t name_in(const CallStream& stream, uint32_t span_index, uint32_t call, uint32_t scale) {
  const AllocationSpan& span = stream.spans[span_index];
  constexpr uint64_t kLong = uint64_t{1} << 63;
  return lifetime(stream, span) >= scale ? kLong | span.id : call - span.allocated;
}

uint64_t word_of(const CallStream& stream, uint32_t call, uint32_t scale) {
  if (const trace::Op* op = stream.op(call)) {
    uint64_t hash = hash_mix(op->record.signature, op->record.header.flags);
    for (const trace::AccessRecord& access : op->accesses) {
      const auto span = stream.span_of.find(access.allocation);
      if (span == stream.span_of.end()) continue;
      hash = hash_mix(hash, name_in(stream, span->second, call, scale));
      hash = hash_mix(hash_mix(hash, access.offset), access.size);
      hash = hash_mix(hash, (static_cast<uint64_t>(access.parameter_offset) << 32) | access.mode);
    }
    return hash;
  }
  const uint32_t span_index = stream.allocations[call];
  const AllocationSpan& span = stream.spans[span_index];
  const uint64_t signature = span.allocated == call ? trace::allocate_signature(span.origin, span.size)
                                                    : trace::free_signature(span.origin, span.size);
  return hash_mix(signature, name_in(stream, span_index, call, scale));
}

// Last position of each window hash: open addressing, twice as many cells as windows.
class LastSeen {
 public:
  explicit LastSeen(size_t windows) {
    size_t cells = 16;
    while (cells < windows * 2) cells *= 2;
    cells_.assign(cells, Cell{});
  }
  // Returns the position given at the last call with this hash (kNone: never) and records the new one.
  uint32_t exchange(uint64_t hash, uint32_t position) {
    const size_t mask = cells_.size() - 1;
    size_t at = hash_mix(hash, 1) & mask;
    while (cells_[at].position != kNone && cells_[at].hash != hash) at = (at + 1) & mask;
    const uint32_t before = cells_[at].position;
    cells_[at] = {hash, position};
    return before;
  }

 private:
  struct Cell {
    uint64_t hash = 0;
    uint32_t position = kNone;
  };
  std::vector<Cell> cells_;
};

}  // namespace

std::vector<uint64_t> words_at_scale(const CallStream& stream, uint32_t scale) {
  std::vector<uint64_t> words(stream.size());
  for (uint32_t call = 0; call < words.size(); ++call) words[call] = word_of(stream, call, scale);
  // What is missing here is not known to be what is missing elsewhere.
  for (const uint32_t call : stream.incomplete) words[call] = hash_mix(words[call], call + 1);
  return words;
}

std::vector<uint64_t> words_without_tensors(const CallStream& stream) {
  std::vector<uint64_t> words(stream.size());
  for (uint32_t call = 0; call < words.size(); ++call) {
    if (const trace::Op* op = stream.op(call)) {
      words[call] = op->record.signature;
      continue;
    }
    const AllocationSpan& span = stream.spans[stream.allocations[call]];
    words[call] = span.allocated == call ? trace::allocate_signature(span.origin, span.size)
                                         : trace::free_signature(span.origin, span.size);
  }
  return words;
}

std::vector<uint32_t> periods_between(const std::vector<uint64_t>& words, uint32_t low, size_t limit) {
  if (words.size() < size_t{low} * 2) return {};
  constexpr uint64_t kBase = 0x9e3779b97f4a7c15ull;  // odd; the words are hashes already
  uint64_t drop = 1;
  for (uint32_t i = 0; i < low; ++i) drop *= kBase;
  LastSeen last(words.size());
  std::vector<uint32_t> votes(low, 0);
  uint64_t hash = 0;
  for (uint32_t i = 0; i < words.size(); ++i) {
    hash = hash * kBase + words[i];
    if (i >= low) hash -= drop * words[i - low];
    if (i + 1 < low) continue;
    const uint32_t before = last.exchange(hash, i);
    if (before != kNone && i - before >= low && i - before < 2 * low) ++votes[i - before - low];
  }
  std::vector<uint32_t> periods;
  for (uint32_t i = 0; i < low; ++i) {
    if (votes[i] > 0) periods.push_back(low + i);
  }
  const auto more_votes = [&](uint32_t a, uint32_t b) { return votes[a - low] > votes[b - low]; };
  std::stable_sort(periods.begin(), periods.end(), more_votes);
  if (periods.size() > limit) periods.resize(limit);
  return periods;
}

std::vector<Run> runs_of(const std::vector<uint64_t>& words, uint32_t period) {
  std::vector<Run> runs;
  if (words.size() < period) return runs;
  const auto last = static_cast<uint32_t>(words.size() - period);
  for (uint32_t i = 0; i < last;) {
    if (words[i] != words[i + period]) {
      ++i;
      continue;
    }
    uint32_t end = i;
    while (end < last && words[end] == words[end + period]) ++end;
    if (end - i >= period) runs.push_back({i, end + period});
    i = end;
  }
  return runs;
}

}  // namespace reprise::analyzer
