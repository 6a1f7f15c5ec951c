// Where an iteration's time went, and what its plan predicted.
#include <gtest/gtest.h>

#include <map>

#include "tests/support/sample.h"
#include "tests/unit/tools/report/sample_inputs.h"
#include "tools/report/report.h"

namespace reprise::report {
namespace {

// Predicted and measured are apart in the same way: kernels, waits by their cause, and what is not known are all of it.
TEST(Time, AnIterationsTimeIsTheSumOfWhatIsNamed) {
  const Sample sample;
  const std::optional<TimeParts> measured = measured_time(sample.inputs());
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->whole_ns, 800u) << "of iteration 1, by its line";
  for (const TimeParts& time : {*measured, predicted_parts(sample.plan)}) {
    uint64_t sum = time.kernels_ns + time.rest_ns;
    for (const WaitSum& one : time.waits) sum += one.ns;
    EXPECT_EQ(sum, time.whole_ns);
  }
  std::map<std::string, Json> rows;
  for (const Json& row : totals_section(sample.inputs())) rows[row.at("label")] = row;
  EXPECT_EQ(rows.at("Sum: this iteration").at("predicted"), rows.at("Time").at("predicted"));
  EXPECT_EQ(rows.at("Sum: this iteration").at("measured"), "800 ns");
  EXPECT_NE(rows.at("Waiting: room had to be made first").at("predicted"), "0 ns");
  EXPECT_EQ(rows.at("Device without work that may run").at("note"),
            "by the host's clock, though work was submitted; measured: mean of 2 planned iterations");
  const std::string said = sentences_section(sample.inputs()).dump();
  EXPECT_NE(said.find("Iteration 1, the one that was measured, took 800 ns: kernels "), std::string::npos) << said;
  for (const Json& bar : time_went_section(sample.inputs())) {
    uint64_t sum = 0;
    for (const Json& part : bar.at("parts")) sum += part.at("ns").get<uint64_t>();
    EXPECT_TRUE(bar.at("name") == "The run" || sum == bar.at("ns").get<uint64_t>()) << bar;
  }
  Sample unhindered;
  for (RunIteration& one : unhindered.log.iterations) one.stall_ns = 0;
  EXPECT_NE(sentences_section(unhindered.inputs()).dump().find("took 800 ns: kernels "), std::string::npos)
      << "it may have been launched late";
  Sample unmeasured;
  unmeasured.log.activities.clear();
  for (const Json& row : totals_section(unmeasured.inputs())) {
    EXPECT_TRUE(row.at("label") != "Kernels" || row.at("measured") == "") << row;
  }
}

// A plan with the run's own kernel times: what it predicts with them is the figure of the page, and what it did before
// is said once.
TEST(Time, APlanPredictsOneFigure) {
  Sample sample;
  Inputs inputs = sample.inputs();
  EXPECT_NE(
      sentences_section(inputs).dump().find("the plan had predicted 750 ns (+8 %), with kernel times as recorded."),
      std::string::npos)
      << sentences_section(inputs).dump(1);
  inputs.whose_times = "of iteration 1 of this run";
  inputs.made_predicted_ns = 700;
  inputs.made_compute_ns = 300;
  const std::string said = sentences_section(inputs).dump();
  EXPECT_NE(said.find("The plan predicts 750 ns with kernel times of iteration 1 of this run; when it was made, with "
                      "kernel times as recorded until then, that was 700 ns. Iteration 1 took 800 ns (+7 %)."),
            std::string::npos)
      << said;
  EXPECT_EQ(said.find("had predicted"), std::string::npos);
  const std::string page = make_data(inputs).dump();
  EXPECT_EQ(page.find("700 ns"), page.rfind("700 ns"));
}

}  // namespace
}  // namespace reprise::report
