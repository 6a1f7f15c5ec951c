#include "analyzer/bounds/fluid.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "analyzer/bounds/linear_program.h"
#include "analyzer/bounds/recompute_places.h"

namespace reprise::analyzer {
namespace {

// The program's units: well scaled numbers.
constexpr double kGiB = 0x1p30;
constexpr double kMs = 1e6;  // nanoseconds

constexpr double kTouchedWeight = 0.75;  // of bytes against ops, when segments are cut

// Time is cut at points: the start and the end of the fullest op of each segment. Interval i leads up to point i. Even
// points are starts, with a stall before them; odd ones are ends, and the interval before is the op itself.

// A period on this grid: at which points the tensor is not in use, and up to which interval it may come back.
struct PeriodSpan {
  uint32_t period = 0;
  uint32_t first = 0;  // covered points, inclusive
  uint32_t last = 0;
  uint32_t back = 0;  // kNone: it need not come back
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 of a defaulted <=> for a pointer
  auto operator<=>(const PeriodSpan&) const = default;
};

// Versions that look the same on the grid.
struct Kind {
  uint32_t written = 0;  // the first interval in which a copy may go out
  bool on_host = false;
  std::vector<PeriodSpan> spans;
  // NOLINTNEXTLINE(modernize-use-nullptr): as above
  auto operator<=>(const Kind&) const = default;
};

class FluidProgram {
 public:
  FluidProgram(const TaskGraph& graph, uint64_t capacity, const Machine& machine, const FluidOptions& options,
               const std::vector<RecomputeCandidate>& candidates)
      : graph_(graph),
        capacity_(capacity),
        machine_(machine),
        options_(options),
        candidates_(candidates),
        places_(graph, candidates) {
    fluid_.vitality = vitality_of(graph);
    ops_ = static_cast<uint32_t>(fluid_.vitality.call_of_op.size());
  }

  Result<Fluid> solve() {
    if (ops_ == 0) return fluid_;
    cut();
    add_points();
    add_candidates();
    for (const auto& [kind, members] : kinds()) add_kind(kind, members);
    Result<LinearProgram::Solution> solution = program_.minimise(options_.seconds);
    if (!solution.ok()) return solution.status();
    read(solution.value().x);
    return std::move(fluid_);
  }

 private:
  struct Variables {  // of a flow, by point from its first one on
    std::vector<uint32_t> away, ssd;
    std::vector<uint32_t> in;  // in the interval behind each point; not from an SSD
  };

  uint64_t duration(uint32_t op) const {
    const plan::Call& call = graph_.calls[fluid_.vitality.call_of_op[op]].call;
    const bool copy = call.op == trace::OpKind::copy_host_to_device || call.op == trace::OpKind::copy_device_to_host;
    return copy ? 0 : call.duration_ns;  // the program's own copies do not keep kernels waiting
  }

  double touched(uint32_t op) const {
    double bytes = 0;
    for (const uint32_t tensor : graph_.calls[fluid_.vitality.call_of_op[op]].operands) {
      bytes += static_cast<double>(graph_.tensors[tensor].size);
    }
    return bytes;
  }

  // Cuts into segments of about as many ops that touch about as many bytes: budgets are tight where much is touched.
  // The op with the most bytes alive stands for its segment.
  void cut() {
    double total = 0;
    for (uint32_t op = 0; op < ops_; ++op) total += touched(op);
    const uint32_t count = std::min(options_.segments, ops_);
    double done = 0;
    uint32_t begun = 0;
    for (uint32_t op = 0; op < ops_; ++op) {
      const double of_ops = static_cast<double>(op) / ops_;
      const double share = total > 0 ? kTouchedWeight * done / total + (1 - kTouchedWeight) * of_ops : of_ops;
      if (count == ops_ || begun == 0 || share * count >= static_cast<double>(begun)) {
        ++begun;
        fluid_.fullest.push_back(op);
      }
      uint32_t& fullest = fluid_.fullest.back();
      if (fluid_.vitality.alive[op] > fluid_.vitality.alive[fullest]) fullest = op;
      done += touched(op);
    }
    points_ = static_cast<uint32_t>(2 * fluid_.fullest.size());
    compute_.assign(points_, 0);
    for (uint32_t op = 0; op < ops_; ++op)
      compute_[interval_of(op) % points_] += static_cast<double>(duration(op)) / kMs;
  }

