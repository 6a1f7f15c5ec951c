// What all of a fluid program stands on: for each interval its stall and what links carry in it, for each point the
// memory that has to be free. Called by fluid.cpp and fluid_recompute.cpp.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "analyzer/bounds/fluid_grid.h"
#include "analyzer/bounds/linear_program.h"
#include "analyzer/machine/machine.h"

namespace reprise::analyzer {

class FluidRows {
 public:
  // Adds them to `program`, which must outlive it, as the others must. `alive`: bytes, by op.
  FluidRows(LinearProgram& program, const FluidGrid& grid, const Machine& machine, const ByOp<uint64_t>& alive,
            uint64_t capacity);

  // The rows of points, which may be those of the next iteration, too: what is away counts against what must be, and
  // against the host's memory.
  uint32_t memory(uint32_t point) const { return memory_[point % grid_.points()]; }
  uint32_t host(uint32_t point) const { return host_[point % grid_.points()]; }
  // What the column flows, it flows in this interval.
  void use_link(uint32_t column, uint32_t interval, bool out, bool ssd);
  // The column, from 0 to 1, takes this part of `ns` in the interval. The links carry bytes in that time, too.
  void take_time(uint32_t column, uint32_t interval, uint64_t ns);

  // In a solution.
  double iteration_ns(const std::vector<double>& x) const;
  std::vector<double> stall_ns(const std::vector<double>& x) const;  // by segment

 private:
  struct SharedLink {
    uint32_t rows[2] = {};
    double in[2] = {};
    double out[2] = {};
  };
  uint32_t add_link(uint32_t interval, double bytes_per_s);
  void add_shared(uint32_t interval);

  LinearProgram& program_;
  const FluidGrid& grid_;
  const Machine& machine_;
  std::vector<uint32_t> stall_;                                         // columns, by interval
  std::vector<uint32_t> memory_, out_, in_, to_ssd_, from_ssd_, host_;  // rows, by point or interval
  std::vector<SharedLink> shared_;
  std::vector<std::vector<uint32_t>> time_rows_;      // interval -> rows that grow with its time
  std::vector<double> row_rate_;                      // row -> at this rate
  std::vector<std::pair<uint32_t, uint64_t>> times_;  // columns of what runs again, and what it takes
};

}  // namespace reprise::analyzer
