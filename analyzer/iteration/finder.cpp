#include "analyzer/iteration/finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <tuple>
#include <vector>

#include "analyzer/iteration/isomorphism.h"
#include "analyzer/iteration/words.h"
#include "preload/trace/signature.h"

namespace reprise::analyzer {
namespace {

constexpr size_t kPeriodsPerScale = 4;
constexpr uint32_t kMostTurns = 4;
// A shorter period wins over one that explains this little more of the trace.
constexpr double kCoverageSlack = 0.02;

struct PeriodCandidate {
  uint32_t period = 0;
  std::vector<uint64_t> live_hash;  // by call: what has to be alive again one period later
  uint64_t covered = 0;             // calls in runs that have a start with equal live sets
  std::vector<Run> runs;            // those
};

// Starts s for which [s, s + period) and its repetition both lie in the run.
uint32_t starts_end(const Run& run, uint32_t period) { return run.end - 2 * period + 1; }

bool has_closed_start(const std::vector<uint64_t>& live_hash, const Run& run, uint32_t period) {
  for (uint32_t s = run.begin; s < starts_end(run, period); ++s) {
    if (live_hash[s] == live_hash[s + period]) return true;
  }
  return false;
}

// Like CallStream::live_hash, but what lives for less than a period counts as what is allocated at that place of the
// period: each may be handed over to the next one.
std::vector<uint64_t> live_hash_of_places(const CallStream& stream, uint32_t period) {
  std::vector<uint64_t> change(stream.size() + 1, 0);
  for (const AllocationSpan& span : stream.spans) {
    const uint64_t lifetime = (span.freed == kNone ? stream.size() : span.freed) - uint64_t{span.allocated};
    const uint64_t name = lifetime < period ? trace::hash_mix(span.allocated % period, span.size) : ~span.id;
    const uint64_t mixed = trace::hash_mix(0x13198a2e03707344ull, name);
    change[span.allocated + 1] += mixed;
    if (span.freed != kNone) change[span.freed + 1] -= mixed;
  }
  for (size_t i = 1; i < change.size(); ++i) change[i] += change[i - 1];
  return change;
}

PeriodCandidate evaluate(const CallStream& stream, const std::vector<uint64_t>& words, uint32_t period,
                         bool handovers) {
  PeriodCandidate candidate;
  candidate.period = period;
  candidate.live_hash = handovers ? live_hash_of_places(stream, period) : stream.live_hash;
  uint32_t counted_to = 0;
  for (const Run& run : runs_of(words, period)) {
    if (!has_closed_start(candidate.live_hash, run, period)) continue;
    candidate.runs.push_back(run);
    candidate.covered += run.end - std::max(run.begin, std::min(counted_to, run.end));
    counted_to = std::max(counted_to, run.end);
  }
  return candidate;
}

uint32_t scale_of(uint32_t period) { return 2 * std::bit_floor(period); }

std::vector<PeriodCandidate> candidates_of(const CallStream& stream) {
  std::vector<PeriodCandidate> candidates;
  for (uint32_t low = 1; uint64_t{low} * 2 <= stream.size(); low *= 2) {
    const std::vector<uint64_t> words = words_at_scale(stream, scale_of(low));
    for (const uint32_t period : periods_between(words, low, kPeriodsPerScale)) {
      PeriodCandidate candidate = evaluate(stream, words, period, false);
      if (candidate.covered > 0) candidates.push_back(std::move(candidate));
    }
  }
  return candidates;
}

// With tensors that are replaced each time: the new one is allocated before the old one is freed, so two of them take
// turns, and only two periods together, or more, end as they began.
std::vector<PeriodCandidate> candidates_with_handovers(const CallStream& stream) {
  std::vector<PeriodCandidate> candidates;
  for (uint32_t low = 1; uint64_t{low} * 2 <= stream.size(); low *= 2) {
    const std::vector<uint64_t> words = words_at_scale(stream, 2 * scale_of(low));
    for (const uint32_t period : periods_between(words, low, kPeriodsPerScale)) {
      for (uint32_t turns = 1; turns <= kMostTurns && uint64_t{turns} * period * 2 <= stream.size(); ++turns) {
        PeriodCandidate candidate = evaluate(stream, words, turns * period, true);
        if (candidate.covered > 0) candidates.push_back(std::move(candidate));
      }
    }
  }
  return candidates;
}

// Do the calls repeat, tensors aside?
bool repeats_with_other_tensors(const CallStream& stream) {
  const std::vector<uint64_t> words = words_without_tensors(stream);
  for (uint32_t low = 1; uint64_t{low} * 2 <= stream.size(); low *= 2) {
    for (const uint32_t period : periods_between(words, low, kPeriodsPerScale)) {
      if (!runs_of(words, period).empty()) return true;
    }
  }
  return false;
}

// The start of the last occurrence of the best phase in a run, as the start of the pair's first half.
uint32_t best_start(const CallStream& stream, const PeriodCandidate& candidate, const Run& run) {
  const uint32_t period = candidate.period;
  const uint32_t end = starts_end(run, period);
  const uint32_t begin = end - run.begin > period ? end - period : run.begin;
  const auto rank = [&](uint32_t s) {
    return std::tuple(stream.live_bytes[s], stream.after_wait[s] != 0 ? 0 : 1, (s - run.begin) % period);
  };
  std::optional<uint32_t> best;
  for (uint32_t s = begin; s < end; ++s) {
    if (candidate.live_hash[s] != candidate.live_hash[s + period]) continue;
    if (!best || rank(s) < rank(*best)) best = s;
  }
  // The run has a closed start, and closed starts recur with the period, so the window above holds one.
  return best.value_or(run.begin);
}

// Complete occurrences in a run: from the first place where the calls are those from `start` on.
uint32_t occurrences_in(const std::vector<uint64_t>& words, const Run& run, uint32_t start, uint32_t period) {
  const auto iteration = words.begin() + start;
  for (uint32_t s = run.begin; s < run.begin + period && s + period <= run.end; ++s) {
    if (std::equal(iteration, iteration + period, words.begin() + s)) return (run.end - s) / period;
  }
  return 0;
}

Iteration describe(const CallStream& stream, const PeriodCandidate& candidate, uint32_t start) {
  Iteration iteration;
  iteration.first_call = start + candidate.period;
  iteration.call_count = candidate.period;
  const std::vector<uint64_t> words = words_at_scale(stream, scale_of(candidate.period));
  for (const Run& run : candidate.runs) iteration.occurrences += occurrences_in(words, run, start, candidate.period);
  iteration.coverage = static_cast<double>(candidate.covered) / static_cast<double>(stream.size());
  return iteration;
}

// The best of the candidates that is an iteration, compared call by call.
Result<Iteration> choose(const CallStream& stream, std::vector<PeriodCandidate> candidates) {
  uint64_t most = 0;
  for (const PeriodCandidate& candidate : candidates) most = std::max(most, candidate.covered);
  const double enough = static_cast<double>(most) * (1 - kCoverageSlack);
  const auto order = [&](const PeriodCandidate& a, const PeriodCandidate& b) {
    const bool enough_a = static_cast<double>(a.covered) >= enough;
    const bool enough_b = static_cast<double>(b.covered) >= enough;
    if (enough_a != enough_b) return enough_a;
    return enough_a ? a.period < b.period : a.covered > b.covered;
  };
  std::stable_sort(candidates.begin(), candidates.end(), order);
  Status last;
  for (const PeriodCandidate& candidate : candidates) {
    std::vector<Run> runs = candidate.runs;
    std::stable_sort(runs.begin(), runs.end(),
                     [](const Run& a, const Run& b) { return a.end - a.begin > b.end - b.begin; });
    for (const Run& run : runs) {
      const uint32_t start = best_start(stream, candidate, run);
      last = check_isomorphic(stream, start, start + candidate.period, candidate.period);
      if (last.ok()) return describe(stream, candidate, start);
    }
  }
  return Status{StatusCode::not_found, last.ok() ? std::string() : "no iteration found: " + last.message()};
}

Result<Iteration> search(const CallStream& stream) {
  Result<Iteration> closed = choose(stream, candidates_of(stream));
  if (closed.ok()) return closed;
  Result<Iteration> with_handovers = choose(stream, candidates_with_handovers(stream));
  if (with_handovers.ok()) return with_handovers;
  if (!closed.status().message().empty()) return closed;
  if (!with_handovers.status().message().empty()) return with_handovers;
  const char* why =
      repeats_with_other_tensors(stream)
          ? "its calls repeat, but with other tensors each time: either it was recorded for less than two "
            "iterations, or its memory grows or changes with every one"
          : "nothing happens twice in a row; it must be recorded for at least two iterations";
  return Status{StatusCode::not_found, fmt::format("no iteration found in {} calls: {}", stream.size(), why)};
}

// Call indices at which a mark of this name stands: where ranges of it begin, or, where it has none, its points.
std::vector<uint32_t> marked_calls(const CallStream& stream, const std::string& mark) {
  std::vector<uint32_t> calls;
  bool ranges = false;
  uint32_t call = 0;
  for (uint32_t index = 0; index < stream.trace->events.size(); ++index) {
    while (call < stream.size() && stream.events[call] < index) ++call;
    const auto* event = std::get_if<trace::Mark>(&stream.trace->events[index]);
    if (event == nullptr || event->text != mark) continue;
    const bool opens = event->record.depth > 0;
    if (opens && !ranges) {
      ranges = true;
      calls.clear();
    }
    if (opens == ranges && (calls.empty() || calls.back() != call)) calls.push_back(call);
  }
  return calls;
}

bool complete(const CallStream& stream, uint32_t begin, uint32_t end) {
  const auto first = std::lower_bound(stream.incomplete.begin(), stream.incomplete.end(), begin);
  return first == stream.incomplete.end() || *first >= end;
}

// A reason why there is no iteration, with what is missing in the recording.
Status with_gaps(const CallStream& stream, const Status& why) {
  const std::vector<trace::GapRecord>& gaps = stream.trace->gaps;
  if (gaps.empty()) return why;
  uint64_t records = 0;
  for (const trace::GapRecord& gap : gaps) records += gap.records;
  const uint64_t last = gaps.front().header.sequence;
  return {why.code(),
          fmt::format("{}; {} records are missing in {} places of the recording, first between call {} and {}: what "
                      "it was written to was too slow; record to a faster disk",
                      why.message(), records, gaps.size(), gaps.front().after_sequence,
                      last == UINT64_MAX ? "its end" : fmt::format("call {}", last))};
}

Result<Iteration> from_marks(const CallStream& stream, const std::vector<uint32_t>& marks, const std::string& mark) {
  Iteration iteration;
  iteration.marked = true;
  iteration.occurrences = static_cast<uint32_t>(marks.size()) - 1;
  Status last{StatusCode::not_found, "only one iteration lies between marks; record at least two"};
  for (size_t i = marks.size() - 1; i >= 2; --i) {
    const uint32_t count = marks[i] - marks[i - 1];
    if (count != marks[i - 1] - marks[i - 2]) {
      last = Status{StatusCode::not_found, "they differ in their number of calls"};
      continue;
    }
    last = check_isomorphic(stream, marks[i - 2], marks[i - 1], count);
    if (last.ok() && !complete(stream, marks[i - 2], marks[i])) last = {StatusCode::not_found, "records are missing"};
    if (!last.ok()) continue;
    iteration.first_call = marks[i - 1];
    iteration.call_count = count;
    iteration.coverage = static_cast<double>(marks.back() - marks.front()) / static_cast<double>(stream.size());
    return iteration;
  }
  return Status{StatusCode::not_found,
                fmt::format("no two marked iterations (\"{}\") in a row are the same: {}", mark, last.message())};
}

}  // namespace

Result<Iteration> find_iteration(const CallStream& stream, const std::string& mark) {
  const std::vector<uint32_t> marks = marked_calls(stream, mark);
  Result<Iteration> found = marks.size() >= 2 ? from_marks(stream, marks, mark) : search(stream);
  return found.ok() ? std::move(found) : with_gaps(stream, found.status());
}

}  // namespace reprise::analyzer
