#include "tools/lab/simulate/table.h"

#include <fmt/format.h>

#include <string_view>

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

// A column is one row here: of the table for people, right-aligned behind budget and policy, ...
using Row = SimulatedRow;
struct TableColumn {
  std::string_view head;
  int width;
  bool Columns::*shown;  // nullptr: always
  std::string (*text)(const Row&);
};
constexpr TableColumn kTable[] = {
    {"time", 10, nullptr, [](const Row& row) { return format_duration(row.time_ns); }},
    {"slower", 10, nullptr, [](const Row& row) { return slower_by(row.time_ns, row.compute_ns); }},
    {"at best", 10, nullptr, [](const Row& row) { return slower_by(row.bound_ns, row.compute_ns); }},
    {"fluid", 10, &Columns::fluid, [](const Row& row) { return slower_by(row.fluid_ns, row.compute_ns); }},
    {"joint", 10, &Columns::joint, [](const Row& row) { return slower_by(row.joint_ns, row.compute_ns); }},
    {"out", 10, nullptr, [](const Row& row) { return format_bytes(row.offload_bytes); }},
    {"in", 10, nullptr, [](const Row& row) { return format_bytes(row.reload_bytes); }},
    {"SSD wrote", 10, &Columns::ssd, [](const Row& row) { return format_bytes(row.ssd_written_bytes); }},
    {"SSD lasts", 11, &Columns::ssd, years_text},
    {"planned", 10, &Columns::disturbed, [](const Row& row) { return format_duration(row.planned_ns); }},
    {"slowest", 10, &Columns::disturbed, [](const Row& row) { return format_duration(row.slowest_ns); }},
};
// ... and of the CSV.
struct CsvColumn {
  std::string_view name;
  std::string (*text)(const Row&);
};
constexpr CsvColumn kCsv[] = {
    {"plan_of", [](const Row& row) { return std::string(plan_of(row)); }},
    {"time_ns", [](const Row& row) { return std::to_string(row.time_ns); }},
    {"ideal_ns", [](const Row& row) { return std::to_string(row.compute_ns); }},
    {"bound_ns", [](const Row& row) { return std::to_string(row.bound_ns); }},
    {"percent_of_ideal", [](const Row& row) { return percent(row.compute_ns, row.time_ns, 3); }},
    {"percent_of_bound", [](const Row& row) { return percent(row.bound_ns, row.time_ns, 3); }},
    {"offload_bytes", [](const Row& row) { return std::to_string(row.offload_bytes); }},
    {"reload_bytes", [](const Row& row) { return std::to_string(row.reload_bytes); }},
    {"ssd_written_bytes", [](const Row& row) { return std::to_string(row.ssd_written_bytes); }},
    {"ssd_read_bytes", [](const Row& row) { return std::to_string(row.ssd_read_bytes); }},
    {"host_peak_bytes", [](const Row& row) { return std::to_string(row.host_peak_bytes); }},
    {"remaps", [](const Row& row) { return std::to_string(row.remap_count); }},
    {"planning_ns", [](const Row& row) { return std::to_string(row.planning_ns); }},
    {"ssd_years", [](const Row& row) { return row.ssd_years ? decimal(*row.ssd_years, 1, 3) : std::string(); }},
    {"fluid_ns", [](const Row& row) { return csv_bound(row.fluid_ns); }},
    {"joint_ns", [](const Row& row) { return csv_bound(row.joint_ns); }},
    {"planned_ns", [](const Row& row) { return std::to_string(row.planned_ns); }},
    {"slowest_ns", [](const Row& row) { return std::to_string(row.slowest_ns); }},
};

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
  std::string text = fmt::format("{:<18} {:<22}", "budget", "policy");
  for (const TableColumn& column : kTable) {
    if (column.shown == nullptr || columns.*column.shown) text += fmt::format(" {:>{}}", column.head, column.width);
  }
  return text;
}

std::string table_row(const SimulatedRow& row, const Columns& columns, std::set<std::string>& told) {
  std::string text = fmt::format("{:<18} {:<22}", budget_text(row), policy_text(row));
  if (!row.trouble.empty()) {
    const bool is_new = told.insert(reason_of(row.trouble)).second;
    return text + fmt::format(" none: {}\n", is_new ? row.trouble : "as above");
  }
  for (const TableColumn& column : kTable) {
    if (column.shown == nullptr || columns.*column.shown)
      text += fmt::format(" {:>{}}", column.text(row), column.width);
  }
  return text + '\n';
}

std::string to_csv(const std::vector<SimulatedRow>& rows) {
  std::string text = "budget_bytes,policy";
  for (const CsvColumn& column : kCsv) text += fmt::format(",{}", column.name);
  text += '\n';
  for (const SimulatedRow& row : rows) {
    text += fmt::format("{},{}", row.budget_bytes, row.policy);
    for (const CsvColumn& column : kCsv) text += ',' + (row.trouble.empty() ? column.text(row) : std::string());
    text += '\n';
  }
  return text;
}

}  // namespace reprise::tools
