#include "analyzer/bounds/fluid.h"

#include <map>
#include <optional>
#include <utility>

#include "analyzer/bounds/fluid_recompute.h"

namespace reprise::analyzer {
namespace {

// Versions that look the same on the grid.
struct Kind {
  uint32_t written = 0;  // the first interval in which a copy may go out
  bool on_host = false;
  std::vector<PeriodSpan> spans;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 of a defaulted <=> for a pointer
  auto operator<=>(const Kind&) const = default;
};

class FluidProgram {
 public:
  FluidProgram(const TaskGraph& graph, uint64_t capacity, const Machine& machine, const FluidOptions& options,
               const std::vector<RecomputeCandidate>& candidates)
      : graph_(graph),
        machine_(machine),
        options_(options),
        has_candidates_(!candidates.empty()),
        fluid_(begun(graph)),
        grid_(graph, fluid_.vitality, options.segments),
        rows_(program_, grid_, machine, fluid_.vitality.alive, capacity),
        recompute_(program_, rows_, grid_, graph, fluid_.vitality, machine, candidates, options.guarded) {}

  Result<Fluid> solve() {
    if (grid_.ops() == 0) return fluid_;
    for (const auto& [kind, members] : kinds()) add_kind(kind, members);
    Result<LinearProgram::Solution> solution = program_.minimise(options_.seconds);
    if (!solution.ok()) return solution.status();
    read(solution.value().x);
    return std::move(fluid_);
  }

 private:
  static Fluid begun(const TaskGraph& graph) {
    Fluid fluid;
    fluid.vitality = vitality_of(graph);
    return fluid;
  }

  std::map<Kind, std::vector<uint32_t>> kinds() const {
    std::map<Kind, std::vector<uint32_t>> kinds;
    for (uint32_t v = 0; v < fluid_.vitality.versions.size(); ++v) {
      const Version& version = fluid_.vitality.versions[v];
      Kind kind{grid_.interval_behind(version.written), version.on_host, {}};
      for (uint32_t p = 0; p < version.periods.size(); ++p) {
        const std::optional<PeriodSpan> span = grid_.span_of(version.periods[p], p);
        if (span) kind.spans.push_back(*span);
      }
      if (!kind.spans.empty()) kinds[kind].push_back(v);
    }
    return kinds;
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
      columns_.emplace_back();
    }
    const uint32_t copied = add_tier(kind, first_flow, bytes / kGiB, false);
    if (machine_.has_ssd()) add_tier(kind, first_flow, bytes / kGiB, true);
    if (!has_candidates_) return;
    const bool single = kind.spans.size() == 1;
    recompute_.forget(kind.spans, versions, bytes / kGiB, single ? copied : kNone,
                      single ? columns_[first_flow].away : std::vector<uint32_t>{});
    if (machine_.has_ssd()) return;  // what is needed may come from there
    for (size_t i = 0; i < kind.spans.size(); ++i) {
      recompute_.need_inputs(kind.spans[i], versions, columns_[first_flow + i], bytes / kGiB);
    }
  }

  // The copies of one kind on one tier. Returns the column of what is there at the end; kNone: it is always there.
  uint32_t add_tier(const Kind& kind, size_t first_flow, double bytes, bool ssd) {
    std::vector<uint32_t> copied;  // by point from `written` on: what is on the other side by then
    for (uint32_t p = kind.written; !kind.on_host && p <= kind.spans.back().last; ++p) {
      const uint32_t out = program_.add_column(options_.cost_of_moving);
      copied.push_back(program_.add_column(0, 0, bytes));
      rows_.use_link(out, p, true, ssd);
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
      program_.set(rows_.memory(p), away.back(), 1);
      if (!ssd && machine_.has_ssd()) program_.set(rows_.host(p), away.back(), 1);
      if (kind.on_host) continue;
      const uint32_t row = program_.add_row(-LinearProgram::kInfinity, 0);  // away <= copied
      program_.set(row, away.back(), 1);
      program_.set(row, copied[p - kind.written], -1);
    }
    // Bytes that are away now and not at the next point came in meanwhile; after the last point, all bytes did.
    for (uint32_t p = span.first; p <= span.last && span.back != kNone; ++p) {
      const uint32_t in = program_.add_column(options_.cost_of_moving);
      if (!ssd) columns_[flow].in.push_back(in);
      rows_.use_link(in, p + 1, false, ssd);
      const uint32_t row = program_.add_row(-LinearProgram::kInfinity, 0);
      program_.set(row, away[p - span.first], 1);
      program_.set(row, in, -1);
      if (p < span.last) program_.set(row, away[p + 1 - span.first], -1);
    }
    if (ssd) limit_together(flow, away, bytes);
    (ssd ? columns_[flow].ssd : columns_[flow].away) = std::move(away);
  }

  // Both tiers together hold at most the whole tensor.
  void limit_together(size_t flow, const std::vector<uint32_t>& away, double bytes) {
    for (size_t i = 0; i < away.size(); ++i) {
      const uint32_t row = program_.add_row(-LinearProgram::kInfinity, bytes);
      program_.set(row, away[i], 1);
      program_.set(row, columns_[flow].away[i], 1);
    }
  }

  void read(const std::vector<double>& x) {
    fluid_.fullest = grid_.fullest();
    fluid_.stall_ns = rows_.stall_ns(x);
    fluid_.recompute = recompute_.parts(x);
    fluid_.iteration_ns = static_cast<uint64_t>(rows_.iteration_ns(x));
    const auto values = [&](const std::vector<uint32_t>& columns) {
      std::vector<double> bytes;
      bytes.reserve(columns.size());
      for (const uint32_t column : columns) bytes.push_back(x[column] * kGiB);
      return bytes;
    };
    for (size_t i = 0; i < fluid_.flows.size(); ++i) {
      fluid_.flows[i].away = values(columns_[i].away);
      fluid_.flows[i].away_on_ssd = values(columns_[i].ssd);
      for (size_t s = 0; s < fluid_.flows[i].away_on_ssd.size(); ++s) {
        fluid_.flows[i].away[s] += fluid_.flows[i].away_on_ssd[s];
      }
    }
  }

  const TaskGraph& graph_;
  const Machine& machine_;
  const FluidOptions options_;
  const bool has_candidates_;
  Fluid fluid_;
  FluidGrid grid_;
  LinearProgram program_;
  FluidRows rows_;
  FluidRecompute recompute_;
  std::vector<FluidColumns> columns_;  // by flow
};

}  // namespace

Result<Fluid> solve_fluid(const TaskGraph& graph, uint64_t capacity_bytes, const Machine& machine,
                          const FluidOptions& options, const std::vector<RecomputeCandidate>& candidates) {
  return FluidProgram(graph, capacity_bytes, machine, options, candidates).solve();
}

}  // namespace reprise::analyzer
