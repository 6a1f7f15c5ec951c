// Which of several programs the files of a run are of: the same in whatever order they come.
#include "tools/report/log/which_program.h"

#include <fmt/core.h>

#include "tests/support/test.h"
#include "tools/report/log/run_log.h"
#include "tools/report/report.h"

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
    EXPECT_EQ(order[which_program(mixed).place], 0u);
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
  EXPECT_EQ(which_program({{1}, {1}, {1}}).place, 2u) << "where none says when it was started";
  EXPECT_EQ(which_program({{}, {}}).place, 1u) << "nor asked for anything";
  EXPECT_EQ(which_program({}).place, 0u);
}

// What is alike is told by the largest of all: a chain of ever smaller ones is not.
TEST(WhichProgram, OnePercentIsOfTheLargest) {
  expect_first({{992, true, 1, 0, 1}, {1000, false, 0, 0, 2}, {985, true, 9, 0, 3}});
  EXPECT_TRUE(asked_for_the_most(UINT64_MAX, UINT64_MAX));
  EXPECT_FALSE(asked_for_the_most(0, 1));
}

// What is said of the choice is what decided it.
TEST(WhichProgram, WhyIsWhatToldItFromTheLastOneBeside) {
  const auto why = [](const std::vector<ProgramFigures>& programs) {
    const Chosen chosen = which_program(programs);
    return fmt::format("{}; {} alike", chosen.why, chosen.alike);
  };
  EXPECT_EQ(why({{100, false, 0, 0, 1}, {98, true, 9, 99, 2}}), "asked for the most memory; 1 alike");
  EXPECT_EQ(why({{99, true, 0, 0, 1}, {100, false, 0, 9, 2}, {50, true, 9, 9, 3}}), "has a plan; 2 alike");
  EXPECT_EQ(why({{100, true, 5, 0, 1}, {100, true, 4, 9, 2}, {100, false, 0, 9, 3}}),
            "had the most iterations planned, of the 2 with a plan; 3 alike");
  EXPECT_EQ(why({{100, true, 5, 2, 1}, {100, true, 5, 1, 2}, {100, false, 0, 9, 3}}),
            "repeats the most, of the 2 with a plan; 3 alike")
      << "one without a plan repeats more";
  EXPECT_EQ(why({{100, true, 5, 2, 1}, {100, true, 5, 1, 2}, {100, true, 4, 9, 3}, {100, false, 0, 9, 4}}),
            "repeats the most, of the 2 with the most iterations planned; 4 alike");
  EXPECT_EQ(why({{100, true, 5, 2, 2}, {100, true, 5, 2, 1}, {100, true, 5, 1, 3}}),
            "was started last, of the 2 that repeat the most; 3 alike");
  EXPECT_EQ(why({{100, false, 0, 0, 2}, {100, false, 0, 0, 1}}), "was started last; 2 alike");
}

TEST(WhichProgram, ThePageAndTheLineSayWhy) {
  const auto program = [](int number, uint64_t bytes, const std::string& more) {
    return fmt::format(R"({{"kind":"start","program":"p","arguments":"{0}","time_ns":{0},"process":{0}}})"
                       "\n"
                       R"({{"kind":"end","peak_requested_bytes":{1},"process":{0}{2}}})"
                       "\n",
                       number, bytes, more);
  };
  const auto line_of = [](const std::string& text) {
    const RunLog log = parse_run_log(text);
    return make_summary({nullptr, nullptr, &log});
  };
  const auto page_of = [](const std::string& text) {
    const RunLog log = parse_run_log(text);
    return make_data({nullptr, nullptr, &log}).at("sentences").dump();
  };
  const std::string planned = R"(,"iterations_planned":3)";
  const std::string alone = program(1, 200, "") + program(2, 100, "");
  EXPECT_EQ(line_of(alone).rfind("of p 1, which asked for the most memory of 2 programs that used the device: ", 0), 0u)
      << line_of(alone);
  EXPECT_TRUE(
      has(page_of(alone), "2 programs used the device. This page is of the one that asked for the most memory: p 1. "));
  const std::string all = program(1, 200, planned) + program(2, 201, "");
  EXPECT_EQ(line_of(all).rfind("of p 1, which had the most iterations planned, of 2 programs that used the device and "
                               "asked for as much memory (within 1 %): ",
                               0),
            0u)
      << line_of(all);
  EXPECT_TRUE(has(page_of(all),
                  "2 programs used the device and asked for as much memory (within 1 %). This page is of the one that "
                  "had the most iterations planned: p 1. "));
  const std::string some = program(1, 200, "") + program(2, 200, "") + program(3, 100, planned);
  EXPECT_EQ(line_of(some).rfind("of p 2, which was started last, of the 2 that asked for the most memory of 3 programs "
                                "that used the device: ",
                                0),
            0u)
      << line_of(some);
  EXPECT_TRUE(has(page_of(some),
                  "3 programs used the device. This page is of the one that was started last, of the 2 that asked for "
                  "the most memory: p 2. "));
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
