// Which of several programs the files of a run are of: the same in whatever order they come.
#include "tools/report/log/which_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tools/report/log/run_log.h"

namespace reprise::report {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// Of all orders of the programs, the figures of the one that is chosen are the first one's.
void expect_first(const std::vector<ProgramFigures>& programs) {
  std::vector<size_t> order(programs.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  do {
    std::vector<ProgramFigures> mixed;
    for (const size_t i : order) mixed.push_back(programs[i]);
    EXPECT_EQ(order[which_program(mixed)], 0u);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(WhichProgram, TheOneThatAskedForTheMostWhateverElse) {
  expect_first({{100 * kMiB, false, 0, 0, 1}, {98 * kMiB, true, 9, 999, 2}, {kMiB, true, 99, 9999, 3}});
}

TEST(WhichProgram, OfSeveralAlikeTheOneWithAPlan) {
  expect_first({{100 * kMiB, true, 0, 0, 1}, {100 * kMiB, false, 0, 999, 2}});
  expect_first({{99 * kMiB, true, 0, 0, 1}, {100 * kMiB, false, 0, 999, 2}, {100 * kMiB, false, 0, 0, 3}});
}

TEST(WhichProgram, OfTheseTheOneWithMorePlannedIterations) {
  expect_first({{99 * kMiB, true, 5, 10, 1}, {100 * kMiB, true, 4, 999, 2}, {100 * kMiB, false, 0, 999, 3}});
}

TEST(WhichProgram, OfTheseTheOneThatRepeatedMore) {
  expect_first({{100 * kMiB, true, 5, 11, 1}, {100 * kMiB, true, 5, 10, 2}});
  expect_first({{100 * kMiB, false, 0, 11, 1}, {100 * kMiB, false, 0, 10, 2}, {100 * kMiB, false, 0, 0, 3}});
}

TEST(WhichProgram, OfTheseTheLast) {
  expect_first({{100 * kMiB, true, 5, 10, 3}, {100 * kMiB, true, 5, 10, 2}, {100 * kMiB, true, 5, 10, 1}});
  EXPECT_EQ(which_program({{1}, {1}, {1}}), 2u) << "where none says when it was started";
  EXPECT_EQ(which_program({{}, {}}), 1u) << "nor asked for anything";
  EXPECT_EQ(which_program({}), 0u);
}

// What is alike is told by the largest of all: a chain of ever smaller ones is not.
TEST(WhichProgram, OnePercentIsOfTheLargest) {
  expect_first({{992, true, 1, 0, 1}, {1000, false, 0, 0, 2}, {985, true, 9, 0, 3}});
  EXPECT_TRUE(asked_for_the_most(UINT64_MAX, UINT64_MAX));
  EXPECT_FALSE(asked_for_the_most(0, 1));
}

// A run log has it in its lines: nine steps with a plan, and two of the same program, in which a few calls repeat
// often.
TEST(WhichProgram, ARunLogIsReadAsThatOne) {
  const std::string nine = R"({"kind":"start","program":"a","arguments":"9","time_ns":10,"process":7}
{"kind":"plan","index":0,"calls":910,"process":7}
{"kind":"iteration","index":0,"mode":"planned","process":7}
{"kind":"end","peak_requested_bytes":40812548,"iterations_planned":1,"process":7}
)";
  const std::string two = R"({"kind":"start","program":"a","arguments":"2","time_ns":20,"process":9}
{"kind":"repeats","calls":12,"iterations":3,"process":9}
{"kind":"end","peak_requested_bytes":40812600,"iterations_on_demand":21,"process":9}
)";
  const std::string three = R"({"kind":"start","program":"a","arguments":"3","time_ns":5,"process":11}
{"kind":"repeats","calls":900,"iterations":2,"process":11}
{"kind":"iteration","index":2,"mode":"on_demand","calls":900,"process":11}
{"kind":"end","peak_requested_bytes":40812548,"iterations_on_demand":3,"process":11}
)";
  for (const std::string& text : {nine + two + three, two + nine + three, three + two + nine}) {
    const RunLog log = parse_run_log(text);
    EXPECT_EQ(command_of(log), "a 9");
    EXPECT_EQ(log.iterations_planned, 1u);
    EXPECT_EQ(log.plan_count, 1u);
    EXPECT_TRUE(log.repeats.empty());
  }
  EXPECT_EQ(command_of(parse_run_log(two + three)), "a 3");
  EXPECT_EQ(command_of(parse_run_log(three + two)), "a 3");
}

}  // namespace
}  // namespace reprise::report
