// What is said of a run whose program was killed, or interrupted, before a plan was in force: the same by whatever
// files there are. And whether anything had to be moved, or could be.
#include "tests/support/test.h"
#include "tests/unit/tools/report/sample_inputs.h"

namespace reprise::report {
namespace {

const std::string kStart = R"({"kind":"start","program":"p","budget_bytes":9000,"process":7,"run":5}
)";
const std::string kKilled = R"({"kind":"program_end","exit_code":0,"signal":2,"command":7,"run":5}
)";

// A sample of what the program took, of which so much had been moved by then.
std::string sample(int device_bytes, int moved_bytes) {
  return R"({"kind":"memory","process":7,"device_bytes":)" + std::to_string(device_bytes) + R"(,"moved_bytes":)" +
         std::to_string(moved_bytes) + "}\n";
}

std::string repeated(int times) {
  std::string lines = R"({"kind":"repeats","process":7,"calls":90,"iterations":2})"
                      "\n";
  for (int i = 2; i < times; ++i) {
    lines += R"({"kind":"iteration","process":7,"mode":"on_demand","wall_ns":5,"calls":90,"index":)" +
             std::to_string(i) + "}\n";
  }
  return lines;
}

std::string reason(const std::string& cause, const std::string& words) {
  return R"({"kind":"on_demand","process":7,"cause":")" + cause + R"(","reason":")" + words + "\"}\n";
}

Inputs inputs_of(const RunLog& log) {
  Inputs inputs{nullptr, nullptr, &log};
  inputs.ending = log.ending;
  return inputs;
}

std::string words_of(const RunLog& log) { return text_of(sentences_section(inputs_of(log))); }
std::string cards_of(const RunLog& log) { return text_of_cards(cards_section(inputs_of(log))); }

TEST(CutShort, WithoutAReasonTheLogEndsBeforeAPlan) {
  const RunLog log = parse_run_log(kStart + sample(8000, 0) + kKilled);
  const std::string summary = make_summary(inputs_of(log));
  EXPECT_TRUE(has(summary, ", no iteration planned (the program was ended before a plan was made)"));
  EXPECT_FALSE(has(summary, "which would say why"));
  EXPECT_TRUE(
      has(words_of(log),
          "No plan was made: the program was ended before a plan was made. Nothing had to be moved until then."));
  EXPECT_TRUE(has(cards_of(log), "Iterations: not known; nothing moved"));
  EXPECT_TRUE(has(cards_of(log), "Moved in all, on demand: 0 B; as far as the run log goes"));
  const RunLog unseen = parse_run_log(kStart + sample(8000, 0));
  EXPECT_TRUE(has(make_summary(inputs_of(unseen)), "(the run log ends before a plan was made)"));
}

TEST(CutShort, WhatTheRecordingHasTheLogSays) {
  const std::string lines = kStart + sample(8000, 0) + repeated(4);
  const RunLog alone = parse_run_log(lines + kKilled);
  EXPECT_TRUE(has(make_summary(inputs_of(alone)), "it was seen to repeat 90 calls in a row, 4 times"));
  const RunLog whole = parse_run_log(lines + kKilled + R"({"kind":"recorded","calls":90,"iterations":15})");
  const std::string summary = make_summary(inputs_of(whole));
  EXPECT_TRUE(has(summary, ", 0 of 15 iterations planned (the program was ended before a plan was made)"));
  EXPECT_TRUE(has(cards_of(whole), "Iterations: 0 of 15 planned; 15 on demand"));
  // Part of an iteration repeats, too.
  const RunLog part = parse_run_log(lines + kKilled + R"({"kind":"recorded","calls":200,"iterations":3})");
  EXPECT_TRUE(has(make_summary(inputs_of(part)), ", 0 of 3 iterations planned"));
}

TEST(CutShort, ARecordingThatIsKnownCountsWhereTheRunEndedWell) {
  const RunLog log = parse_run_log(kStart + repeated(4) + reason("too_small", "why") +
                                   R"({"kind":"end","process":7,"iterations_on_demand":4,"peak_device_bytes":8000}
{"kind":"recorded","calls":90,"iterations":6})");
  EXPECT_TRUE(has(make_summary(inputs_of(log)), ", 0 of 6 iterations planned (why)"));
}

// The planner had been asked, and had found none in what was recorded by then.
TEST(CutShort, AnIterationThatIsThereOvertakesThatNoneWasFound) {
  const RunLog log = parse_run_log(kStart + sample(8000, 70) + reason("no_iteration", "no iteration found in 9 calls") +
                                   kKilled + R"({"kind":"recorded","calls":90,"iterations":3})");
  EXPECT_TRUE(has(make_summary(inputs_of(log)), "0 of 3 iterations planned (the program was ended before"));
  EXPECT_FALSE(has(words_of(log), "no iteration found"));
}

TEST(CutShort, ABudgetThatHoldsNoPlanIsTheReasonInLineAndPage) {
  RunLog log = parse_run_log(kStart + sample(8000, 70) + kKilled + R"({"kind":"recorded","calls":90,"iterations":3})");
  Inputs inputs = inputs_of(log);
  inputs.minimum_bytes = 10000;
  const std::optional<RunReason> found = found_in_recording(inputs);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->cause, "too_small");
  EXPECT_EQ(found->least_bytes, 10000u);
  const std::string summary = make_summary(inputs);
  EXPECT_TRUE(has(summary, "0 of 3 iterations planned (no plan fits into the budget of 9000 bytes"));
  log.reasons.push_back(*found);
  EXPECT_EQ(make_summary(inputs_of(log)), summary) << "the log alone";
  EXPECT_FALSE(found_in_recording(inputs).has_value()) << "said once";
}

