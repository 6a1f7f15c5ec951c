// A linear program, solved by COIN-OR's Clp: minimise cost * x within bounds of columns and rows. Clp is opened at run
// time (decision 0010); where it is not installed, nothing that needs it is offered. Callers: the fluid bound, and the
// policy that it guides.
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "preload/trace/status.h"

namespace reprise::analyzer {

class LinearProgram {
 public:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  // Both return the index of what was added, from 0 on.
  uint32_t add_column(double cost, double lower = 0, double upper = kInfinity);
  uint32_t add_row(double lower, double upper);
  void add_cost(uint32_t column, double cost) { cost_[column] += cost; }
  // In any order; several values of a pair add up.
  void set(uint32_t row, uint32_t column, double value);

  uint32_t columns() const { return static_cast<uint32_t>(cost_.size()); }
  uint32_t rows() const { return static_cast<uint32_t>(row_lower_.size()); }

  struct Solution {
    double objective = 0;
    std::vector<double> x;  // by column
  };
  // Errors: unsupported (no Clp), infeasible, exhausted (`seconds` of CPU time were not enough).
  Result<Solution> minimise(double seconds) const;

  // Is Clp there?
  static bool available();

 private:
  struct Element {
    uint32_t column;
    uint32_t row;
    double value;
  };
  std::vector<double> cost_, lower_, upper_;
  std::vector<double> row_lower_, row_upper_;
  std::vector<Element> elements_;
};

}  // namespace reprise::analyzer
