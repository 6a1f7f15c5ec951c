#include "analyzer/iteration/finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "analyzer/iteration/candidates.h"
#include "analyzer/iteration/coverage.h"
#include "analyzer/iteration/isomorphism.h"
#include "analyzer/iteration/loop_calls.h"
#include "analyzer/iteration/words.h"
#include "analyzer/plan/least_share.h"
#include "preload/base/readable.h"
#include "preload/trace/signature.h"

namespace reprise::analyzer {
namespace {

// A shorter iteration wins over one that explains this little more of the trace.
constexpr double kCoverageSlack = 0.02;

constexpr size_t kMostPeriodsOfWork = 4;  // of each size, looked at to say why there is no iteration

bool as_good(uint64_t covered, uint64_t best) {
  return static_cast<double>(covered) >= static_cast<double>(best) * (1 - kCoverageSlack);
}

Status check(const CallStream& stream, const LoopCandidate& candidate, uint32_t start, bool parts_move) {
  if (candidate.turns > 1) return check_turns(stream, start, candidate.period, candidate.length());
  return check_isomorphic(stream, start - candidate.period, start, candidate.period, parts_move);
}

// Complete occurrences in a run: from the first place where the calls are those from `start` on.
uint32_t occurrences_in(const std::vector<uint64_t>& words, const Run& run, uint32_t start, uint32_t length) {
  const auto iteration = words.begin() + start;
  for (uint32_t s = run.begin; s < run.begin + length && s + length <= run.end; ++s) {
    if (std::equal(iteration, iteration + length, words.begin() + s)) return (run.end - s) / length;
  }
  return 0;
}

class IterationSearch {
 public:
  IterationSearch(const CallStream& stream, uint64_t least_calls, const LoopCalls& only, bool parts_move)
      : stream_(stream),
        words_(stream),
        coverage_(stream),
        least_calls_(least_calls),
        only_(only),
        beside_(parts_move ? Beside::parts : Beside::nothing) {}

  Result<Iteration> run() {
    for (const LoopPeriod& period : periods()) {
      if (!as_good(period.most, best_)) break;
      look_at(period);
    }
    // Among those that cover as much as any: the shortest, and where nothing is handed over.
    std::erase_if(found_, [&](const Proven& found) { return !as_good(found.candidate.covered, best_); });
    const auto order = [](const Proven& found) {
      return std::tuple(found.candidate.length(), found.candidate.handovers, ~found.candidate.covered);
    };
    const auto chosen = std::min_element(found_.begin(), found_.end(),
                                         [&](const Proven& a, const Proven& b) { return order(a) < order(b); });
    if (chosen != found_.end()) {
      Iteration iteration = describe(*chosen);
      if (is_worth_planning(iteration)) return iteration;
      return Status{StatusCode::not_found, why_too_little(iteration, chosen->candidate)};
    }
    return Status{StatusCode::not_found, refusal_.ok() ? why_none() : "no iteration found: " + refusal_.message()};
  }

 private:
  struct Proven {
    LoopCandidate candidate;
    LoopStart start;
  };

  // Of the one loop that is looked for, whatever else repeats more often: it may be of several periods.
  std::vector<LoopPeriod> periods() const {
    if (only_.count == 0) return periods_of(stream_, words_, coverage_);
    std::vector<LoopPeriod> found;
    for (uint64_t turns = 1; turns <= kMostTurns; ++turns) {
      if (only_.count % turns != 0 || only_.count > stream_.size()) continue;
      found.push_back({static_cast<uint32_t>(only_.count / turns), coverage_.total()});
    }
    return found;
  }

  bool is_wanted(uint32_t start, uint32_t length) const {
    if (length < least_calls_) return false;
    if (only_.count == 0) return true;
    LoopCalls calls;
    for (CallIndex call{start}; call < start + length; ++call) calls.add(words_.without_tensors()[call]);
    return calls == only_;
  }

  void look_at(const LoopPeriod& period) {
    const uint32_t most_turns = beside_ == Beside::nothing ? kMostTurns : 1;
    for (uint32_t turns = 1; turns <= most_turns && uint64_t{turns + 1} * period.length <= stream_.size(); ++turns) {
      const std::vector<uint64_t> words = words_.at_scale(turns * period.length, beside_);
      for (const bool handovers : {false, true}) {
        if (turns > 1 && !handovers) continue;
        for (LoopCandidate& candidate : make_candidates(stream_, words, coverage_, period.length, turns, handovers)) {
          if (as_good(candidate.covered, best_)) accept(std::move(candidate));
        }
        if (!found_.empty() && as_good(best_, period.most)) return;  // no other form of this period is better
      }
    }
  }