  // For each point: how long what leads up to it takes, what the links carry meanwhile, what must be away.
  void add_points() {
    for (uint32_t p = 0; p < points_; ++p) {
      stall_.push_back(program_.add_column(1, 0, p % 2 == 0 ? LinearProgram::kInfinity : 0));
      const double excess =
          static_cast<double>(fluid_.vitality.alive[fluid_.fullest[p / 2]]) - static_cast<double>(capacity_);
      memory_.push_back(program_.add_row(std::max(excess, 0.0) / kGiB, LinearProgram::kInfinity));
      out_.push_back(add_link(p, machine_.d2h_bytes_per_s));
      in_.push_back(add_link(p, machine_.h2d_bytes_per_s));
      if (machine_.h2d_together_bytes_per_s > 0 && machine_.d2h_together_bytes_per_s > 0) add_shared(p);
      if (!machine_.has_ssd()) continue;
      to_ssd_.push_back(add_link(p, machine_.ssd_write_bytes_per_s));
      from_ssd_.push_back(add_link(p, machine_.ssd_read_bytes_per_s));
      const double host =
          machine_.host_bytes == 0 ? LinearProgram::kInfinity : static_cast<double>(machine_.host_bytes);
      host_.push_back(program_.add_row(-LinearProgram::kInfinity, host / kGiB));
    }
  }

  // The parts of something that run before one of its places each; of places in one interval, together.
  struct PlacedRun {
    uint32_t interval = 0;
    uint32_t column = 0;
    uint32_t first = 0, last = 0;  // places
  };
  using Runs = std::vector<PlacedRun>;  // ascending

  // What is recomputed, and where; what runs again with it.
  void add_candidates() {
    op_of_call_.assign(graph_.calls.size(), kNone);
    for (uint32_t op = 0; op < ops_; ++op) op_of_call_[fluid_.vitality.call_of_op[op]] = op;
    for (uint32_t c = 0; c < candidates_.size(); ++c) {
      recomputed_.push_back(add_runs(places_.of(c)));
      const uint32_t row = program_.add_row(-LinearProgram::kInfinity, 1);
      for (const PlacedRun& run : recomputed_.back()) program_.set(row, run.column, 1);
    }
    for (const auto& [call, repeat] : places_.all()) add_repeat(call, repeat);
    for (const auto& [call, repeat] : places_.all()) {
      for (const plan::OpAccess& access : graph_.calls[call].call.accesses) {
        if (may_show_itself(access)) add_input(again_[call], access.tensor);
      }
    }
  }

  void add_repeat(uint32_t call, const RecomputePlaces::RepeatedOp& repeat) {
    const uint32_t itself = places_.candidate(call);
    const bool alone = itself != kNone && repeat.causes.size() == 1;
    const Runs& runs = again_[call] = alone ? recomputed_[itself] : add_runs(repeat.places);
    uint64_t ns = graph_.calls[call].call.duration_ns;
    for (const plan::OpAccess& access : graph_.calls[call].call.accesses) {
      if (options_.guarded && !may_show_itself(access)) ns += guards_ns(access.tensor);
    }
    take_time(runs, ns);
    if (alone) return;
    for (const RecomputePlaces::Cause& cause : repeat.causes) run_with(runs, cause);
    if (itself != kNone) keep_once_made(runs, recomputed_[itself]);
  }

  Runs add_runs(const std::vector<uint32_t>& places) {
    Runs runs;
    for (const uint32_t place : places) {
      const uint32_t interval = interval_before(op_of_call_[place]);
      if (runs.empty() || runs.back().interval != interval) {
        runs.push_back({interval, program_.add_column(0, 0, 1), place, place});
      }
      runs.back().last = place;
    }
    return runs;
  }

  // The links carry bytes in this time, too.
  void take_time(const Runs& runs, uint64_t ns) {
    const double ms = static_cast<double>(ns) / kMs;
    for (const PlacedRun& run : runs) {
      program_.add_cost(run.column, ms);
      for (const uint32_t row : time_rows_[run.interval % points_]) program_.set(row, run.column, -ms * row_rate_[row]);
      times_.push_back({run.column, ns});
    }
  }

