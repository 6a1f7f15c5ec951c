// Fewer things to draw that still say everything: what is too small to see, or too much to list, is summed up, never
// left out. Called by the report.
#pragma once
#include <cstdint>
#include <vector>

#include "tools/report/log/run_log.h"
#include "tools/report/view/timeline.h"

namespace reprise::report {

// Neighbours of a lane, short ones, as one bar from the first's start to the last's end.
struct ThinBar {
  Bar bar;
  uint64_t count = 1;
  uint64_t busy_ns = 0;  // of them; for one: what it took
};
std::vector<ThinBar> thinned(const std::vector<Bar>& bars, size_t most);

// Iterations in a row, of one mode: what `mode_of` says.
struct ThinIteration {
  uint64_t first = 0;  // index
  uint64_t last = 0;
  uint64_t count = 0;
  RunMode mode = RunMode::on_demand;
  uint64_t median_ns = 0;
  uint64_t least_ns = 0;
  uint64_t most_ns = 0;
  uint64_t stall_ns = 0;  // of all of them, as what follows
  uint64_t offload_bytes = 0;
  uint64_t reload_bytes = 0;
  uint64_t vmm_calls = 0;
  bool counted = true;  // of each of them these are known
};
std::vector<ThinIteration> thinned(const RunLog& log, size_t most);
// All of a mode as one; none of a mode that no iteration has.
std::vector<ThinIteration> sums_by_mode(const RunLog& log);

}  // namespace reprise::report
