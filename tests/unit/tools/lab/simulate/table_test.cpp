#include "tools/lab/simulate/table.h"

#include "tests/support/test.h"

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
  const std::vector<std::string> names = cells_of(head), cells = cells_of(values);
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
  EXPECT_FALSE(has(to_table({row}, {}).at(1), "lru"));
  EXPECT_TRUE(has(to_csv({row}), "\n0,auto,,1000,"));
  row.reload_bytes = 1;
  EXPECT_TRUE(has(to_table({row}, {}).at(1), " auto (lru) "));
  EXPECT_TRUE(has(to_csv({row}), "\n0,auto,lru,1000,"));
}

TEST(SimulatedTable, SaysHowMuchSlowerThanComputingAlone) {
  EXPECT_EQ(slower_by(1041, 1000), "+4.1 %");
  EXPECT_EQ(slower_by(1000, 1000), "+0.0 %");
  EXPECT_EQ(slower_by(999'999, 1'000'000), "+0.0 %");
  EXPECT_EQ(slower_by(2500, 1000), "+150.0 %");
  EXPECT_EQ(slower_by(0, 1000), "-") << "a bound that is not known";
}

TEST(SimulatedTable, LeavesOutWhatIsEmptyInAllRows) {
  SimulatedRow row;
  row.policy = "lru";
  row.time_ns = row.bound_ns = 1000;
  const auto head = [&](const std::vector<SimulatedRow>& rows, const Columns& columns = {}) {
    const std::vector<std::string> lines = to_table(rows, columns);
    for (const std::string& line : lines) EXPECT_EQ(line.size(), lines[0].size()) << line;
    return lines[0];
  };
  for (const char* name : {"fluid", "joint", "SSD", "planned"}) EXPECT_FALSE(has(head({row}), name)) << name;
  SimulatedRow bounded = row;
  bounded.fluid_ns = 1000;
  EXPECT_TRUE(has(head({row, bounded}), "fluid"));
  EXPECT_FALSE(has(head({row, bounded}), "joint")) << "no kernel may be computed again";
  bounded.joint_ns = 1000;
  EXPECT_TRUE(has(head({row, bounded}), "joint"));
  EXPECT_TRUE(has(head({row}, {.ssd = true}), "SSD wrote"));
  EXPECT_FALSE(has(head({row}, {.ssd = true}), "SSD lasts"));
  EXPECT_TRUE(has(head({row}, {.disturbed = true}), "slowest"));
}

TEST(SimulatedTable, SaysOnceWhyThereIsNoPlan) {
  SimulatedRow row;
  row.policy = "lru";
  row.joint_ns = 1000;
  row.trouble = "a budget of 9 bytes is too small: gelu works on more";
  SimulatedRow other = row;
  other.trouble = "a budget of 8 bytes is too small: gelu works on more";
  const std::vector<std::string> lines = to_table({row, other}, {});
  EXPECT_TRUE(lines.at(1).ends_with(" none: " + row.trouble));
  EXPECT_TRUE(lines.at(2).ends_with(" none: as above"));
  EXPECT_FALSE(has(lines.at(0), "joint")) << "what a row without a plan has is not shown";
}

}  // namespace
}  // namespace reprise::tools
