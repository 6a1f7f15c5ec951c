// Where an iteration's time went, and what its plan predicted.
#include "tests/support/sample.h"
#include "tests/support/test.h"
#include "tests/unit/tools/report/sample_inputs.h"
#include "tools/report/report.h"
#include "tools/report/view/timeline.h"
#include "tools/report/view/waits.h"

namespace reprise::report {
namespace {

// Predicted and measured time have the same parts, which add up: kernels, waits by their cause, and the unknown rest.
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
  EXPECT_TRUE(has(sentences_section(sample.inputs()).dump(), "Iteration 1, which was measured, took 800 ns: kernels "));
  for (const Json& bar : time_went_section(sample.inputs())) {
    uint64_t sum = 0;
    for (const Json& part : bar.at("parts")) sum += part.at("ns").get<uint64_t>();
    EXPECT_TRUE(bar.at("name") == "The run" || sum == bar.at("ns").get<uint64_t>()) << bar;
  }
  Sample unhindered;
  for (RunIteration& one : unhindered.log.iterations) one.stall_ns = 0;
  EXPECT_TRUE(has(sentences_section(unhindered.inputs()).dump(), "took 800 ns: kernels "))
      << "it may have been launched late";
  Sample unmeasured;
  unmeasured.log.activities.clear();
  for (const Json& row : totals_section(unmeasured.inputs())) {
    EXPECT_TRUE(row.at("label") != "Kernels" || row.at("measured") == "") << row;
  }
}

uint64_t ns_of(const TimeParts& time, const std::string& cause) {
  for (const WaitSum& one : time.waits) {
    if (one.what == cause) return one.ns;
  }
  return 0;
}

// What the run log counts of the iteration, 300 ns, and its waits by cause are one figure: device times show 200 ns of
// them until the offload ends, and how long an op came late, but neither by whom nor what was before the first kernel.
TEST(Time, AnIterationsWaitsAreWhatTheRunLogCounts) {
  Sample sample;
  const auto measured = [&](uint64_t stall_ns) {
    sample.log.iterations.at(1).stall_ns = stall_ns;
    return *measured_time(sample.inputs());
  };
  TimeParts time = measured(300);
  EXPECT_EQ(ns_of(time, "room had to be made first"), 200u);
  EXPECT_EQ(ns_of(time, "launched late by the replay"), 10u);
  EXPECT_EQ(ns_of(time, "launched late by the program"), 0u);
  EXPECT_EQ(ns_of(time, "before the first kernel"), 90u);
  EXPECT_EQ(time.rest_ns, 310u);
  time = measured(204);
  EXPECT_EQ(ns_of(time, "launched late by the replay"), 4u);
  EXPECT_EQ(ns_of(time, "launched late by the program"), 6u);
  EXPECT_EQ(ns_of(time, "before the first kernel"), 0u);
  EXPECT_EQ(time.rest_ns, 400u);
  time = measured(0);
  EXPECT_EQ(ns_of(time, "room had to be made first"), 200u);
  EXPECT_EQ(ns_of(time, "launched late by the program"), 10u);
  const std::string said = sentences_section(Sample().inputs()).dump();
  EXPECT_TRUE(has(said,
                  "The device waited during 38.3 % of the planned iterations' time, and during 37.5 % of one that was "
                  "measured: work was submitted"));
}

// Each part of the time has one name, in the table as in the lists of waits: by the program and by the replay are not
// beside "by the program or the replay". What a plan predicts to come late is the replay's, which maps.
TEST(Time, CausesOfWaitingArePartsOfOneWhole) {
  Sample sample;
  sample.log.iterations.at(1).stall_ns = 204;
  sample.plan.vertices.at(6).predicted_start_ns += 3;  // behind its reload
  sample.plan.vertices.at(6).predicted_end_ns += 3;
  std::set<std::string> causes;
  for (const Json& row : totals_section(sample.inputs())) {
    const std::string label = row.at("label");
    EXPECT_TRUE(label.find("Waiting: ") != 0 || causes.insert(label.substr(9)).second) << label;
  }
  EXPECT_EQ(causes, (std::set<std::string>{"room had to be made first", "a tensor was away, and is needed",
                                           "launched late by the program", "launched late by the replay"}));
  EXPECT_EQ(ns_of(predicted_parts(sample.plan), "a tensor was away, and is needed"), 200u);
  EXPECT_EQ(ns_of(predicted_parts(sample.plan), "launched late by the replay"), 3u);
  const Json waits = waits_section(sample.inputs());
  uint64_t sum = 0;
  for (const Json& one : waits.at("by_decision")) {
    EXPECT_EQ(causes.count(one.at("what")), 1u) << one;
    sum += one.at("ns").get<uint64_t>();
  }
  EXPECT_EQ(sum, waits.at("total_ns").get<uint64_t>());
}

// The first reload of an iteration may still run when the next one has begun.
TEST(Time, WhatReachesIntoTheNextPredictedIterationIsWaitedForThere) {
  plan::Plan plan = tools::test::sample_plan();
  for (plan::Vertex& one : plan.vertices) {
    if (one.kind != plan::VertexKind::op) continue;
    one.predicted_start_ns += 60;
    one.predicted_end_ns += 60;
  }
  plan.predicted_ns = 810;
  uint32_t late = 0;
  while (plan.vertices.at(late).kind != plan::VertexKind::reload) ++late;
  plan.vertices.at(late).predicted_end_ns = 870;
  plan.vertices.at(0).predecessors = {{late, plan::EdgeKind::memory, 1}};
  const Wait first = waits_of(plan, predicted_timeline(plan)).front();
  EXPECT_EQ(first.time.end_ns - first.time.start_ns, 60u);
  EXPECT_EQ(first.reason, "reload tensor 2 (4.0 MiB)");
}

// A reload may run beside kernels of the iteration before, of which nothing is known here: an iteration takes as long
// as the run log says, until its last kernel ends.
TEST(Time, AnIterationDoesNotWaitWhileTheOneBeforeRuns) {
  Sample sample;
  uint32_t reload = 0;
  while (sample.plan.vertices.at(reload).kind != plan::VertexKind::reload) ++reload;
  RunActivity early = sample.log.activities.front();
  early.vertex = reload;
  early.start_ns -= 1000;
  early.end_ns = early.start_ns + 10;
  sample.log.activities.push_back(early);
  const Timeline timeline = measured_timeline(sample.plan, sample.log);
  EXPECT_EQ(timeline.begin_ns, 600u);
  EXPECT_EQ(waits_of(sample.plan, timeline).front().time.start_ns, 600u);
  EXPECT_EQ(waits_of(sample.plan, timeline).front().time.end_ns, 1000u);
  EXPECT_EQ(measured_time(sample.inputs())->rest_ns, 0u);
}

// A plan with the run's own kernel times: what it predicts with them is the figure of the page, and what it did before
// is said once.
TEST(Time, APlanPredictsOneFigure) {
  Sample sample;
  Inputs inputs = sample.inputs();
  EXPECT_TRUE(
      has(sentences_section(inputs).dump(), "the plan had predicted 750 ns (+8 %), with kernel times as recorded."));
  inputs.whose_times = "of iteration 1 of this run";
  inputs.made_predicted_ns = 700;
  inputs.made_compute_ns = 300;
  const std::string said = sentences_section(inputs).dump();
  EXPECT_TRUE(has(said,
                  "The plan predicts 750 ns with kernel times of iteration 1 of this run; when it was made, with "
                  "kernel times as recorded until then, that was 700 ns. Iteration 1 took 800 ns (+7 %)."));
  EXPECT_FALSE(has(said, "had predicted"));
  const std::string page = make_data(inputs).dump();
  EXPECT_EQ(page.find("700 ns"), page.rfind("700 ns"));
}

// What Reprise moves on demand is in no recording, and "Moved in all" has it.
TEST(Time, CopiesOfARecordingAreSaidToBeTheProgramsOwn) {
  Sample sample;
  const auto note = [](const Inputs& inputs) { return timelines_section(inputs).back().value("note", ""); };
  EXPECT_EQ(note({&sample.trace}), "") << "without a budget there are no others";
  sample.log.moved_bytes = 5 << 20;
  EXPECT_EQ(note({&sample.trace, nullptr, &sample.log}),
            "All copies here are the program's own: those that Reprise made, 5.0 MiB in this run, are not recorded.");
  sample.trace.info["memory.managed"] = "1";
  EXPECT_EQ(note({&sample.trace}), "All copies here are the program's own: those that Reprise made are not recorded.");
  EXPECT_FALSE(timelines_section(sample.inputs()).front().contains("note")) << "a plan has both";
}

}  // namespace
}  // namespace reprise::report
