// What `reprise simulate` found, as a table for people and as CSV. Callers: commands/simulate.cpp, page.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cli/sizes.h"

namespace reprise::tools {

struct SimulatedRow {
  Budget asked;
  uint64_t budget_bytes = 0;
  bool to_the_byte = false;  // rounded, it would read as another of the budgets
  std::string policy;
  std::string used;         // the policy that was taken: another name when `policy` is auto
  std::string trouble;      // why there is no plan; empty: there is one
  uint64_t time_ns = 0;     // mean over the seeds where there is noise
  uint64_t slowest_ns = 0;  // of the seeds
  uint64_t planned_ns = 0;  // without noise, whatever is ready first
  uint64_t compute_ns = 0;
  uint64_t bound_ns = 0;  // what no plan beats
  uint64_t fluid_ns = 0;  // what no plan beats that keeps the order of the kernels and recomputes nothing; 0: unknown
  uint64_t joint_ns = 0;  // what none beats that keeps the order and launches no kernel more than twice; 0: unknown
  uint64_t offload_bytes = 0;
  uint64_t reload_bytes = 0;
  uint64_t ssd_written_bytes = 0;
  uint64_t ssd_read_bytes = 0;
  uint64_t host_peak_bytes = 0;
  uint64_t remap_count = 0;
  uint64_t planning_ns = 0;
  std::optional<double> ssd_years = std::nullopt;  // until the SSD's granted writes are used up
};

// A budget that holds everything has no plan: nothing moves, and nothing is computed again.
bool nothing_has_to_move(const SimulatedRow& row);

// Whose plan it is, where there is one; a view of `row`.
std::string_view plan_of(const SimulatedRow& row);

// "+4.1 %": how much longer than computing alone. "-": the time is not known (0).
std::string slower_by(uint64_t time_ns, uint64_t compute_ns);

// "50% 20.0 GiB", or a size where a size was asked for: "20.0 GiB", or to the byte.
std::string budget_text(const SimulatedRow& row);

// Which columns there are beside those of every table: what would be empty in all rows is left out.
struct Columns {
  bool fluid = false;  // bounds by linear program
  bool joint = false;  // those with recompute
  bool ssd = false;
  bool disturbed = false;  // there is noise on transfers
};
// The table line by line, so that rows can be shown as they are ready; the head without its line's end.
std::string table_head(const Columns& columns);
// `told`: why there is no plan, of rows before: the same reason is given once.
std::string table_row(const SimulatedRow& row, const Columns& columns, std::set<std::string>& told);
std::string to_csv(const std::vector<SimulatedRow>& rows);

}  // namespace reprise::tools