  // Compared call by call, in the run that covers most first.
  void accept(LoopCandidate candidate) {
    std::vector<size_t> order(candidate.runs.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return coverage_.of(candidate.runs[a]) > coverage_.of(candidate.runs[b]);
    });
    for (const size_t run : order) {
      const LoopStart start = candidate.starts[run];
      if (!is_wanted(start.call, candidate.length())) continue;
      const Status same = check(stream_, candidate, start.call, beside_ == Beside::parts);
      if (same.ok()) {
        best_ = std::max(best_, candidate.covered);
        found_.push_back({std::move(candidate), start});
        return;
      }
      if (refusal_.ok()) refusal_ = same;
    }
  }

  Iteration describe(const Proven& found) const {
    const uint32_t length = found.candidate.length();
    Iteration iteration;
    iteration.first_call = found.start.call;
    iteration.early = found.start.early;
    iteration.call_count = length;
    const std::vector<uint64_t> words = words_.at_scale(length, beside_);
    for (const Run& run : found.candidate.runs) {
      iteration.occurrences += occurrences_in(words, run, found.start.call, length);
    }
    iteration.coverage = coverage_.share(found.candidate.covered);
    iteration.timed = coverage_.timed();
    iteration.parts_move = beside_ == Beside::parts;
    return iteration;
  }

  // Who asks for so many calls, or for one loop, knows what it is.
  bool is_worth_planning(const Iteration& found) const {
    if (least_calls_ > 0 || only_.count > 0) return true;
    return found.call_count > 1 && 100 * found.coverage >= plan::kLeastShare;
  }

  // What repeats, and why the rest does not.
  std::string why_too_little(const Iteration& found, const LoopCandidate& candidate) const {
    constexpr double kMost = 0.5;
    const std::string all =
        found.call_count == 1
            ? fmt::format("no iteration found in {} calls: what repeats is one call, in which nothing can move",
                          stream_.size())
            : fmt::format("no iteration found in {} calls: what repeats are {} calls", stream_.size(),
                          found.call_count);
    std::string text = fmt::format("{}, {} times, {}", all, found.occurrences, covered(found));
    if (found.coverage >= kMost) return text;
    const Coverage calls(stream_, true);
    if (calls.share(calls.of(candidate.runs)) >= kMost) return text + "; what takes longer does not repeat";
    return text + "; " + (refusal_.ok() ? what_differs() : refusal_.message());
  }

  // With the same tensors, but with other parts of one, or freed in another order? Those of all loops of that period:
  // each epoch may have an order of its own, say.
  bool repeats(const LoopPeriod& period, const Coverage& calls, Beside beside) const {
    for (uint32_t turns = 1; turns <= kMostTurns; ++turns) {
      const std::vector<uint64_t> words = words_.at_scale(turns * period.length, beside);
      uint64_t covered = 0;
      for (const LoopCandidate& candidate :
           make_candidates(stream_, words, calls, period.length, turns, /*handovers=*/true)) {
        covered += candidate.covered;
      }
      if (2 * covered >= calls.total()) return true;
    }
    return false;
  }

  // Does most of the work on the device repeat in one piece, three times or more, whatever is allocated and freed
  // between? The layers of a step do not: they are one way and the other.
  bool work_repeats() const {
    std::vector<uint64_t> work;
    for (CallIndex call{0}; call < stream_.size(); ++call) {
      if (stream_.op(call) != nullptr) work.push_back(words_.without_tensors()[call]);
    }
    for (uint32_t low = 1; 3 * uint64_t{low} <= work.size(); low *= 2) {
      for (const uint32_t period : periods_between(work, low, kMostPeriodsOfWork)) {
        for (const Run& run : runs_of(work, period)) {
          const uint32_t calls = run.end - run.begin;
          if (calls >= 3 * period && 2 * uint64_t{calls} >= work.size()) return true;
        }
      }
    }
    return false;
  }

  // Do the calls repeat, tensors aside? A few allocations in a row are no loop of the program: each of three iterations
  // has work for the device.
  const char* what_differs() const {
    constexpr const char* kOnce =
        "most of what it does happens only once; at least three equal iterations must be recorded";
    constexpr const char* kOtherOrder =
        "its work repeats, but between it memory is allocated or freed in another order each time, as where host code "
        "frees tensors in the order of a set or of their addresses";
    uint32_t ops = 0;
    for (CallIndex call{0}; call < stream_.size() && ops < 3; ++call) ops += stream_.op(call) != nullptr ? 1u : 0u;
    if (ops < 3) return kOnce;
    const Coverage calls(stream_, true);
    const std::vector<LoopPeriod> periods = periods_of(stream_, words_, calls);
    if (periods.empty() || 2 * periods.front().most < calls.total()) {
      return work_repeats() ? kOtherOrder : kOnce;
    }
    const auto differ_in = [&](Beside beside) {
      return std::any_of(periods.begin(), periods.end(), [&](const LoopPeriod& period) {
        return 2 * period.most >= calls.total() && repeats(period, calls, beside);
      });
    };
    if (differ_in(Beside::parts)) {
      return "its calls repeat, but with another part of a tensor each time, as where steps take slices of data "
             "that stay on the device";
    }
    return differ_in(Beside::frees)
               ? kOtherOrder
               : "its calls repeat, but with other tensors each time: either it was recorded for less than three "
                 "iterations, or its memory grows or changes with every one";
  }

