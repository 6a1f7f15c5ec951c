// What is said and advised of the budget: whether it was kept, and what would have been enough.
#include "tests/support/test.h"
#include "tests/unit/tools/report/sample_inputs.h"
#include "tools/report/report.h"

namespace reprise::report {
namespace {

// The log has the number that its reason names, and no recording is needed for it.
TEST(BudgetOfRun, ABudgetThatWasTooSmallIsToldWithTheLeastOne) {
  const auto advice = [](const std::string& budget, uint64_t minimum, const char* ending) {
    const RunLog log = parse_run_log(
        "{\"kind\":\"start\"," + budget +
        "}\n{\"kind\":\"on_demand\",\"cause\":\"too_small\",\"reason\":\"why\",\"least_bytes\":29360128}\n"
        "{\"kind\":\"end\",\"budget_bytes\":20971520,\"peak_device_bytes\":20971520,"
        "\"peak_footprint_bytes\":41943040}\n");
    Inputs inputs{nullptr, nullptr, &log};
    inputs.minimum_bytes = minimum;
    inputs.ending = ending;
    const Json first = advice_section(inputs).at(0);
    return first.at("title").get<std::string>() + ", " + first.at("command").get<std::string>();
  };
  const std::string bytes = R"("budget_bytes":20971520)";
  EXPECT_EQ(advice(bytes, 0, ""), "Give it at least 28.0 MiB (70 % of the peak), --budget 28MiB");
  EXPECT_EQ(advice(R"("budget_percent":50)", 0, ""), "Give it at least 28.0 MiB (70 % of the peak), --budget 28MiB");
  EXPECT_EQ(advice(bytes, 30 << 20, ""), "Give it at least 30.0 MiB (75 % of the peak), --budget 30MiB");
  EXPECT_EQ(advice(bytes, 0, "exit code 1"), "Give it at least 28.0 MiB, --budget 28MiB")
      << "it may have needed more, had it gone on";
}

// What a budget has beyond its last whole chunk is no use to a plan: to ask for less by that gains nothing.
TEST(BudgetOfRun, AsManyChunksAsTheSmallestBudgetHasIsAsSmall) {
  const auto advice = [](uint64_t budget, uint64_t least) {
    const RunLog log =
        parse_run_log(R"({"kind":"start","chunk_bytes":2097152,"budget_bytes":)" + std::to_string(budget) + R"(}
{"kind":"end","iterations_planned":3,"peak_device_bytes":1})");
    Inputs inputs{nullptr, nullptr, &log};
    inputs.minimum_bytes = inputs.curve.full_speed_bytes = least;
    return advice_section(inputs);
  };
  const uint64_t least = 24 << 20;
  for (const uint64_t more : {uint64_t{0}, uint64_t{1}, uint64_t{700} << 10, (uint64_t{2} << 20) - 1}) {
    const Json same = advice(least + more, least);
    EXPECT_EQ(same.size(), 1u) << same;
    EXPECT_EQ(same.at(0).at("command"), "") << same;
  }
  EXPECT_EQ(advice(least + (700 << 10), least).at(0).at("detail"),
            "No smaller budget has a plan, and one of 24.7 MiB leaves no chunk more.");
  EXPECT_EQ(advice(least + (2 << 20), least).at(0).at("command"), "--budget 24MiB") << "a chunk more";
  EXPECT_EQ(advice(least - 1, least).at(0).at("command"), "--budget 24MiB");
  // A shrunk budget would hold as many, too.
  EXPECT_FALSE(has(advice((16 << 20) + (1900 << 10), 16 << 20).dump(), "would do"));
  EXPECT_TRUE(has(advice(18 << 20, 16 << 20).dump(), "would do"));
}

// The curve's last budget holds everything, and `plan` makes none for it.
TEST(BudgetOfRun, FullSpeedThatTakesAllIsNoPlannedBudget) {
  const Sample sample;
  const auto advice = [](Inputs inputs, uint64_t full, uint64_t peak) {
    inputs.curve.policy = "disco";
    inputs.curve.compute_ns = 350;
    inputs.curve.full_speed_bytes = full;
    inputs.curve.peak_bytes = inputs.peak_bytes = peak;
    inputs.curve.points = {{9 << 20, 900, 8}, {full, 355, 0}};
    return advice_section(inputs).at(0);
  };
  const std::string all = "all that it takes, as no smaller budget is within 2 % of computing alone.";
  const Json recorded = advice({&sample.trace}, 24 << 20, 24 << 20);
  EXPECT_EQ(recorded.at("title"), "24.0 MiB (100 % of the peak) for full speed");
  EXPECT_EQ(recorded.at("detail"), "A" + all.substr(1));
  EXPECT_EQ(recorded.at("command"), "") << "nothing is planned then";
  const Json run = advice(sample.inputs(), 24 << 20, 24 << 20);
  EXPECT_TRUE(has(run.at("detail"), ": " + all)) << run;
  EXPECT_EQ(run.at("command"), "--budget 24MiB");
  EXPECT_EQ(advice({&sample.trace}, 22 << 20, 24 << 20).at("detail"),
            "The smallest planned budget within 2 % of computing alone.");
}

// In every section of the page.
TEST(BudgetOfRun, WhetherTheBudgetWasKeptHasOneAnswer) {
  const auto page = [](const std::string& start, const std::string& end) {
    const RunLog log =
        parse_run_log("{\"kind\":\"start\"" + start +
                      "}\n{\"kind\":\"on_demand\",\"cause\":\"no_repetition\",\"reason\":\"why\"}\n" + end);
    return make_data({nullptr, nullptr, &log}).dump();
  };
  const char* const keeps = "which keeps the budget but hides no transfer";
  const char* const passes = "which hides no transfer, and the budget was not kept";
  const std::string in_bytes = R"(,"budget_bytes":6291456)";
  const std::string in_percent = R"(,"budget_percent":50)";
  const std::string moved = R"(,"offload_bytes":4096,"reload_bytes":4096,"budget_bytes":6291456})";
  for (const std::string& start : {in_bytes, in_percent}) {
    const std::string within = page(start, R"({"kind":"end","peak_device_bytes":6291456)" + moved);
    EXPECT_TRUE(has(within, keeps) && !has(within, passes)) << within;
    // What is held around Reprise counts, and graphs, too.
    for (const std::string more :
         {R"("peak_device_bytes":12582912)", R"("peak_device_bytes":6291456,"outside_bytes":1)",
          R"("peak_device_bytes":4194304,"peak_used_bytes":8388608,"graph_bytes":4194304)"}) {
      const std::string above = page(start, R"({"kind":"end",)" + more + moved);
      EXPECT_TRUE(has(above, passes) && !has(above, keeps)) << above;
      // To the byte where rounded figures would be the same.
      const bool by_a_byte = has(more, "outside_bytes");
      EXPECT_TRUE(has(above, by_a_byte ? "It used 6291457 B of device memory, more than the budget of 6291456 B"
                                       : "more than the budget of 6.0 MiB"));
    }
  }
  const std::string cut_off =
      page(in_percent, R"({"kind":"memory","device_bytes":12582912,"requested_bytes":12582912})");
  EXPECT_TRUE(has(cut_off, "managed on demand until then, which hides no transfer.") && !has(cut_off, keeps))
      << cut_off;
}

// Memory that the driver pages may take all of the budget, and more, before anything of ours is there.
TEST(BudgetOfRun, WhatIsHeldAroundNoManagedMemoryIsThePeak) {
  const RunLog log =
      parse_run_log(R"({"kind":"start","budget_bytes":20971520}
{"kind":"on_demand","cause":"no_repetition","reason":"a call got no memory"}
{"kind":"shortage","call":"An allocation","needed_bytes":4194304,"least_bytes":29360128}
{"kind":"end","exit_code":3,"peak_device_bytes":0,"outside_bytes":25165824,"peak_used_bytes":25165824,)"
                    R"("peak_program_bytes":25165824,"peak_requested_bytes":0,"budget_bytes":20971520})");
  Inputs inputs{nullptr, nullptr, &log};
  inputs.ending = "exit code 3";
  EXPECT_TRUE(has(make_summary(inputs), "until then it used 24.0 MiB of device memory")) << make_summary(inputs);
  const std::string page = make_data(inputs).dump();
  EXPECT_TRUE(has(page, R"("Peak device memory","value":"24.0 MiB","detail":"was 24.0 MiB (100 %); budget 20.0 MiB")"))
      << page;
  EXPECT_TRUE(has(page,
                  "Device memory reached 24.0 MiB, above the budget of 20.0 MiB: the program and the driver hold "
                  "24.0 MiB of it that cannot be moved. Ask for at least 28.0 MiB."));
  EXPECT_FALSE(has(page, "never exceeded"));
}

// A plan keeps to the budget that it was made for, whatever the run may have: there is one answer to what that was.
class LargerBudget : public testing::Test {
 protected:
  static std::string run_log(uint64_t budget_mib, const char* mode = "replay") {
    const std::string budget = std::to_string(budget_mib << 20);
    return std::string(R"({"kind":"start","chunk_bytes":2097152,"mode":")") + mode + R"(","budget_bytes":)" + budget +
           "}\n" + R"({"kind":"plan","policy":"sample","budget_bytes":10485760}
{"kind":"activate","iteration":1,"vmm_calls":8}
{"kind":"memory","time_ns":6000,"device_bytes":9437184,"requested_bytes":12582912}
{"kind":"iteration","index":1,"mode":"planned","wall_ns":800,"offload_bytes":4194304,"reload_bytes":4194304}
{"kind":"end","iterations_planned":2,"peak_device_bytes":9437184,"budget_bytes":)" +
           budget + "}\n";
  }
  Json page(uint64_t budget_mib, const char* mode = "replay") {
    sample_.log = parse_run_log(run_log(budget_mib, mode));
    Inputs inputs = sample_.inputs();
    inputs.curve.policy = "reprise";
    inputs.curve.compute_ns = 350;
    inputs.curve.peak_bytes = sample_.plan.peak_bytes;
    inputs.curve.full_speed_bytes = uint64_t{12} << 20;
    inputs.curve.points = {{uint64_t{10} << 20, 900, 8}, {uint64_t{12} << 20, 355, 4}};
    return make_data(inputs);
  }
  static std::string advice_of(const Json& data) {
    std::string text;
    for (const Json& one : data.at("advice")) {
      text += one.at("title").get<std::string>() + ": " + one.at("detail").get<std::string>() + " [" +
              one.at("command").get<std::string>() + "]\n";
    }
    return text;
  }

  Sample sample_;
};

TEST_F(LargerBudget, PageAndChartsSayWhatThePlanUsesOfIt) {
  const Json data = page(20);
  EXPECT_EQ(data.at("budget_words"), "budget 20.0 MiB, of which the plan uses 10.0 MiB");
  EXPECT_TRUE(has(text_of(data.at("sentences")),
                  "never exceeded the budget of 20.0 MiB, of which the plan uses 10.0 MiB; the peak was 9.0 MiB."));
  EXPECT_EQ(data.at("iteration_memory").at("budget"), 10 << 20);
  EXPECT_EQ(data.at("iteration_memory").at("budget_name"), "The plan's budget");
  EXPECT_EQ(data.at("run_memory").at("budget"), 20 << 20);
  EXPECT_EQ(data.at("run_memory").at("levels").at(0).at("name"), "The plan's budget");
  EXPECT_EQ(data.at("run_memory").at("levels").at(0).at("value"), 10 << 20);
  EXPECT_EQ(data.at("budget_curve").at("here"), 10 << 20) << "what was measured is of the plan's";
  EXPECT_EQ(data.at("budget_curve").at("here_name"), "The plan's budget");
  sample_.log = parse_run_log(run_log(20));
  EXPECT_EQ(budget_words({nullptr, nullptr, &sample_.log}), "budget 20.0 MiB, of which the plan uses 10.0 MiB")
      << "the log alone";
}

TEST_F(LargerBudget, WhereTheyAreOneNothingElseIsSaid) {
  for (const Json& data : {page(10), page(20, "run")}) {
    EXPECT_FALSE(has(data.dump(), "of which the plan uses")) << data.at("budget_words");
    EXPECT_EQ(data.at("budget_curve").at("here_name"), "Your budget");
    EXPECT_FALSE(has(advice_of(data), "Plan for the budget of the run"));
  }
  EXPECT_EQ(page(10).at("iteration_memory").at("budget_name"), "Budget");
  EXPECT_EQ(page(11).at("budget_words"), "budget 11.0 MiB") << "not a chunk more";
  EXPECT_EQ(page(11).at("iteration_memory").at("budget_name"), "The plan's budget") << "what is drawn is that";
}

TEST_F(LargerBudget, WhatAPlanForItWouldGiveIsAdvised) {
  const std::string all = advice_of(page(20));
  EXPECT_TRUE(has(all,
                  "Run it without this plan: The plan is for 10.0 MiB, and its iterations use no more of the budget of "
                  "20.0 MiB: they move 8.0 MiB each. The program takes 12.0 MiB at most, so within that nothing has to "
                  "move. An iteration would take 350 ns instead of 750 ns, with kernel times as recorded. [reprise run "
                  "--budget 20MiB -- program ...]"));
  EXPECT_FALSE(has(all, "would do"));
  EXPECT_FALSE(has(all, "for full speed")) << "told once: ";
  sample_.plan.peak_bytes = uint64_t{24} << 20;
  const std::string part = advice_of(page(20));
  EXPECT_TRUE(has(part,
                  "Plan for the budget of the run: The plan is for 10.0 MiB, and its iterations use no more of the "
                  "budget of 20.0 MiB: they move 8.0 MiB each. By a plan for that, an iteration would take 355 ns "
                  "instead of 750 ns and move 4 B, with kernel times as recorded. "
                  "[reprise plan a.trace --budget 20MiB -o new.plan]"));
}

// A launch without memory is not done, and who called it may have swallowed the error: an end that looks well is none.
TEST(BudgetOfRun, CallsThatGotNoMemoryAreNamedWhereTheProgramEndedWell) {
  const auto said = [](const std::string& calls, int exit_code) {
    std::string lines = "{\"kind\":\"start\",\"process\":7,\"budget_bytes\":20971520}\n";
    for (const char call : calls) {
      const std::string name = call == 'a' ? "An allocation" : std::string("kernel_") + call;
      lines += "{\"kind\":\"shortage\",\"process\":7,\"call\":\"" + name + "\",\"needed_bytes\":9}\n";
    }
    lines +=
        "{\"kind\":\"end\",\"process\":7,\"peak_device_bytes\":20971520,\"exit_code\":" + std::to_string(exit_code) +
        "}\n";
    const RunLog log = parse_run_log(lines);
    Inputs inputs{nullptr, nullptr, &log};
    inputs.ending = log.ending;
    return make_summary(inputs) + verdict_section(inputs).dump();
  };
  EXPECT_TRUE(has(said("bb", 0), "; there was no memory for kernel_b"));
  EXPECT_TRUE(has(said("bb", 0), "There was no memory for kernel_b: "));
  EXPECT_TRUE(has(said("bacde", 0), "kernel_b, kernel_c, kernel_d and others"));
  EXPECT_FALSE(has(said("a", 0), "no memory for")) << "programs look at what an allocation answers";
  EXPECT_FALSE(has(said("b", 3), "no memory for")) << "it is told with how it ended";
}

}  // namespace
}  // namespace reprise::report
