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
  std::set<std::string> told;
  EXPECT_FALSE(has(table_row(row, {}, told), "lru"));
  EXPECT_TRUE(has(to_csv({row}), "\n0,auto,,1000,"));
  row.reload_bytes = 1;
  EXPECT_TRUE(has(table_row(row, {}, told), " auto (lru) "));
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
  const auto words = [](const std::string& line) {
    std::istringstream text(line);
    return std::vector<std::string>(std::istream_iterator<std::string>(text), {});
  };
  EXPECT_EQ(words(table_head({})).size() + 1, words(table_head({.fluid = true})).size());
  EXPECT_EQ(words(table_head({})).size() + 1, words(table_head({.joint = true})).size());
  EXPECT_EQ(words(table_head({})).size() + 4, words(table_head({.ssd = true})).size());  // each of two words
  EXPECT_EQ(words(table_head({})).size() + 2, words(table_head({.disturbed = true})).size());
  SimulatedRow row;
  row.policy = "lru";
  std::set<std::string> told;
  for (const Columns& columns : {Columns{}, Columns{true, true, true, true}}) {
    EXPECT_EQ(table_row(row, columns, told).size(), table_head(columns).size() + 1) << "a line's end";
  }
}

}  // namespace
}  // namespace reprise::tools