  std::string why_none() const {
    if (stream_.size() == 0) return "no iteration found: there is no call of the program in the recording";
    return fmt::format("no iteration found in {} calls: {}", stream_.size(), what_differs());
  }

  const CallStream& stream_;
  const CallWords words_;
  const Coverage coverage_;
  const uint64_t least_calls_;
  const LoopCalls only_;
  const Beside beside_;
  std::vector<Proven> found_;
  uint64_t best_ = 0;  // that one of them covers
  Status refusal_;     // why the first one that hashes proposed is none
};

// Call indices at which kMark stands: where its ranges begin, or, without ranges, its points.
std::vector<uint32_t> marked_calls(const CallStream& stream) {
  std::vector<uint32_t> calls;
  bool ranges = false;
  CallIndex call{0};
  for (uint32_t index = 0; index < stream.trace->events.size(); ++index) {
    while (call < stream.size() && stream.events[call] < index) ++call;
    const auto* event = std::get_if<trace::Mark>(&stream.trace->events[index]);
    if (event == nullptr || event->text != kMark) continue;
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
  return (first == stream.incomplete.end() || *first >= end) && contiguous(stream, begin, end);
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

Result<Iteration> from_marks(const CallStream& stream, const std::vector<uint32_t>& marks, bool parts_move) {
  Iteration iteration;
  iteration.marked = true;
  iteration.parts_move = parts_move;
  iteration.occurrences = static_cast<uint32_t>(marks.size()) - 1;
  Status last{StatusCode::not_found, "only one iteration lies between marks; record at least two"};
  for (size_t i = marks.size() - 1; i >= 2; --i) {
    const uint32_t count = marks[i] - marks[i - 1];
    if (count != marks[i - 1] - marks[i - 2]) {
      last = Status{StatusCode::not_found, "they differ in their number of calls"};
      continue;
    }
    last = check_isomorphic(stream, marks[i - 2], marks[i - 1], count, parts_move);
    const bool whole = complete(stream, marks[i - 2], marks[i - 1]) && complete(stream, marks[i - 1], marks[i]);
    if (last.ok() && !whole) last = {StatusCode::not_found, "records are missing"};
    if (!last.ok()) continue;
    iteration.first_call = marks[i - 1];
    iteration.call_count = count;
    const Coverage coverage(stream);
    iteration.coverage = coverage.share(coverage.of(Run{marks.front(), marks.back()}));
    iteration.timed = coverage.timed();
    return iteration;
  }
  return Status{StatusCode::not_found,
                fmt::format("no two marked iterations (\"{}\") in a row are the same: {}", kMark, last.message())};
}

// Layers whose weights lie in one block differ in their parts alone, so parts may move only where nothing else is found
// that is most of the recording.
constexpr double kMostOfIt = 0.5;

Result<Iteration> search(const CallStream& stream, uint64_t least_calls, const LoopCalls& only) {
  const std::vector<uint32_t> marks = marked_calls(stream);
  const auto look = [&](bool parts_move) {
    return marks.size() >= 2 ? from_marks(stream, marks, parts_move)
                             : IterationSearch(stream, least_calls, only, parts_move).run();
  };
  Result<Iteration> found = look(false);
  if (!found.ok() || found.value().coverage < kMostOfIt) {
    Result<Iteration> moves = look(true);
    const double before = found.ok() ? found.value().coverage : 0;
    if (moves.ok() && moves.value().coverage > std::max(before, kMostOfIt)) found = std::move(moves);
  }
  return found.ok() ? std::move(found) : with_gaps(stream, found.status());
}

}  // namespace

std::string covered(const Iteration& iteration) {
  return fmt::format("{} % of the recorded {}", decimal(iteration.coverage * 100, 1, 0),
                     iteration.timed ? "device time" : "calls");
}

void LoopCalls::add(uint64_t signature) {
  ++count;
  hash += trace::hash_mix(1, signature);
}

Result<Iteration> find_iteration(const CallStream& stream, uint64_t least_calls) {
  return search(stream, least_calls, {});
}

Result<Iteration> find_loop(const CallStream& stream, const LoopCalls& loop) { return search(stream, 0, loop); }

}  // namespace reprise::analyzer
