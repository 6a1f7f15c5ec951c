// What is said and advised of the budget: whether it was kept, and what would have been enough.
#include <gtest/gtest.h>

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

// Whatever else is said of it.
TEST(BudgetOfRun, WhetherTheBudgetWasKeptHasOneAnswer) {
  const auto page = [](const std::string& start, const std::string& end) {
    const RunLog log =
        parse_run_log("{\"kind\":\"start\"" + start +
                      "}\n{\"kind\":\"on_demand\",\"cause\":\"no_repetition\",\"reason\":\"why\"}\n" + end);
    return make_data({nullptr, nullptr, &log}).dump();
  };
  const auto has = [](const std::string& text, const char* words) { return text.find(words) != std::string::npos; };
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
      EXPECT_TRUE(has(above, "more than the budget of 6.0 MiB")) << above;
    }
  }
  const std::string cut_off =
      page(in_percent, R"({"kind":"memory","device_bytes":12582912,"requested_bytes":12582912})");
  EXPECT_TRUE(has(cut_off, "managed on demand until then, which hides no transfer.") && !has(cut_off, keeps))
      << cut_off;
}

}  // namespace
}  // namespace reprise::report