  // By each place of the candidate, at least as much of the op has run.
  void run_with(const Runs& runs, const RecomputePlaces::Cause& cause) {
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
  void keep_once_made(const Runs& runs, const Runs& candidate) {
    for (const PlacedRun& by : candidate) {
      const uint32_t row = program_.add_row(-LinearProgram::kInfinity, 1);
      for (const PlacedRun& run : runs) {
        if (run.first >= candidate.front().first && run.interval <= by.interval) program_.set(row, run.column, 1);
      }
      add_dropped(row, candidate, by.interval);
    }
  }
  // What is made again behind this interval.
  void add_dropped(uint32_t row, const Runs& candidate, uint32_t interval) {
    for (const PlacedRun& run : candidate) {
      if (run.interval > interval) program_.set(row, run.column, 1);
    }
  }

  // An input that is made again itself is not compared (decision 0035).
  bool may_show_itself(const plan::OpAccess& access) const {
    return !changes(access) && places_.maker(access.tensor) != kNone;
  }
  uint64_t guards_ns(uint32_t tensor) const { return 2 * hash_ns(graph_.tensors[tensor].size, machine_); }

  // An input of what runs again, of an op that may run again, too.
  void add_input(const Runs& runs, uint32_t tensor) {
    if (options_.guarded) {
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
  bool is_candidates(const Version& version, const Period& period) const {
    const uint32_t c = places_.candidate_making(version.tensor);
    if (c == kNone || period.from >= op_of_call_[candidates_[c].before]) return false;
    return period.tail || op_of_call_[candidates_[c].before] <= period.to;
  }

  // What is recomputed is away without a copy until then. What the copies carry is `copied` in the end; `away`: of
  // them, by point of the only span.
  void forget(const Kind& kind, const std::vector<uint32_t>& versions, double bytes, uint32_t copied,
              const std::vector<uint32_t>& away) {
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
      const Version& version = fluid_.vitality.versions[v];
      const double size = static_cast<double>(graph_.tensors[version.tensor].size) / kGiB;
      for (const PeriodSpan& span : kind.spans) {
        if (!is_candidates(version, version.periods[span.period])) continue;
        for (const PlacedRun& run : recomputed_[places_.candidate_making(version.tensor)]) {
          for (uint32_t p = span.first; p <= span.last && p < run.interval; ++p) {
            program_.set(memory_[p % points_], run.column, size);
            if (copied != kNone) limit(away[p - span.first], run.column, size);
          }
          if (copied != kNone && run.interval > span.last) limit(copied, run.column, size);
        }
      }
    }
  }

  // What an op reads that runs again is there, or comes in in the interval before.
  void need_inputs(const PeriodSpan& span, const std::vector<uint32_t>& versions, const Variables& columns,
                   double bytes) {
    if (span.back == kNone) return;                         // no op reads these bytes
    std::map<std::pair<uint32_t, uint32_t>, double> sizes;  // by interval and column
    for (const uint32_t v : versions) {
      const uint32_t tensor = fluid_.vitality.versions[v].tensor;
      if (places_.candidate_making(tensor) != kNone) continue;
      for (const uint32_t reader : places_.readers(tensor)) {
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

  static double rate(double bytes_per_s) { return bytes_per_s / kGiB / 1e9 * kMs; }  // GiB a millisecond

  // Flow <= rate * (compute + stall).
  uint32_t add_link(uint32_t interval, double bytes_per_s) {
    const uint32_t row = program_.add_row(-LinearProgram::kInfinity, rate(bytes_per_s) * compute_[interval]);
    program_.set(row, stall_[interval], -rate(bytes_per_s));
    time_rows_.resize(points_);
    time_rows_[interval].push_back(row);
    row_rate_.resize(row + 1);
    row_rate_[row] = rate(bytes_per_s);
    return row;
  }

  // Both directions: below the lines from each rate alone to the pair of rates together.
  void add_shared(uint32_t interval) {
    const double in = rate(machine_.h2d_bytes_per_s);
    const double out = rate(machine_.d2h_bytes_per_s);
    const double in_both = std::min(rate(machine_.h2d_together_bytes_per_s), in);
    const double out_both = std::min(rate(machine_.d2h_together_bytes_per_s), out);
    SharedLink shared;
    // in + out * (in - in_both) / out_both <= in * time, and the other way around.
    shared.rows[0] = add_link(interval, machine_.h2d_bytes_per_s);
    shared.in[0] = 1;
    shared.out[0] = (in - in_both) / out_both;
    shared.rows[1] = add_link(interval, machine_.d2h_bytes_per_s);
    shared.in[1] = (out - out_both) / in_both;
    shared.out[1] = 1;
    shared_.push_back(shared);
  }

  std::map<Kind, std::vector<uint32_t>> kinds() const {
    std::map<Kind, std::vector<uint32_t>> kinds;
    for (uint32_t v = 0; v < fluid_.vitality.versions.size(); ++v) {
      const Version& version = fluid_.vitality.versions[v];
      Kind kind{interval_behind(version.written), version.on_host, {}};
      for (uint32_t p = 0; p < version.periods.size(); ++p) {
        const std::optional<PeriodSpan> span = span_of(version.periods[p], p);
        if (span) kind.spans.push_back(*span);
      }
      if (!kind.spans.empty()) kinds[kind].push_back(v);
    }
    return kinds;
  }

  // The interval in which an op runs.
  uint32_t interval_of(uint32_t op) const {
    const auto next = std::lower_bound(fluid_.fullest.begin(), fluid_.fullest.end(), op % ops_);
    const auto index = static_cast<uint32_t>(next - fluid_.fullest.begin());
    const bool itself = next != fluid_.fullest.end() && *next == op % ops_;
    return op / ops_ * points_ + 2 * index + (itself ? 1 : 0);
  }
  // The first interval behind an op's end, and the last one before an op's start.
  uint32_t interval_behind(uint32_t op) const { return interval_of(op) + interval_of(op) % 2; }
  uint32_t interval_before(uint32_t op) const { return interval_of(op) - interval_of(op) % 2; }

  std::optional<PeriodSpan> span_of(const Period& period, uint32_t index) const {
    const uint32_t first = interval_behind(period.from);
    const uint32_t behind = interval_before(period.to);  // its point is no longer covered
    if (first >= behind) return std::nullopt;
    return PeriodSpan{index, first, behind - 1, period.tail ? kNone : behind};
  }

  void add_kind(const Kind& kind, const std::vector<uint32_t>& versions) {
    double bytes = 0;
    for (const uint32_t v : versions) {
      bytes += static_cast<double>(graph_.tensors[fluid_.vitality.versions[v].tensor].size);
    }
    const size_t first_flow = fluid_.flows.size();
    for (const PeriodSpan& span : kind.spans) {
      FluidFlow flow;
      for (const uint32_t v : versions) flow.members.push_back({v, span.period});
      flow.bytes = static_cast<uint64_t>(bytes);
      flow.first = span.first;
      fluid_.flows.push_back(std::move(flow));
      variables_.emplace_back();
    }
    const uint32_t copied = add_tier(kind, first_flow, bytes / kGiB, false);
    if (machine_.has_ssd()) add_tier(kind, first_flow, bytes / kGiB, true);
    if (candidates_.empty()) return;
    const bool single = kind.spans.size() == 1;
    forget(kind, versions, bytes / kGiB, single ? copied : kNone,
           single ? variables_[first_flow].away : std::vector<uint32_t>{});
    if (machine_.has_ssd()) return;  // what is needed may come from there
    for (size_t i = 0; i < kind.spans.size(); ++i) {
      need_inputs(kind.spans[i], versions, variables_[first_flow + i], bytes / kGiB);
    }
  }

  // The copies of one kind on one tier. Returns the column of what is there at the end; kNone: it is always there.
  uint32_t add_tier(const Kind& kind, size_t first_flow, double bytes, bool ssd) {
    std::vector<uint32_t> copied;  // by point from `written` on: what is on the other side by then
    for (uint32_t p = kind.written; !kind.on_host && p <= kind.spans.back().last; ++p) {
      const uint32_t out = program_.add_column(options_.cost_of_moving);
      copied.push_back(program_.add_column(0, 0, bytes));
      use_link(out, p, true, ssd);
      const uint32_t row = program_.add_row(0, 0);  // copied = copied before + out
      program_.set(row, copied.back(), 1);
      program_.set(row, out, -1);
      if (copied.size() > 1) program_.set(row, copied[copied.size() - 2], -1);
    }
    for (size_t i = 0; i < kind.spans.size(); ++i) add_span(kind, kind.spans[i], first_flow + i, copied, bytes, ssd);
    return copied.empty() ? kNone : copied.back();
  }

  void add_span(const Kind& kind, const PeriodSpan& span, size_t flow, const std::vector<uint32_t>& copied,
                double bytes, bool ssd) {
    std::vector<uint32_t> away;
    for (uint32_t p = span.first; p <= span.last; ++p) {
      away.push_back(program_.add_column(0, 0, bytes));
      program_.set(memory_[p % points_], away.back(), 1);
      if (!ssd && machine_.has_ssd()) program_.set(host_[p % points_], away.back(), 1);
      if (kind.on_host) continue;
      const uint32_t row = program_.add_row(-LinearProgram::kInfinity, 0);  // away <= copied
      program_.set(row, away.back(), 1);
      program_.set(row, copied[p - kind.written], -1);
    }
    // Bytes that are away now and not at the next point came in meanwhile; after the last point, all bytes did.
    for (uint32_t p = span.first; p <= span.last && span.back != kNone; ++p) {
      const uint32_t in = program_.add_column(options_.cost_of_moving);
      if (!ssd) variables_[flow].in.push_back(in);
      use_link(in, p + 1, false, ssd);
      const uint32_t row = program_.add_row(-LinearProgram::kInfinity, 0);
      program_.set(row, away[p - span.first], 1);
      program_.set(row, in, -1);
      if (p < span.last) program_.set(row, away[p + 1 - span.first], -1);
    }
    if (ssd) limit_together(flow, away, bytes);
    (ssd ? variables_[flow].ssd : variables_[flow].away) = std::move(away);
  }

  // Both tiers together hold at most the whole tensor.
  void limit_together(size_t flow, const std::vector<uint32_t>& away, double bytes) {
    for (size_t i = 0; i < away.size(); ++i) {
      const uint32_t row = program_.add_row(-LinearProgram::kInfinity, bytes);
      program_.set(row, away[i], 1);
      program_.set(row, variables_[flow].away[i], 1);
    }
  }

  void use_link(uint32_t column, uint32_t interval, bool out, bool ssd) {
    const uint32_t s = interval % points_;
    program_.set(out ? out_[s] : in_[s], column, 1);
    if (ssd) program_.set(out ? to_ssd_[s] : from_ssd_[s], column, 1);
    if (shared_.empty()) return;
    for (int i = 0; i < 2; ++i) program_.set(shared_[s].rows[i], column, out ? shared_[s].out[i] : shared_[s].in[i]);
  }

  void read(const std::vector<double>& x) {
    double total = 0;
    for (uint32_t p = 0; p < points_; ++p) {
      total += (compute_[p] + x[stall_[p]]) * kMs;
      if (p % 2 == 0) fluid_.stall_ns.push_back(x[stall_[p]] * kMs);
    }
    for (const Runs& runs : recomputed_) {
      fluid_.recompute.push_back(0);
      for (const PlacedRun& run : runs) fluid_.recompute.back() += x[run.column];
    }
    for (const auto& [column, ns] : times_) total += x[column] * static_cast<double>(ns);
    fluid_.iteration_ns = static_cast<uint64_t>(total);
    const auto values = [&](const std::vector<uint32_t>& columns) {
      std::vector<double> bytes;
      bytes.reserve(columns.size());
      for (const uint32_t column : columns) bytes.push_back(x[column] * kGiB);
      return bytes;
    };
    for (size_t i = 0; i < fluid_.flows.size(); ++i) {
      fluid_.flows[i].away = values(variables_[i].away);
      fluid_.flows[i].away_on_ssd = values(variables_[i].ssd);
      for (size_t s = 0; s < fluid_.flows[i].away_on_ssd.size(); ++s) {
        fluid_.flows[i].away[s] += fluid_.flows[i].away_on_ssd[s];
      }
    }
  }

  struct SharedLink {
    uint32_t rows[2] = {};
    double in[2] = {};
    double out[2] = {};
  };

  const TaskGraph& graph_;
  uint64_t capacity_;
  const Machine& machine_;
  FluidOptions options_;
  const std::vector<RecomputeCandidate>& candidates_;
  const RecomputePlaces places_;
  Fluid fluid_;
  uint32_t ops_ = 0;
  uint32_t points_ = 0;
  std::vector<double> compute_;  // of each interval, in milliseconds
  LinearProgram program_;
  std::vector<uint32_t> stall_;                                         // columns, by interval
  std::vector<uint32_t> memory_, out_, in_, to_ssd_, from_ssd_, host_;  // rows, by point or interval
  std::vector<SharedLink> shared_;
  std::vector<Variables> variables_;                  // by flow
  std::vector<std::vector<uint32_t>> time_rows_;      // interval -> rows that grow with its time
  std::vector<double> row_rate_;                      // row -> at this rate
  std::vector<Runs> recomputed_;                      // by candidate
  std::map<uint32_t, Runs> again_;                    // by op that may run again
  std::vector<std::pair<uint32_t, uint64_t>> times_;  // columns of what runs again, and what it takes
  std::vector<uint32_t> op_of_call_;
};

}  // namespace

Result<Fluid> solve_fluid(const TaskGraph& graph, uint64_t capacity_bytes, const Machine& machine,
                          const FluidOptions& options, const std::vector<RecomputeCandidate>& candidates) {
  return FluidProgram(graph, capacity_bytes, machine, options, candidates).solve();
}

}  // namespace reprise::analyzer
