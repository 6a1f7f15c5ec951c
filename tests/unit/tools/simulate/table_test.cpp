#include "tools/simulate/table.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

namespace reprise::tools {
namespace {

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream text(line);
  for (std::string cell; std::getline(text, cell, ',');) cells.push_back(cell);
  return cells;
}

// In the table they are "-".
TEST(SimulatedTable, BoundsThatAreNotKnownAreEmptyCells) {
  SimulatedRow row;
  row.policy = row.used = "lru";
  row.time_ns = row.planned_ns = row.slowest_ns = 1000;
  row.compute_ns = row.bound_ns = 900;
  row.fluid_ns = 950;
  std::istringstream lines(to_csv({row}));
  std::string head;
  std::string values;
  std::getline(lines, head);
  std::getline(lines, values);
  const std::vector<std::string> names = cells_of(head);
  const std::vector<std::string> cells = cells_of(values);
  ASSERT_EQ(names.size(), cells.size()) << values;
  std::map<std::string, std::string> row_of;
  for (size_t i = 0; i < names.size(); ++i) row_of[names[i]] = cells[i];
  EXPECT_EQ(row_of["fluid_ns"], "950");
  EXPECT_EQ(row_of["joint_ns"], "");
  EXPECT_EQ(row_of["ssd_years"], "");
  EXPECT_EQ(row_of["offload_bytes"], "0") << "that none moved is known";
}

// `plan` makes none for such a budget, and the recommendation names none.
TEST(SimulatedTable, WhereNothingHasToMoveThereIsNoPlanOfAPolicy) {
  SimulatedRow row;
  row.policy = "auto";
  row.used = "lru";
  row.time_ns = row.planned_ns = row.slowest_ns = row.compute_ns = row.bound_ns = 1000;
  std::set<std::string> told;
  EXPECT_EQ(table_row(row, false, told).find("lru"), std::string::npos) << table_row(row, false, told);
  EXPECT_NE(to_csv({row}).find("\n0,auto,,1000,"), std::string::npos) << to_csv({row});
  row.reload_bytes = 1;
  EXPECT_NE(table_row(row, false, told).find(" auto (lru) "), std::string::npos) << table_row(row, false, told);
  EXPECT_NE(to_csv({row}).find("\n0,auto,lru,1000,"), std::string::npos) << to_csv({row});
}

}  // namespace
}  // namespace reprise::tools
