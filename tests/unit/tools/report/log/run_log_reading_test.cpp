// Run logs as they are read: damaged, or with what no counter holds.
#include "tests/support/sample.h"
#include "tests/support/test.h"
#include "tests/unit/tools/report/sample_inputs.h"
#include "tools/report/report.h"

namespace reprise::report {
namespace {

using tools::test::sample_run_log;

TEST(RunLog, DamagedLinesAreCountedAndTheRestIsRead) {
  const std::string whole = sample_run_log();
  const RunLog log = parse_run_log(whole.substr(0, whole.size() - 20) + "\nnot json\n[1]\n");
  EXPECT_EQ(log.unreadable_lines, 3u);
  EXPECT_FALSE(log.ended);
  EXPECT_EQ(log.iterations_planned, 2u);
  EXPECT_EQ(log.iterations_on_demand, 1u);
  EXPECT_EQ(log.peak_device_bytes, 9437184u);
  EXPECT_EQ(median_iteration_ns(log, true), 810u);
}

// Programs that one has started, one after the other or side by side: the log is read as the one of the most memory.
TEST(RunLog, OfSeveralProgramsTheOneWithTheMostMemoryCounts) {
  const std::string lines = R"({"kind":"start","program":"a","arguments":"-x","budget_bytes":1,"process":7}
{"kind":"iteration","index":0,"wall_ns":1,"process":7}
{"kind":"start","program":"b","budget_bytes":2,"process":9}
{"kind":"memory","requested_bytes":50,"process":9}
{"kind":"iteration","index":0,"wall_ns":20,"process":9}
{"kind":"iteration","index":1,"wall_ns":1,"process":7}
{"kind":"start","program":"c","process":11}
{"kind":"end","peak_device_bytes":4,"peak_requested_bytes":49,"process":7}
{"kind":"program_end","exit_code":3})";
  const RunLog log = parse_run_log(lines);
  EXPECT_EQ(log.others, (std::vector<std::string>{"a -x", "c"}));
  EXPECT_EQ(log.program, "b") << "it was killed, but its samples are there";
  EXPECT_EQ(log.budget_bytes, 2u);
  ASSERT_EQ(log.iterations.size(), 1u);
  EXPECT_EQ(log.iterations[0].wall_ns, 20u);
  EXPECT_EQ(log.peak_device_bytes, 0u);
  EXPECT_EQ(log.ending, "exit code 3") << "the launcher's lines are of all";
  EXPECT_EQ(parse_run_log(lines + "\n" + R"({"kind":"end","peak_requested_bytes":50,"process":11})").program, "c")
      << "of several alike, the last";
}

// By the command's end where the program is the command itself, else by what it says of itself.
TEST(RunLog, AProgramEndedAsItSaysUnlessItIsTheCommand) {
  const auto ended = [](const std::string& end, const std::string& of_command) {
    const RunLog log =
        parse_run_log("{\"kind\":\"start\",\"program\":\"a\",\"process\":7}\n" + end + "\n" + of_command);
    return log.ending + "|" + log.command_ending;
  };
  const auto end = [](const std::string& more) { return "{\"kind\":\"end\",\"process\":7" + more + "}"; };
  const auto command = [](const std::string& process, const std::string& how) {
    return R"({"kind":"program_end","command":)" + process + "," + how + "}";
  };
  const std::string failed = R"("exit_code":3,"signal":0)";
  const std::string well = R"("exit_code":0,"signal":0)";
  const std::string killed = R"("exit_code":0,"signal":9)";
  EXPECT_EQ(ended(end(R"(,"exit_code":0)"), command("5", failed)), "|exit code 3");
  EXPECT_EQ(ended(end(R"(,"exit_code":4)"), command("5", failed)), "exit code 4|exit code 3");
  EXPECT_EQ(ended(end(R"(,"exit_code":4)"), command("5", well)), "exit code 4|exit code 0");
  EXPECT_EQ(ended(end(R"(,"exit_code":3)"), command("5", failed)), "exit code 3|");
  EXPECT_EQ(ended(end(R"(,"exit_code":0)"), command("7", failed)), "exit code 3|") << "a later handler's";
  EXPECT_EQ(ended(end(R"(,"exit_code":0)"), command("7", killed)), "signal 9 (Killed)|");
  EXPECT_EQ(ended(end(R"(,"exit_code":3)"), ""), "exit code 3|") << "nobody has started it";
  EXPECT_EQ(ended(end(""), R"({"kind":"program_end","exit_code":3})"), "exit code 3|") << "of before";
  EXPECT_EQ(ended("", command("7", killed)), "signal 9 (Killed)|");
  EXPECT_EQ(ended("", command("7", failed)), "exit code 3, without its exit handlers|");
  EXPECT_EQ(ended("", command("5", killed)), "|signal 9 (Killed)");
  EXPECT_EQ(ended("", command("5", well)), "|");
  const std::string became = R"({"kind":"memory","requested_bytes":5,"process":7}
{"kind":"start","program":"b","process":7}
{"kind":"end","exit_code":3,"process":7})";
  EXPECT_EQ(ended(became, command("7", failed)), "|exit code 3") << "it has become another program";
}

