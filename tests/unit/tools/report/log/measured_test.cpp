// One iteration of a run stands for it, and the link that its plan is for may be another one: what the page says then.
#include "tools/report/log/measured.h"

#include "tests/support/test.h"
#include "tests/unit/tools/report/sample_inputs.h"
#include "tools/report/report.h"
#include "tools/report/view/timeline.h"

namespace reprise::report {
namespace {

// Iterations 2 and later by the plan; iteration 1 has device times.
Sample with_walls(const std::vector<uint64_t>& walls) {
  Sample sample;
  RunIteration one = sample.log.iterations.back();
  sample.log.iterations.resize(2);
  for (const uint64_t wall : walls) {
    one.wall_ns = wall;
    sample.log.iterations.push_back(one);
    ++one.index;
  }
  return sample;
}

void measure_too(RunLog& log, uint64_t iteration, size_t records) {
  const std::vector<RunActivity> first(log.activities.begin(), log.activities.begin() + 3);
  for (size_t i = 0; i < records; ++i) {
    log.activities.push_back(first[i]);
    log.activities.back().iteration = iteration;
  }
}

TEST(Measured, OfSeveralTheOneClosestToTheMedianStandsForTheRun) {
  Sample sample = with_walls({500, 510, 520, 2000});
  EXPECT_EQ(measured_timeline(sample.plan, sample.log).iteration, 1u);
  measure_too(sample.log, 5, 3);
  EXPECT_EQ(measured_timeline(sample.plan, sample.log).iteration, 1u) << "800 is closer to 520 than 2000";
  measure_too(sample.log, 3, 3);
  EXPECT_EQ(measured_timeline(sample.plan, sample.log).iteration, 3u);
  measure_too(sample.log, 4, 2);
  EXPECT_EQ(measured_timeline(sample.plan, sample.log).iteration, 3u) << "of 4 some records were lost";
}

// What it took is not known, and its kernels are not those of an iteration.
TEST(Measured, AnIterationThatLeftItsPlanIsNotTheMeasuredOne) {
  Sample sample = with_walls({500, 510, 520});
  sample.log.divergences = {{5, 2, "_Z4makePf", "evaluate", ""}};
  for (RunActivity& one : sample.log.activities) one.iteration = 5;
  for (const uint32_t vertex : {2u, 3u, 6u}) sample.log.activities.push_back({5, vertex, "compute", 9400, 9600});
  const Inputs inputs = sample.inputs();
  EXPECT_EQ(measured_iteration(sample.log), std::nullopt);
  EXPECT_TRUE(measured_timeline(sample.plan, sample.log).bars.empty());
  EXPECT_EQ(own_times(sample.plan, sample.log).compute_ns, 0u);
  const std::string said = text_of(sentences_section(inputs));
  EXPECT_TRUE(
      has(said, "No whole iteration was measured: device times are of iteration 5, which left the plan at call 2."));
  EXPECT_FALSE(has(said, "which was measured, took"));
  EXPECT_FALSE(has(text_of_cards(cards_section(inputs)), " in iteration "));
  measure_too(sample.log, 3, 3);
  EXPECT_EQ(measured_iteration(sample.log), 3u) << "fewer records than of the one that left, and whole";
  EXPECT_EQ(measured_in_part(sample.log), "");
}

// The last op is a copy, which ran beside a kernel when nothing had to move: so it does with the run's own times, where
// the kernels take as long as recorded and the copy three times that. Kernels that run beside each other all take that
// much longer.
TEST(Measured, CopiesThatRunBesideKernelsDoSoWithTheirOwnTimes) {
  Sample sample = with_walls({500, 510, 520});
  std::vector<plan::Call*> ops;
  for (plan::Call& call : sample.plan.calls) {
    if (call.kind == plan::CallKind::op && !call.inserted) ops.push_back(&call);
  }
  ASSERT_EQ(ops.size(), 4u);
  for (plan::Call* const op : ops) op->duration_ns = 100;
  ops.back()->op = trace::OpKind::copy_host_to_device;
  sample.plan.compute_ns = 300;
  sample.log.planned_launches = 0;
  sample.log.activities.clear();
  for (const plan::Call* const op : ops) {
    sample.log.activities.push_back({1, op->vertex, "compute", 1000, op == ops.back() ? 1300u : 1100u});
  }
  EXPECT_EQ(own_times(sample.plan, sample.log).compute_ns, 300u);
  sample.plan.compute_ns = 200;
  EXPECT_EQ(own_times(sample.plan, sample.log).compute_ns, 300u) << "half of 600";
}

// The program's thread makes it, so no record says what it was of; the link's copies do not follow the device's clock.
TEST(Measured, ACopyWithoutARecordTakesWhatItTookWhenRecorded) {
  Sample sample = with_walls({500, 510, 520});
  sample.log.planned_launches = 0;
  sample.log.activities.clear();
  std::vector<plan::Call*> ops;
  for (plan::Call& call : sample.plan.calls) {
    if (call.kind == plan::CallKind::op && !call.inserted) ops.push_back(&call);
  }
  for (plan::Call* const op : ops) op->duration_ns = 100;
  ops.back()->op = trace::OpKind::copy_device_to_host;
  ops.back()->duration_ns = 600;
  sample.plan.compute_ns = 900;
  for (const plan::Call* const op : ops) {
    if (op != ops.back()) sample.log.activities.push_back({1, op->vertex, "compute", 1000, 1110});
  }
  EXPECT_EQ(own_times(sample.plan, sample.log).compute_ns, 930u);
  sample.log.activities.pop_back();
  EXPECT_EQ(own_times(sample.plan, sample.log).compute_ns, 0u) << "of a third of the kernels nothing is known";
}

// A launch of a graph: what it takes is from its first kernel to its last one, as in a recording.
TEST(Measured, AnOpOfSeveralKernelsTakesAllOfThem) {
  Sample sample = with_walls({500, 510, 520});
  sample.log.planned_launches = 0;
  sample.log.activities.clear();
  uint32_t last = 0;
  uint64_t now = 1000;
  for (plan::Call& call : sample.plan.calls) {
    if (call.kind != plan::CallKind::op || call.inserted) continue;
    call.duration_ns = 300;
    last = call.vertex;
    for (int kernel = 0; kernel < 3; ++kernel, now += 100) {
      sample.log.activities.push_back({1, last, "compute", now, now + 100});
    }
  }
  sample.plan.compute_ns = 1200;
  const OwnTimes own = own_times(sample.plan, sample.log);
  EXPECT_EQ(own.ns[sample.plan.vertices[last].call], 300u);
  EXPECT_EQ(own.compute_ns, 1200u);
  std::erase_if(sample.log.activities, [&](const RunActivity& one) { return one.vertex == last; });
  EXPECT_EQ(own_times(sample.plan, sample.log).compute_ns, 0u) << "of a quarter nothing is known";
}

TEST(Measured, AnIterationOfWhichMostRecordsAreMissingIsNotTheMeasuredOne) {
  Sample sample = with_walls({500, 510, 520});
  ASSERT_TRUE(measured_iteration(sample.log));
  sample.log.planned_launches = 10;
  EXPECT_EQ(measured_iteration(sample.log), std::nullopt);
  EXPECT_EQ(measured_in_part(sample.log), "iteration 1, of which records are missing");
}

// Its figures are of itself, and the page does not pass them off as most iterations'.
TEST(Measured, AnOutlierIsSaidToBeOneWhereverItIsUsed) {
  Sample sample = with_walls({500, 510, 520});
  for (const uint32_t vertex : {2u, 3u, 6u}) sample.log.activities.push_back({1, vertex, "compute", 9400, 9600});
  Inputs inputs = sample.inputs();
  inputs.run_bound_ns = 700;
  const std::string unlike = ", which took 55 % more than the median";
  EXPECT_EQ(the_measured_one(inputs), "iteration 1" + unlike);
  const std::string said = text_of(sentences_section(inputs));
  EXPECT_TRUE(has(said,
                  "Iteration 1 took 800 ns, and the median of the planned ones is 515 ns (+55 %): none that is closer "
                  "to it was measured."));
  EXPECT_TRUE(has(text_of_cards(cards_section(inputs)), "computing alone took 790 ns in iteration 1" + unlike));
  for (const Json& row : totals_section(inputs)) {
    const std::string label = row.at("label");
    if (label != "Bound" && label != "Computing alone" && label != "Sum: this iteration") continue;
    EXPECT_TRUE(has(row.at("note"), unlike)) << row;
  }
  EXPECT_TRUE(has(advice_section(inputs).dump(), "In the measured iteration 1" + unlike + ", computing stood still"));
  EXPECT_TRUE(has(time_went_section(inputs).at(0).at("name"), unlike)) << time_went_section(inputs).dump(1);
  const std::string page = make_data(with_walls({790, 800, 820}).inputs()).dump();
  EXPECT_FALSE(has(page, "than the median")) << "it is like most";
}

class OtherLink : public testing::Test {
 protected:
  void SetUp() override {
    sample_.plan.link = {"", false, 71'000'000, 41'000'000, 10'000, 80'000};
    sample_.log.link_h2d_bytes_per_s = sample_.log.link_d2h_bytes_per_s = 4'100'000'000;
    sample_.log.mode = "replay";
  }
  Inputs inputs() const {
    Inputs inputs = sample_.inputs();
    inputs.recorded_link = sample_.plan.link;
    return inputs;
  }
  std::string said() const { return text_of(sentences_section(inputs())); }

