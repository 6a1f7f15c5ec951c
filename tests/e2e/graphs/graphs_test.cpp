// Memory that graphs allocate is the driver's: never moved, and none the less of the program's peak and of its budget.
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kInGraph = 4 * kMiB;

class Graphs : public InScratch {
 protected:
  uint64_t device_peak() const { return json::parse(read_file(file("stats"))).at("peak_bytes").get<uint64_t>(); }
  Environment with_stats(const Environment& environment) const {
    return merged(environment, {{"REPRISE_SIM_STATS", file("stats")}, {"REPRISE_SIM_GRANULARITY", "64KiB"}});
  }
  void run_within(const std::string& budget, const Words& arguments = {}) {
    Words argv = joined({built("bin/graphs_program")}, arguments);
    plain_ = well(run(argv, with_stats(simulated_device())));
    plain_peak_ = device_peak();
    managed_ = run(argv, merged(with_stats(preloaded(budget)), {{"REPRISE_RUN_LOG", file("log")}}));
    peak_ = device_peak();
    EXPECT_EQ(managed_.exit_code, 0) << managed_.err;
    EXPECT_EQ(managed_.out, plain_.out) << managed_.err;
    log_ = read_run_log(file("log"));
    end_ = lines_of(log_, "end").at(0);
  }

  Outcome plain_;
  Outcome managed_;
  uint64_t plain_peak_ = 0;
  uint64_t peak_ = 0;
  std::vector<json> log_;
  json end_;
};

TEST_F(Graphs, WhatTheyAllocateIsInThePeakAndInThePercentage) {
  run_within("50%");
  ASSERT_GE(plain_peak_, 12 * kMiB + kInGraph) << "otherwise this test shows nothing";
  EXPECT_EQ(end_["graph_bytes"], kInGraph);
  EXPECT_EQ(end_["outside_bytes"], kInGraph);
  EXPECT_EQ(end_["peak_program_bytes"], plain_peak_);
  EXPECT_EQ(end_["budget_bytes"], plain_peak_ / 2);
  EXPECT_EQ(end_["peak_used_bytes"], peak_) << "as the device has counted";
  const auto unmanaged = lines_of(log_, "unmanaged");
  ASSERT_EQ(unmanaged.size(), 1u);
  EXPECT_EQ(unmanaged[0]["what"], "memory of CUDA graphs");
  EXPECT_EQ(unmanaged[0]["count"], 2);
  EXPECT_EQ(unmanaged[0]["bytes"], kInGraph);
}

// Tensors leave for it: once graphs are there, less is left for all else.
TEST_F(Graphs, WhatTheyAllocateIsTakenFromTheBudget) {
  run_within("9MiB");
  uint64_t least = UINT64_MAX;
  for (const auto& line : lines_of(log_, "memory")) least = line["device_bytes"].get<uint64_t>();
  EXPECT_LE(least + kInGraph, 9 * kMiB) << "at the end";
}

TEST_F(Graphs, SeveralCountTogether) {
  run_within("60%", {"10", "3", "3"});
  EXPECT_EQ(end_["graph_bytes"], 3 * kInGraph);
  EXPECT_EQ(end_["peak_used_bytes"], peak_);
  EXPECT_EQ(lines_of(log_, "unmanaged").at(0)["count"], 6);
}

// What was there at most was gone before the graphs came.
TEST_F(Graphs, APercentageIsOfWhatWasThereAtOnce) {
  run_within("80%", {"6", "4", "1", "5"});
  EXPECT_EQ(plain_peak_, 22 * kMiB) << "otherwise this test shows nothing";
  EXPECT_EQ(end_["peak_program_bytes"], plain_peak_);
  EXPECT_EQ(end_["budget_bytes"], plain_peak_ * 80 / 100);
}

// Of a budget that they pass alone, that is said, and how much of it is theirs.
TEST_F(Graphs, WhereTheyTakeTheBudgetItIsSaid) {
  run_within("30%", {"4", "2", "4"});
  EXPECT_TRUE(has(managed_.err, "CUDA graphs that allocate hold 16.0 MiB of it, which cannot be moved"));
}

TEST_F(Graphs, TheSummaryAndThePageSayWhatTheyHold) {
  Environment environment = with_stats(simulated_device());
  environment.erase("LD_LIBRARY_PATH");
  const Outcome ran = well(run({built("bin/reprise"), "run", "--device", "sim", "--budget", "50%", "-o", file("a.html"),
                                "--", built("bin/graphs_program")},
                               environment));
  EXPECT_TRUE(has(ran.err, "instead of 16.0 MiB, of which CUDA graphs hold 4.0 MiB that cannot be moved"));
  EXPECT_TRUE(has(read_file(file("a.html")), "memory of CUDA graphs"));
}

// ... so that plans of it leave room.
TEST_F(Graphs, ARecordingTellsOfIt) {
  Environment environment = with_stats(simulated_device());
  environment.erase("LD_LIBRARY_PATH");
  ASSERT_EQ(
      run({built("bin/reprise"), "record", "--device", "sim", "-o", file("a.trace"), "--", built("bin/graphs_program")},
          environment)
          .exit_code,
      0);
  const Outcome dumped = run({built("bin/reprise"), "dump", file("a.trace")}, environment);
  EXPECT_TRUE(has(dumped.out, "memory.held_bytes=4194304\n"));
}

}  // namespace
}  // namespace reprise::e2e