TEST(RunLog, AProcessMayBecomeOneProgramAfterTheOther) {
  const std::string first = R"({"kind":"start","program":"a","process":7}
{"kind":"memory","requested_bytes":5,"process":7}
{"kind":"iteration","index":0,"process":7}
{"kind":"start","program":"b","process":7})";
  EXPECT_EQ(parse_run_log(first).program, "a");
  EXPECT_EQ(parse_run_log(first).iterations.size(), 1u);
  const RunLog again = parse_run_log(first + "\n" + R"({"kind":"end","peak_requested_bytes":6,"process":7})");
  EXPECT_EQ(again.program, "b") << "it has taken the other one's place, and its process";
  EXPECT_TRUE(again.iterations.empty());
}

// What has got into the log of a run by programs that it has not started, before its own, between them and behind them.
TEST(RunLog, OfARunItsOwnProgramsCount) {
  const std::string own = R"({"kind":"start","program":"own","process":7,"run":5}
{"kind":"plan","index":0,"path":"own.plan","process":7}
{"kind":"end","peak_requested_bytes":10,"process":7}
)";
  const std::string more = R"({"kind":"start","program":"more","process":8,"run":5}
{"kind":"end","peak_requested_bytes":3,"process":8}
)";
  const std::string foreign = R"({"kind":"start","program":"foreign","process":17}
{"kind":"plan","index":0,"path":"foreign.plan","process":17}
{"kind":"warning","message":"foreign","process":17}
{"kind":"end","peak_requested_bytes":99,"process":17}
)";
  const std::string of_another_run = R"({"kind":"start","program":"foreign","process":27,"run":6}
{"kind":"end","peak_requested_bytes":98,"process":27}
)";
  const std::string end = R"({"kind":"program_end","exit_code":0,"run":5}
)";
  for (const std::string& text : {own + foreign + of_another_run + end, foreign + own + of_another_run + end,
                                  of_another_run + foreign + own + end, own + foreign + of_another_run}) {
    const RunLog log = parse_run_log(text);
    EXPECT_EQ(log.program, "own");
    EXPECT_EQ(log.plan_path, "own.plan");
    EXPECT_EQ(log.peak_requested_bytes, 10u);
    EXPECT_TRUE(log.others.empty());
    EXPECT_TRUE(log.planned_others.empty());
    EXPECT_TRUE(log.messages.empty());
  }
  EXPECT_EQ(parse_run_log(foreign + own + of_another_run + more + end).others, std::vector<std::string>{"more"});
  // The run's own program never began: what no program has said of itself may be its.
  const RunLog none = parse_run_log(foreign + R"({"kind":"not_managed","reason":"why","process":9})" + "\n" + end);
  EXPECT_EQ(none.program, "");
  EXPECT_EQ(none.not_managed, "why");
  EXPECT_EQ(none.plan_count, 0u);
  EXPECT_TRUE(none.messages.empty());
}

// A log of before that says no processes.
TEST(RunLog, WhereProgramsAreNotToldApartTheLastOneIsNamed) {
  const RunLog log = parse_run_log(R"({"kind":"start","program":"a"}
{"kind":"start","program":"b"})");
  EXPECT_EQ(log.program, "b");
  EXPECT_TRUE(log.others.empty());
}

