#include "analyzer/bounds/fluid_rows.h"

#include <algorithm>

namespace reprise::analyzer {
namespace {

double rate(double bytes_per_s) { return bytes_per_s / kGiB / 1e9 * kMs; }  // GiB a millisecond

}  // namespace

// For each point: how long what leads up to it takes, what the links carry meanwhile, what must be away.
FluidRows::FluidRows(LinearProgram& program, const FluidGrid& grid, const Machine& machine, const ByOp<uint64_t>& alive,
                     uint64_t capacity)
    : program_(program), grid_(grid), machine_(machine) {
  for (uint32_t p = 0; p < grid.points(); ++p) {
    stall_.push_back(program_.add_column(1, 0, p % 2 == 0 ? LinearProgram::kInfinity : 0));
    const double excess = static_cast<double>(alive[grid.fullest()[p / 2]]) - static_cast<double>(capacity);
    memory_.push_back(program_.add_row(std::max(excess, 0.0) / kGiB, LinearProgram::kInfinity));
    out_.push_back(add_link(p, machine_.d2h_bytes_per_s));
    in_.push_back(add_link(p, machine_.h2d_bytes_per_s));
    if (machine_.h2d_together_bytes_per_s > 0 && machine_.d2h_together_bytes_per_s > 0) add_shared(p);
    if (!machine_.has_ssd()) continue;
    to_ssd_.push_back(add_link(p, machine_.ssd_write_bytes_per_s));
    from_ssd_.push_back(add_link(p, machine_.ssd_read_bytes_per_s));
    const double host = machine_.host_bytes == 0 ? LinearProgram::kInfinity : static_cast<double>(machine_.host_bytes);
    host_.push_back(program_.add_row(-LinearProgram::kInfinity, host / kGiB));
  }
}

// Flow <= rate * (compute + stall).
uint32_t FluidRows::add_link(uint32_t interval, double bytes_per_s) {
  const uint32_t row = program_.add_row(-LinearProgram::kInfinity, rate(bytes_per_s) * grid_.compute_ms(interval));
  program_.set(row, stall_[interval], -rate(bytes_per_s));
  time_rows_.resize(grid_.points());
  time_rows_[interval].push_back(row);
  row_rate_.resize(row + 1);
  row_rate_[row] = rate(bytes_per_s);
  return row;
}

// Both directions: below the lines from each rate alone to the pair of rates together.
void FluidRows::add_shared(uint32_t interval) {
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

void FluidRows::use_link(uint32_t column, uint32_t interval, bool out, bool ssd) {
  const uint32_t s = interval % grid_.points();
  program_.set(out ? out_[s] : in_[s], column, 1);
  if (ssd) program_.set(out ? to_ssd_[s] : from_ssd_[s], column, 1);
  if (shared_.empty()) return;
  for (int i = 0; i < 2; ++i) program_.set(shared_[s].rows[i], column, out ? shared_[s].out[i] : shared_[s].in[i]);
}

void FluidRows::take_time(uint32_t column, uint32_t interval, uint64_t ns) {
  const double ms = static_cast<double>(ns) / kMs;
  program_.add_cost(column, ms);
  for (const uint32_t row : time_rows_[interval % grid_.points()]) program_.set(row, column, -ms * row_rate_[row]);
  times_.push_back({column, ns});
}

double FluidRows::iteration_ns(const std::vector<double>& x) const {
  double total = 0;
  for (uint32_t p = 0; p < grid_.points(); ++p) total += (grid_.compute_ms(p) + x[stall_[p]]) * kMs;
  for (const auto& [column, ns] : times_) total += x[column] * static_cast<double>(ns);
  return total;
}

std::vector<double> FluidRows::stall_ns(const std::vector<double>& x) const {
  std::vector<double> result;
  for (uint32_t p = 0; p < grid_.points(); p += 2) result.push_back(x[stall_[p]] * kMs);
  return result;
}

}  // namespace reprise::analyzer