  Sample sample_;
};

TEST_F(OtherLink, APredictionForOneLinkIsNotMeasuredOnAnother) {
  EXPECT_TRUE(has(said(),
                  "note: The plan is for a link of 71.0 MB/s to the device and 41.0 MB/s back (measured), and this run "
                  "was on one of 4.1 GB/s each way, more than a tenth apart: what is predicted for the one is not "
                  "compared with what it took on the other."));
  EXPECT_TRUE(has(said(), "An iteration took 810 ns; the plan had predicted 750 ns on another link, with"));
  EXPECT_FALSE(has(said(), "(+8 %)"));
  EXPECT_FALSE(has(said(), "the bound, which no plan"));
  const Json first = totals_section(inputs()).at(0);
  EXPECT_EQ(first.at("label"), "Link");
  EXPECT_EQ(first.at("predicted"), "71.0 MB/s to the device and 41.0 MB/s back (measured)");
  EXPECT_EQ(first.at("measured"), "4.1 GB/s each way");
  for (const Json& row : totals_section(inputs())) {
    if (row.at("label") != "Bound" && row.at("label") != "Speed against the bound") continue;
    EXPECT_EQ(row.at("measured"), "") << row;
  }
  EXPECT_TRUE(has(time_went_section(inputs()).back().at("name"), ", for a link of 71.0 MB/s"));
  EXPECT_TRUE(has(advice_section(inputs()).dump(), "Plan for the link that it runs on"));
}

TEST_F(OtherLink, AdviceOfTimesThatArePredictedForAnotherLinkIsNotGiven) {
  Inputs inputs = this->inputs();
  inputs.curve = {"reprise", {}, 350, 0, 14 << 20, 12 << 20};
  inputs.curve.points = {{12 << 20, 360, 0}};
  EXPECT_FALSE(has(advice_section(inputs).dump(), "for full speed"));
  EXPECT_TRUE(has(budget_curve_section(inputs).at("times"), ", for a link of 71.0 MB/s"));
  EXPECT_EQ(budget_curve_section(inputs).at("here_link"), "4.1 GB/s each way");
}

TEST_F(OtherLink, OneLinkThatIsMeasuredTwiceIsOne) {
  sample_.log.link_h2d_bytes_per_s = 66'000'000;
  sample_.log.link_d2h_bytes_per_s = 44'000'000;
  EXPECT_FALSE(has(said(), "The plan is for"));
  EXPECT_TRUE(has(said(), "the plan had predicted 750 ns (+8 %)"));
  sample_.log.link_h2d_bytes_per_s = 0;  // not known, as in older logs
  EXPECT_TRUE(has(said(), "the plan had predicted 750 ns (+8 %)"));
}

}  // namespace
}  // namespace reprise::report
