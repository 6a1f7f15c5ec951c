#include "tools/lab/simulate/table.h"

#include <fmt/format.h>

#include <iterator>

#include "preload/base/readable.h"

namespace reprise::tools {
namespace {

std::string percent(uint64_t part, uint64_t whole, int places) {
  return whole == 0 ? decimal(100, 1, places)
                    : decimal(100 * static_cast<double>(part), static_cast<double>(whole), places);
}

std::string policy_text(const SimulatedRow& row) {
  const std::string_view used = plan_of(row);
  return used.empty() || used == row.policy ? row.policy : fmt::format("{} ({})", row.policy, used);
}

std::string years_text(const SimulatedRow& row) {
  return row.ssd_years ? decimal(*row.ssd_years, 1, 1) + " years" : std::string("-");
}

std::string csv_bound(uint64_t bound) { return bound == 0 ? std::string() : std::to_string(bound); }

// "a budget of 9.0 MiB is too small: gelu works on ..., so at least ...": what is said behind the budget.
std::string reason_of(const std::string& trouble) {
  const size_t colon = trouble.find(": ");
  return colon == std::string::npos ? trouble : trouble.substr(colon + 2);
}

}  // namespace

bool nothing_has_to_move(const SimulatedRow& row) {
  const bool moves = row.offload_bytes + row.reload_bytes + row.ssd_written_bytes + row.ssd_read_bytes > 0;
  return !moves && row.planned_ns <= row.compute_ns;
}

std::string_view plan_of(const SimulatedRow& row) {
  return nothing_has_to_move(row) ? std::string_view() : std::string_view(row.used);
}

std::string budget_text(const SimulatedRow& row) {
  const std::string bytes =
      row.to_the_byte ? fmt::format("{} bytes", row.budget_bytes) : format_bytes(row.budget_bytes);
  return row.asked.bytes > 0 ? bytes : fmt::format("{:g}% {}", row.asked.percent, bytes);
}

std::string slower_by(uint64_t time_ns, uint64_t compute_ns) {
  if (time_ns == 0) return "-";
  const double more = compute_ns == 0 ? 0 : static_cast<double>(time_ns) / static_cast<double>(compute_ns) - 1;
  const std::string text = fmt::format("{:+.1f} %", 100 * more);
  return text == "-0.0 %" ? "+0.0 %" : text;
}

std::string table_head(const Columns& columns) {
  std::string text = fmt::format("{:<18} {:<22} {:>10} {:>10} {:>10}", "budget", "policy", "time", "slower", "at best");
  if (columns.fluid) text += fmt::format(" {:>10} {:>10}", "fluid", "joint");
  text += fmt::format(" {:>10} {:>10}", "out", "in");
  if (columns.ssd) text += fmt::format(" {:>10} {:>11}", "SSD wrote", "SSD lasts");
  if (columns.disturbed) text += fmt::format(" {:>10} {:>10}", "planned", "slowest");
  return text;
}

std::string table_row(const SimulatedRow& row, const Columns& columns, std::set<std::string>& told) {
  std::string text = fmt::format("{:<18} {:<22} ", budget_text(row), policy_text(row));
  if (!row.trouble.empty()) {
    const bool is_new = told.insert(reason_of(row.trouble)).second;
    return text + fmt::format("none: {}\n", is_new ? row.trouble : "as above");
  }
  const auto slower = [&row](uint64_t time_ns) { return slower_by(time_ns, row.compute_ns); };
  text += fmt::format("{:>10} {:>10} {:>10}", format_duration(row.time_ns), slower(row.time_ns), slower(row.bound_ns));
  if (columns.fluid) text += fmt::format(" {:>10} {:>10}", slower(row.fluid_ns), slower(row.joint_ns));
  text += fmt::format(" {:>10} {:>10}", format_bytes(row.offload_bytes), format_bytes(row.reload_bytes));
  if (columns.ssd) text += fmt::format(" {:>10} {:>11}", format_bytes(row.ssd_written_bytes), years_text(row));
  if (columns.disturbed) {
    text += fmt::format(" {:>10} {:>10}", format_duration(row.planned_ns), format_duration(row.slowest_ns));
  }
  return text + '\n';
}

std::string to_csv(const std::vector<SimulatedRow>& rows) {
  std::string text =
      "budget_bytes,policy,plan_of,time_ns,ideal_ns,bound_ns,percent_of_ideal,percent_of_bound,offload_bytes,reload_"
      "bytes,"
      "ssd_written_bytes,ssd_read_bytes,host_peak_bytes,remaps,planning_ns,ssd_years,fluid_ns,joint_ns,planned_ns,"
      "slowest_ns\n";
  for (const SimulatedRow& row : rows) {
    fmt::format_to(std::back_inserter(text), "{},{},", row.budget_bytes, row.policy);
    if (!row.trouble.empty()) {
      text += ",,,,,,,,,,,,,,,,,\n";
      continue;
    }
    fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", plan_of(row),
                   row.time_ns, row.compute_ns, row.bound_ns, percent(row.compute_ns, row.time_ns, 3),
                   percent(row.bound_ns, row.time_ns, 3), row.offload_bytes, row.reload_bytes, row.ssd_written_bytes,
                   row.ssd_read_bytes, row.host_peak_bytes, row.remap_count, row.planning_ns,
                   row.ssd_years ? decimal(*row.ssd_years, 1, 3) : "", csv_bound(row.fluid_ns), csv_bound(row.joint_ns),
                   row.planned_ns, row.slowest_ns);
  }
  return text;
}

}  // namespace reprise::tools
