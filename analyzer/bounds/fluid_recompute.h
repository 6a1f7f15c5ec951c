// What a fluid program may compute again instead of moving it: the candidates, by where they run, the ops that run
// again with them, and what these read. Called by fluid.cpp.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "analyzer/bounds/fluid_rows.h"
#include "analyzer/bounds/recompute_places.h"

namespace reprise::analyzer {

// The columns of a flow, by point from its first one on.
struct FluidColumns {
  std::vector<uint32_t> away, ssd;
  std::vector<uint32_t> in;  // in the interval behind each point; not from an SSD
};

class FluidRecompute {
 public:
  // Adds its columns and rows to `program`. All must outlive it. `guarded`: as in FluidOptions.
  FluidRecompute(LinearProgram& program, FluidRows& rows, const FluidGrid& grid, const TaskGraph& graph,
                 const Vitality& vitality, const Machine& machine, const std::vector<RecomputeCandidate>& candidates,
                 bool guarded);

  // What is recomputed is away without a copy until then. What the copies carry is `copied` in the end; `away`: of
  // them, by point of the only span.
  void forget(const std::vector<PeriodSpan>& spans, const std::vector<uint32_t>& versions, double bytes,
              uint32_t copied, const std::vector<uint32_t>& away);
  // What an op reads that runs again is there, or comes in in the interval before.
  void need_inputs(const PeriodSpan& span, const std::vector<uint32_t>& versions, const FluidColumns& columns,
                   double bytes);
  // In a solution: by candidate, the part of it that is recomputed.
  std::vector<double> parts(const std::vector<double>& x) const;

 private:
  // The parts of something that run before one of its places each; of places in one interval, together.
  struct PlacedRun {
    uint32_t interval = 0;
    uint32_t column = 0;
    CallIndex first, last;  // places
  };
  using Runs = std::vector<PlacedRun>;  // ascending

  void add_repeat(CallIndex call, const RecomputePlaces::RepeatedOp& repeat);
  Runs add_runs(const std::vector<CallIndex>& places);
  void take_time(const Runs& runs, uint64_t ns);
  void run_with(const Runs& runs, const RecomputePlaces::Cause& cause);
  void keep_once_made(const Runs& runs, const Runs& candidate);
  void add_dropped(uint32_t row, const Runs& candidate, uint32_t interval);
  bool may_show_itself(const plan::OpAccess& access) const;
  uint64_t guards_ns(uint32_t tensor) const { return 2 * hash_ns(graph_.tensors[tensor].size, machine_); }
  void add_input(const Runs& runs, uint32_t tensor);
  bool is_candidates(const Version& version, const Period& period) const;

  LinearProgram& program_;
  FluidRows& rows_;
  const FluidGrid& grid_;
  const TaskGraph& graph_;
  const Vitality& vitality_;
  const Machine& machine_;
  const std::vector<RecomputeCandidate>& candidates_;
  const bool guarded_;
  const RecomputePlaces places_;
  std::vector<Runs> recomputed_;     // by candidate
  std::map<CallIndex, Runs> again_;  // by op that may run again
  ByCall<OpIndex> op_of_call_;
};

}  // namespace reprise::analyzer
