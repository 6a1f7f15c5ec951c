// Figures that several sections name: the same everywhere, and none where nothing is known.
#include <gtest/gtest.h>

#include "tests/unit/tools/report/sample_inputs.h"

namespace reprise::report {
namespace {

// Strict safety maps with each move, whatever a plan counts; and a mean is no whole number.
TEST(Figures, MappingCallsAreAPredictionWithTrustedSafetyAlone) {
  Sample sample;
  uint64_t calls = 41;
  for (RunIteration& it : sample.log.iterations) {
    if (it.planned) it.vmm_calls = calls++;
  }
  const auto row = [&] {
    for (const Json& one : totals_section(sample.inputs())) {
      if (one.at("label") == "Memory-mapping calls") return one;
    }
    return Json();
  };
  EXPECT_EQ(row().at("predicted"), "0") << "logs of before had no safety";
  EXPECT_EQ(row().at("measured"), "41.5");
  sample.log.safety = "strict";
  EXPECT_EQ(row().at("predicted"), "");
  EXPECT_NE(row().at("note").get<std::string>().find("mean of 2 planned iterations"), std::string::npos);
  sample.log.safety = "trusted";
  EXPECT_EQ(row().at("predicted"), "0");
  Inputs alone = sample.inputs();
  alone.log = nullptr;
  for (const Json& one : totals_section(alone)) {
    if (one.at("label") != "Memory-mapping calls") continue;
    EXPECT_EQ(one.at("note"), "with --safety trusted; strict maps with each move besides") << "a plan is of no safety";
  }
}

// In the verdict and in the card.
TEST(Figures, APercentageIsRoundedOneWay) {
  EXPECT_EQ(whole_percent(5, 8), "63 %");
  Sample sample;
  sample.log.peak_device_bytes = 5 << 20;
  sample.log.outside_bytes = 0;
  sample.log.peak_footprint_bytes = 8 << 20;
  const Inputs inputs = sample.inputs();
  const std::string text =
      verdict_section(inputs).at("text").get<std::string>() + text_of_cards(headline_section(inputs));
  EXPECT_NE(text.find("instead of 8.0 MiB (63 %)"), std::string::npos) << text;
  EXPECT_NE(text.find("was 8.0 MiB (63 %)"), std::string::npos) << text;
}

// What a device takes for them is more: only the end of a log, a trace or a plan says how much.
TEST(Figures, APeakIsNotComparedWithTheBytesOfTensors) {
  const std::string start = R"({"kind":"start","budget_bytes":67108864}
{"kind":"memory","device_bytes":62914560,"requested_bytes":66060288}
)";
  const RunLog cut = parse_run_log(start);
  const Inputs inputs{nullptr, nullptr, &cut};
  EXPECT_EQ(make_summary(inputs).find("peak 60.0 MiB for tensors of 63.0 MiB"), 0u) << make_summary(inputs);
  const std::string cards = text_of_cards(headline_section(inputs));
  EXPECT_NE(cards.find("60.0 MiB; for tensors of 63.0 MiB; budget"), std::string::npos) << cards;
  EXPECT_EQ(make_data(inputs).dump().find("instead of"), std::string::npos);
  const RunLog whole = parse_run_log(start + R"({"kind":"end","peak_device_bytes":62914560,)" +
                                     R"("peak_requested_bytes":66060288})" + "\n");
  const std::string verdict = verdict_section({nullptr, nullptr, &whole}).dump();
  EXPECT_NE(verdict.find("It ran in 60.0 MiB for tensors of 63.0 MiB"), std::string::npos) << verdict;
}

// Its log has no end, and it is no program that was killed; the budget was none.
TEST(Figures, OfAProgramThatCouldNotBeManagedNothingIsSaidButThat) {
  Sample sample;
  const RunLog log = parse_run_log(R"log({"kind":"warning","message":"this device's memory cannot be managed"}
{"kind":"not_managed","reason":"64 GiB of addresses are needed (ulimit -v)"}
{"kind":"program_end","exit_code":0,"signal":0}
)log");
  Inputs inputs{&sample.trace, nullptr, &log};
  inputs.budget_bytes = 1 << 20;
  inputs.peak_bytes = 52 << 20;
  inputs.minimum_bytes = 8 << 20;
  EXPECT_EQ(make_summary(inputs), "peak 52.0 MiB, without a budget: device memory could not be managed");
  const Json data = make_data(inputs);
  EXPECT_EQ(data.at("verdict").at("text"),
            "Device memory could not be managed: 64 GiB of addresses are needed (ulimit -v). The program ran without a "
            "budget, and used 52.0 MiB at most.");
  for (const char* wrong : {"killed", "on demand", "--budget", "no end", "not known"}) {
    EXPECT_EQ(data.dump().find(wrong), std::string::npos) << wrong << " in\n" << data.dump(1);
  }
  ASSERT_EQ(data.at("advice").size(), 1u);
  EXPECT_EQ(data.at("advice").at(0).at("command"), "ulimit -v unlimited");
  EXPECT_EQ(data.at("budget"), 0);
  inputs.ending = "exit code 3";
  EXPECT_NE(make_summary(inputs).find("; the program ended with exit code 3"), std::string::npos);
  EXPECT_NE(verdict_section(inputs).dump().find("at most, and ended with exit code 3."), std::string::npos);
}

// A log that was cut short does not say how many there were.
TEST(Figures, MappingCallsAreCountedWhereTheLogEnds) {
  const std::string start = "{\"kind\":\"start\",\"safety\":\"strict\"}\n";
  const RunLog whole = parse_run_log(start + "{\"kind\":\"end\",\"vmm_calls\":58}\n");
  const RunLog cut = parse_run_log(start);
  EXPECT_NE(text_of_cards(headline_section({nullptr, nullptr, &whole})).find("58 memory-mapping calls in all"),
            std::string::npos);
  EXPECT_EQ(text_of_cards(headline_section({nullptr, nullptr, &cut})).find("memory-mapping calls"), std::string::npos);
  EXPECT_NE(text_of(sentences_section({nullptr, nullptr, &whole})).find("That took 58 memory-mapping calls in all."),
            std::string::npos);
  EXPECT_EQ(text_of(sentences_section({nullptr, nullptr, &cut})).find("in all"), std::string::npos);
}

}  // namespace
}  // namespace reprise::report
