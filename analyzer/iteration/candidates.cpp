#include "analyzer/iteration/candidates.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "preload/trace/signature.h"

namespace reprise::analyzer {
namespace {

constexpr size_t kPeriodsPerScale = 4;
constexpr double kWorthWaiting = 0.9;  // for a start where less than this share is alive of what is at the best so far

// Like CallStream::live_hash, but what lives for less than an iteration counts as what is allocated at that place of
// it: each may be handed over to the next one.
std::vector<uint64_t> live_hash_of_places(const CallStream& stream, uint32_t length) {
  std::vector<uint64_t> change(stream.size() + 1, 0);
  for (const AllocationSpan& span : stream.spans) {
    const bool brief = lifetime_of(stream, span) < length;
    const uint64_t name = brief ? trace::hash_mix(span.allocated % length, span.size) : ~span.id;
    const uint64_t mixed = trace::hash_mix(0x13198a2e03707344ull, name);
    change[span.allocated + 1] += mixed;
    if (span.freed != kNone) change[span.freed + 1] -= mixed;
  }
  for (size_t i = 1; i < change.size(); ++i) change[i] += change[i - 1];
  return change;
}

// Where an iteration of the candidate may start in a run: at the last of the best places. Nowhere: nothing.
//
//     run      | period | period | period | per...
//     starts            |<--->|              the iteration, of two periods here, ends with the run at the latest
//     too late                |<-->|         places of the loop that come as starts when the run is longer
std::optional<LoopStart> best_start(const CallStream& stream, const std::vector<uint64_t>& live_hash,
                                    const LoopCandidate& candidate, const Run& run) {
  // The run holds the iteration and, before it, the period that it is compared with.
  const uint32_t end = run.end - candidate.length() + 1;
  const uint32_t first = run.begin + candidate.period;
  const auto rank = [&](uint32_t s) {
    return std::tuple(stream.live_bytes[s], stream.after_wait[s] != 0 ? 0 : 1, (s - run.begin) % candidate.period);
  };
  std::optional<uint32_t> best;
  // Starts recur with the period.
  for (uint32_t s = end - first > candidate.period ? end - candidate.period : first; s < end; ++s) {
    if (live_hash[s] != live_hash[s + candidate.length()]) continue;
    if (!contiguous(stream, s - candidate.period, s) || !contiguous(stream, s, s + candidate.length())) continue;
    if (!best || rank(s) < rank(*best)) best = s;
  }
  if (!best) return std::nullopt;
  const double enough = kWorthWaiting * static_cast<double>(stream.live_bytes[*best]);
  bool early = false;
  for (uint32_t s = end; s < first + candidate.period; ++s) {
    early = early || static_cast<double>(stream.live_bytes[s]) < enough;
  }
  return LoopStart{CallIndex{*best}, early};
}

// Runs in which the same calls repeat: those of another loop repeat at this distance, too. Which call they begin with
// does not matter.
std::vector<std::vector<Run>> loops_of(const std::vector<uint64_t>& words, uint32_t period) {
  std::map<uint64_t, std::vector<Run>> loops;
  for (const Run& run : runs_of(words, period)) {
    loops[std::accumulate(words.begin() + run.begin, words.begin() + run.begin + period, uint64_t{0})].push_back(run);
  }
  std::vector<std::vector<Run>> result;
  result.reserve(loops.size());
  for (auto& [calls, runs] : loops) result.push_back(std::move(runs));
  return result;
}

void add_periods(const std::vector<uint64_t>& words, uint32_t low, std::vector<uint32_t>* periods) {
  for (const uint32_t period : periods_between(words, low, kPeriodsPerScale)) periods->push_back(period);
}

}  // namespace

// Tensors that are named by distance although they live on, or by their id although they are handed over, hide a period
// at one scale or the other; so do layers that differ in nothing but their weights without tensors. Three looks.
std::vector<LoopPeriod> periods_of(const CallStream& stream, const CallWords& words, const Coverage& coverage) {
  std::vector<uint32_t> lengths;
  std::vector<uint64_t> at_scale = words.at_scale(2);
  for (uint32_t low = 1; uint64_t{low} * 2 <= stream.size(); low *= 2) {
    add_periods(at_scale, low, &lengths);  // of tensors that live for less than 2 * low
    at_scale = words.at_scale(4 * low);
    add_periods(at_scale, low, &lengths);
    add_periods(words.without_tensors(), low, &lengths);
  }
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  std::vector<LoopPeriod> periods;
  for (const uint32_t length : lengths) {
    uint64_t most = 0;
    for (const auto& runs : loops_of(words.without_tensors(), length)) most = std::max(most, coverage.of(runs));
    if (most > 0) periods.push_back({length, most});
  }
  std::stable_sort(periods.begin(), periods.end(),
                   [](const LoopPeriod& a, const LoopPeriod& b) { return a.most > b.most; });
  return periods;
}

std::vector<LoopCandidate> make_candidates(const CallStream& stream, const std::vector<uint64_t>& words,
                                           const Coverage& coverage, uint32_t period, uint32_t turns, bool handovers) {
  std::vector<LoopCandidate> candidates;
  std::vector<uint64_t> live_hash;
  for (const std::vector<Run>& runs : loops_of(words, period)) {
    LoopCandidate candidate;
    candidate.period = period;
    candidate.turns = turns;
    candidate.handovers = handovers;
    for (const Run& run : runs) {
      if (run.end - run.begin < candidate.length() + period) continue;
      if (live_hash.empty()) {
        live_hash = handovers ? live_hash_of_places(stream, candidate.length()) : stream.live_hash;
      }
      const std::optional<LoopStart> start = best_start(stream, live_hash, candidate, run);
      if (!start) continue;
      candidate.runs.push_back(run);
      candidate.starts.push_back(*start);
    }
    candidate.covered = coverage.of(candidate.runs);
    if (candidate.covered > 0) candidates.push_back(std::move(candidate));
  }
  return candidates;
}

}  // namespace reprise::analyzer
