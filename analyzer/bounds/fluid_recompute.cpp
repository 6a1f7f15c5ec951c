#include "analyzer/bounds/fluid_recompute.h"

#include <utility>

namespace reprise::analyzer {

// What is recomputed, and where; what runs again with it.
FluidRecompute::FluidRecompute(LinearProgram& program, FluidRows& rows, const FluidGrid& grid, const TaskGraph& graph,
                               const Vitality& vitality, const Machine& machine,
                               const std::vector<RecomputeCandidate>& candidates, bool guarded)
    : program_(program),
      rows_(rows),
      grid_(grid),
      graph_(graph),
      vitality_(vitality),
      machine_(machine),
      candidates_(candidates),
      guarded_(guarded),
      places_(graph, candidates) {
  op_of_call_.assign(graph.calls.size(), OpIndex{kNone});
  for (OpIndex op{0}; op < grid.ops(); ++op) op_of_call_[vitality.call_of_op[op]] = op;
  for (uint32_t c = 0; c < candidates.size(); ++c) {
    recomputed_.push_back(add_runs(places_.of(c)));
    const uint32_t row = program_.add_row(-LinearProgram::kInfinity, 1);
    for (const PlacedRun& run : recomputed_.back()) program_.set(row, run.column, 1);
  }
  for (const auto& [call, repeat] : places_.all()) add_repeat(call, repeat);
  for (const auto& [call, repeat] : places_.all()) {
    for (const plan::OpAccess& access : graph.calls[call].call.accesses) {
      if (may_show_itself(access)) add_input(again_[call], access.tensor);
    }
  }
}

void FluidRecompute::add_repeat(CallIndex call, const RecomputePlaces::RepeatedOp& repeat) {
  const uint32_t itself = places_.candidate(call);
  const bool alone = itself != kNone && repeat.causes.size() == 1;
  const Runs& runs = again_[call] = alone ? recomputed_[itself] : add_runs(repeat.places);
  uint64_t ns = graph_.calls[call].call.duration_ns;
  for (const plan::OpAccess& access : graph_.calls[call].call.accesses) {
    if (guarded_ && !may_show_itself(access)) ns += guards_ns(access.tensor);
  }
  take_time(runs, ns);
  if (alone) return;
  for (const RecomputePlaces::Cause& cause : repeat.causes) run_with(runs, cause);
  if (itself != kNone) keep_once_made(runs, recomputed_[itself]);
}

FluidRecompute::Runs FluidRecompute::add_runs(const std::vector<CallIndex>& places) {
  Runs runs;
  for (const CallIndex place : places) {
    const uint32_t interval = grid_.interval_before(op_of_call_[place]);
    if (runs.empty() || runs.back().interval != interval) {
      runs.push_back({interval, program_.add_column(0, 0, 1), place, place});
    }
    runs.back().last = place;
  }
  return runs;
}

void FluidRecompute::take_time(const Runs& runs, uint64_t ns) {
  for (const PlacedRun& run : runs) rows_.take_time(run.column, run.interval, ns);
}

// By each place of the candidate, at least as much of the op has run.
void FluidRecompute::run_with(const Runs& runs, const RecomputePlaces::Cause& cause) {
  for (const PlacedRun& by : recomputed_[cause.candidate]) {
    const uint32_t row = program_.add_row(0, LinearProgram::kInfinity);
    for (const PlacedRun& run : runs) {
      if (run.interval <= by.interval) program_.set(row, run.column, 1);
    }
    for (const PlacedRun& run : recomputed_[cause.candidate]) {
      const bool needed = cause.not_until == kNone || run.first > cause.not_until;
      if (needed && run.interval <= by.interval) program_.set(row, run.column, -1);
    }
  }
}

// By each place of the candidate, what has run for others is no longer dropped.
void FluidRecompute::keep_once_made(const Runs& runs, const Runs& candidate) {
  for (const PlacedRun& by : candidate) {
    const uint32_t row = program_.add_row(-LinearProgram::kInfinity, 1);
    for (const PlacedRun& run : runs) {
      if (run.first >= candidate.front().first && run.interval <= by.interval) program_.set(row, run.column, 1);
    }
    add_dropped(row, candidate, by.interval);
  }
}
// What is made again behind this interval.
void FluidRecompute::add_dropped(uint32_t row, const Runs& candidate, uint32_t interval) {
  for (const PlacedRun& run : candidate) {
    if (run.interval > interval) program_.set(row, run.column, 1);
  }
}

// An input that is made again itself is not compared (decision 0035).
bool FluidRecompute::may_show_itself(const plan::OpAccess& access) const {
  return !changes(access) && places_.maker(access.tensor) != kNone;
}

// An input of what runs again, of an op that may run again, too.
void FluidRecompute::add_input(const Runs& runs, uint32_t tensor) {
  if (guarded_) {
    Runs guards = runs;
    for (PlacedRun& guard : guards) guard.column = program_.add_column(0, 0, 1);
    take_time(guards, guards_ns(tensor));
    const uint32_t row = program_.add_row(0, LinearProgram::kInfinity);
    for (const PlacedRun& guard : guards) program_.set(row, guard.column, 1);
    for (const PlacedRun& run : runs) program_.set(row, run.column, -1);
    for (const PlacedRun& maker : again_[places_.maker(tensor)]) program_.set(row, maker.column, 1);
  }
  if (places_.candidate_making(tensor) == kNone) return;
  // By the time that something has run that reads it, it is no longer dropped.
  const auto finds_it_dropped = [&](const PlacedRun& run) {
    return places_.is_dropped_at(tensor, run.first) && places_.is_dropped_at(tensor, run.last);
  };
  for (const PlacedRun& by : runs) {
    if (!finds_it_dropped(by)) continue;
    const uint32_t row = program_.add_row(-LinearProgram::kInfinity, 1);
    for (const PlacedRun& run : runs) {
      if (run.interval <= by.interval && finds_it_dropped(run)) program_.set(row, run.column, 1);
    }
    add_dropped(row, recomputed_[places_.candidate_making(tensor)], by.interval);
  }
}

// Does recomputing a candidate end this period, or one that nothing else ends? Outputs that are not used again until
// then are dropped, too.
bool FluidRecompute::is_candidates(const Version& version, const Period& period) const {
  const uint32_t c = places_.candidate_making(version.tensor);
  if (c == kNone || period.from >= op_of_call_[candidates_[c].before]) return false;
  return period.tail || op_of_call_[candidates_[c].before] <= period.to;
}

void FluidRecompute::forget(const std::vector<PeriodSpan>& spans, const std::vector<uint32_t>& versions, double bytes,
                            uint32_t copied, const std::vector<uint32_t>& away) {
  std::map<uint32_t, uint32_t> rows;  // by column: what is copied and what is forgotten are different bytes
  const auto limit = [&](uint32_t column, uint32_t forgotten, double size) {
    const auto [at, added] = rows.try_emplace(column, 0);
    if (added) {
      at->second = program_.add_row(-LinearProgram::kInfinity, bytes);
      program_.set(at->second, column, 1);
    }
    program_.set(at->second, forgotten, size);
  };
  for (const uint32_t v : versions) {
    const Version& version = vitality_.versions[v];
    const double size = static_cast<double>(graph_.tensors[version.tensor].size) / kGiB;
    for (const PeriodSpan& span : spans) {
      if (!is_candidates(version, version.periods[span.period])) continue;
      for (const PlacedRun& run : recomputed_[places_.candidate_making(version.tensor)]) {
        for (uint32_t p = span.first; p <= span.last && p < run.interval; ++p) {
          program_.set(rows_.memory(p), run.column, size);
          if (copied != kNone) limit(away[p - span.first], run.column, size);
        }
        if (copied != kNone && run.interval > span.last) limit(copied, run.column, size);
      }
    }
  }
}

void FluidRecompute::need_inputs(const PeriodSpan& span, const std::vector<uint32_t>& versions,
                                 const FluidColumns& columns, double bytes) {
  if (span.back == kNone) return;                         // no op reads these bytes
  std::map<std::pair<uint32_t, uint32_t>, double> sizes;  // by interval and column
  for (const uint32_t v : versions) {
    const uint32_t tensor = vitality_.versions[v].tensor;
    if (places_.candidate_making(tensor) != kNone) continue;
    for (const CallIndex reader : places_.readers(tensor)) {
      for (const PlacedRun& run : again_[reader]) {
        if (span.first >= run.interval || run.interval > span.last) continue;
        sizes[{run.interval, run.column}] += static_cast<double>(graph_.tensors[tensor].size) / kGiB;
      }
    }
  }
  for (const auto& [at, size] : sizes) {
    const uint32_t i = at.first - span.first - 1;
    const uint32_t row = program_.add_row(-bytes, LinearProgram::kInfinity);  // in - away - size * part >= -bytes
    program_.set(row, columns.in[i], 1);
    program_.set(row, columns.away[i], -1);
    program_.set(row, at.second, -size);
  }
}

std::vector<double> FluidRecompute::parts(const std::vector<double>& x) const {
  std::vector<double> result;
  for (const Runs& runs : recomputed_) {
    result.push_back(0);
    for (const PlacedRun& run : runs) result.back() += x[run.column];
  }
  return result;
}

}  // namespace reprise::analyzer