TEST(CutShort, WhereAllFitsThatIsSaid) {
  const RunLog log = parse_run_log(kStart + sample(8000, 0) + repeated(4) + reason("fits", "nothing moves") + kKilled +
                                   R"({"kind":"recorded","calls":90,"iterations":4})");
  EXPECT_TRUE(has(make_summary(inputs_of(log)), ", 0 of 4 iterations planned, as nothing has to move"));
  EXPECT_FALSE(has(words_of(log), "moved on demand"));
}

TEST(CutShort, WhatWasMovedIsSaidAsFarAsItIsKnown) {
  const std::string why = reason("no_plan", "why");
  const RunLog some = parse_run_log(kStart + sample(8000, 0) + sample(9000, 2048) + why + kKilled);
  EXPECT_TRUE(has(words_of(some), "why. So tensors were moved on demand until then, which keeps"));
  EXPECT_TRUE(has(cards_of(some), "Moved in all, on demand: at least 2.0 KiB"));
  const RunLog of_before = parse_run_log(kStart + R"({"kind":"memory","process":7,"device_bytes":80})" + "\n" + why);
  EXPECT_TRUE(has(words_of(of_before), "why. So memory was managed on demand until then"));
  EXPECT_TRUE(has(cards_of(of_before), "Moved in all, on demand: not known"));
}

// Nothing was moved because it could not be, or would have been of no use.
TEST(CutShort, NothingHadToBeMovedIsSaidWhereThatIsSo) {
  const std::string end = R"({"kind":"end","process":7,"exit_code":1,"peak_device_bytes":8000})";
  const RunLog full =
      parse_run_log(kStart + R"({"kind":"host_full","process":7,"needed_bytes":5,"host_bytes":4})" + "\n" + end);
  EXPECT_TRUE(
      has(words_of(full),
          "the program got no memory before an iteration was found. Nothing was moved: host memory had no room"));
  const RunLog shortage = parse_run_log(
      kStart + R"({"kind":"shortage","process":7,"call":"A","needed_bytes":9,"least_bytes":8})" + "\n" + end);
  EXPECT_TRUE(has(words_of(shortage), "a call got no memory before an iteration was found. Nothing was moved."));
  for (const RunLog& log : {full, shortage}) EXPECT_FALSE(has(words_of(log), "had to be moved"));
  const RunLog well =
      parse_run_log(kStart + reason("no_iteration", "why") + R"({"kind":"end","process":7,"peak_device_bytes":8000})");
  EXPECT_TRUE(has(words_of(well), "No plan was made: why. Nothing had to be moved all the same."));
}

// Neither a plan nor an end says how much that is: the recording's peak does.
TEST(CutShort, APercentageIsOfTheRecordedPeak) {
  const std::string start = R"({"kind":"start","mode":"run","budget_percent":90,"process":7,"run":5})"
                            "\n";
  const RunLog log = parse_run_log(start + sample(16 << 20, 70) + kKilled);
  Inputs inputs = inputs_of(log);
  inputs.peak_bytes = 18 << 20;
  inputs.curve.full_speed_bytes = inputs.curve.minimum_bytes = inputs.minimum_bytes = 16 << 20;
  inputs.curve.peak_bytes = 18 << 20;
  const Json data = make_data(inputs);
  EXPECT_EQ(data.at("budget_words"), "budget 90 % of the peak, which was 16.2 MiB by then");
  EXPECT_EQ(data.at("run_memory").at("budget"), static_cast<uint64_t>(0.9 * (18 << 20)));
  EXPECT_TRUE(has(cards_of(log), "; budget 90 % of the peak")) << "without a recording";
  EXPECT_FALSE(has(data.at("advice").dump(), "for full speed")) << "it had that: ";
  // More than that was used: it was of another peak.
  inputs.peak_bytes = 16 << 20;
  const Json more = make_data(inputs);
  EXPECT_EQ(more.at("budget_words"), "budget 90 % of the peak");
  EXPECT_FALSE(has(more.at("advice").dump(), "for full speed")) << "it may have had that: ";
  inputs.peak_bytes = 18 << 20;
  const RunLog whole = parse_run_log(start + R"({"kind":"end","process":7,"budget_bytes":9437184})");
  inputs.log = &whole;
  inputs.ending = "";
  EXPECT_EQ(make_data(inputs).at("budget_words"), "budget 9.0 MiB") << "as the run had it";
}

// It was interrupted before there was a run log.
TEST(CutShort, WithoutALogItsEndIsSaid) {
  trace::Trace trace;
  Inputs inputs{&trace};
  inputs.ending = "signal 2 (Interrupt)";
  EXPECT_EQ(make_summary(inputs), "the program ended with signal 2 (Interrupt) before it used the device");
  EXPECT_EQ(verdict_section(inputs).at("text"),
            "The program ended with signal 2 (Interrupt) before it used the device.");
}

}  // namespace
}  // namespace reprise::report