TEST(RunLog, NumbersThatNoCounterHoldsAreTheLargest) {
  const RunLog log = parse_run_log(R"({"kind":"iteration","index":1e300,"wall_ns":-1e300,"offload_bytes":1e19})");
  ASSERT_EQ(log.iterations.size(), 1u);
  EXPECT_EQ(log.iterations[0].index, UINT64_MAX);
  EXPECT_EQ(log.iterations[0].wall_ns, 0u);
  EXPECT_EQ(log.iterations[0].offload_bytes, 10'000'000'000'000'000'000u);
}

TEST(RunLog, ListsInListsWithoutEndAreUnreadable) {
  const std::string deep = std::string(300'000, '[') + std::string(300'000, ']');
  const RunLog log = parse_run_log(R"({"kind":"start","program":)" + deep + "}\n" + R"({"kind":"end"})");
  EXPECT_EQ(log.unreadable_lines, 1u);
  EXPECT_TRUE(log.ended);
}

TEST(RunLog, NumbersOfTheWrongTypeDoNotThrow) {
  const RunLog log =
      parse_run_log("{\"kind\":\"iteration\",\"index\":\"x\",\"wall_ns\":-4,\"mode\":7}\n{\"kind\":3}\n");
  ASSERT_EQ(log.iterations.size(), 1u);
  EXPECT_EQ(log.iterations[0].wall_ns, 0u);
}

// What repeats may be a few calls within an iteration, or before any; a trace or a plan tells.
TEST(RunLog, WithoutATraceWhatRepeatsIsNotCalledAnIteration) {
  const std::string lines = R"({"kind":"start","budget_bytes":9000}
{"kind":"repeats","calls":12,"iterations":2}
{"kind":"iteration","index":2,"mode":"on_demand","wall_ns":50,"calls":12}
)";
  const std::string end = R"({"kind":"end","iterations_on_demand":3,"peak_device_bytes":8000})";
  const RunLog log = parse_run_log(lines + end);
  EXPECT_TRUE(
      has(make_summary({nullptr, nullptr, &log}),
          ", no iteration planned (the run log does not say why); it was seen to repeat 12 calls in a row, 3 times"));
  const std::string cards = cards_section({nullptr, nullptr, &log}).dump();
  EXPECT_TRUE(has(cards, "12 calls in a row, 3 times"));
  EXPECT_FALSE(has(cards, "er iteration"));
  const RunLog two = parse_run_log(
      lines + "{\"kind\":\"iteration\",\"index\":3,\"mode\":\"on_demand\",\"wall_ns\":50,\"calls\":740}\n" + end);
  EXPECT_EQ(repetitions({nullptr, nullptr, &two}), "12 to 740 calls in a row, 3 times");
  const Sample sample;
  EXPECT_EQ(repetitions(sample.inputs()), "");
}

// What was seen to repeat while the program ran is a part of what it does, and was found to be none.
TEST(RunLog, RepetitionsThatAreNoIterationAreNotCountedAsSuch) {
  for (const std::string cause : {"no_iteration", "no_repetition"}) {
    const RunLog log = parse_run_log(R"({"kind":"start","budget_bytes":9000}
{"kind":"repeats","calls":12,"iterations":704}
{"kind":"on_demand","cause":")" + cause +
                                     R"(","reason":"no iteration found in 11572 calls: its work repeats, but ..."}
{"kind":"end","iterations_on_demand":704,"peak_device_bytes":8000})");
    const Inputs inputs{nullptr, nullptr, &log};
    const std::string summary = make_summary(inputs);
    EXPECT_TRUE(
        has(summary, ", no iteration found to plan (no iteration found in 11572 calls: its work repeats, but ...)"));
    EXPECT_FALSE(has(summary, "704")) << "as of the run that wrote it: ";
    const std::string cards = cards_section(inputs).dump();
    EXPECT_TRUE(has(cards, "12 calls in a row, 704 times"));
    EXPECT_TRUE(has(cards, "on demand; a part of what the program does, and no iteration"));
  }
}

TEST(RunLog, ARedactedCommandIsRedactedOnce) {
  EXPECT_EQ(command_of(parse_run_log(R"log({"kind":"start","program":"(redacted)","arguments":"(redacted)"})log")),
            "(redacted)");
  EXPECT_EQ(command_of(parse_run_log(R"log({"kind":"start","program":"(redacted)","arguments":""})log")), "(redacted)");
}

}  // namespace
}  // namespace reprise::report
