#include "analyzer/iteration/words.h"

#include <algorithm>

#include "preload/trace/signature.h"

namespace reprise::analyzer {
namespace {

using trace::hash_mix;

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

CallWords::CallWords(const CallStream& stream) : stream_(stream) {
  plain_.reserve(stream.size());
  heads_.reserve(stream.size());
  first_.reserve(stream.size() + 1);
  for (CallIndex call{0}; call < stream.size(); ++call) add_call(call);
  first_.push_back(named_.size());
}

void CallWords::add_call(CallIndex call) {
  first_.push_back(named_.size());
  if (const trace::Op* op = stream_.op(call)) {
    plain_.push_back(op->record.signature);
    heads_.push_back(hash_mix(op->record.signature, op->record.header.flags));
    for (const trace::AccessRecord& access : op->accesses) {
      const auto span = stream_.span_of.find(access.allocation);
      if (span == stream_.span_of.end()) continue;
      const uint64_t use = (static_cast<uint64_t>(access.parameter_offset) << 32) | access.mode;
      named_.push_back({span->second, hash_mix(hash_mix(access.offset, access.size), use)});
    }
    return;
  }
  const uint32_t span_index = stream_.allocations[call];
  const AllocationSpan& span = stream_.spans[span_index];
  const uint64_t signature = span.allocated == call ? trace::allocate_signature(span.origin, span.size)
                                                    : trace::free_signature(span.origin, span.size);
  plain_.push_back(signature);
  heads_.push_back(signature);
  named_.push_back({span_index, 0});
}

std::vector<uint64_t> CallWords::at_scale(uint32_t scale, Beside beside) const {
  const auto frees = [&](CallIndex call) {
    return stream_.op(call) == nullptr && stream_.spans[stream_.allocations[call]].allocated != call;
  };
  std::vector<uint64_t> words(stream_.size());
  for (CallIndex call{0}; call < words.size(); ++call) {
    uint64_t hash = heads_[call];
    if (beside == Beside::frees && frees(call)) {
      words[call] = hash;
      continue;
    }
    for (uint64_t i = first_[call]; i < first_[call + 1]; ++i) {
      const AllocationSpan& span = stream_.spans[named_[i].span];
      const uint64_t name = lifetime_of(stream_, span) >= scale ? ~span.id : call - span.allocated;
      hash = hash_mix(hash_mix(hash, name), beside == Beside::parts ? 0 : named_[i].part);
    }
    words[call] = hash;
  }
  // What is missing here is not known to be what is missing elsewhere.
  for (const uint32_t call : stream_.incomplete) words[call] = hash_mix(words[call], call + 1);
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
