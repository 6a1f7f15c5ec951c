// The one account of device memory: what the program holds beside managed memory counts towards budgets and
// percentages, in runs, recordings, plans and pages alike; and the device itself counts no other bytes. What is said to
// be free can be had.
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class Account : public InScratch {
 protected:
  static Words program(const std::string& name, const Words& arguments) {
    return joined({built("bin/reproductions/" + name)}, arguments);
  }
  Environment device(const Environment& more = {}) const {
    return merged({{"REPRISE_SIM_STATS", file("stats")},
                   {"REPRISE_SIM_GRANULARITY", "2MiB"},
                   {"REPRISE_SIM_TWINS", built("bin/reproductions/twins.so")}},
                  more);
  }
  uint64_t device_peak() const { return read_stats(file("stats")).at("peak_bytes").get<uint64_t>(); }
  void run_plain(const Words& argv, const Environment& more = {}) {
    plain_ = well(run(argv, merged(simulated_device(), device(more))));
    plain_peak_ = device_peak();
  }
  void run_managed(const Words& argv, Environment more) {
    const std::string budget = more.count("REPRISE_BUDGET") != 0 ? more["REPRISE_BUDGET"] : "";
    Environment environment = merged(merged(preloaded(budget), device(more)), {{"REPRISE_RUN_LOG", file("log")}});
    if (budget.empty()) environment.erase("REPRISE_BUDGET");
    managed_ = run(argv, environment);
    peak_ = device_peak();
    log_ = read_run_log(file("log"));
    const auto ends = lines_of(log_, "end");
    end_ = ends.empty() ? json::object() : ends[0];
  }
  // Both, and what holds of each run.
  void run_within(const std::string& budget, const Words& argv, const Environment& more = {}) {
    run_plain(argv);
    run_managed(argv, merged(more, {{"REPRISE_BUDGET", budget}}));
    EXPECT_EQ(managed_.exit_code, 0) << managed_.err;
    EXPECT_EQ(managed_.out, plain_.out) << managed_.err;
    EXPECT_EQ(end_["peak_used_bytes"], peak_) << "as the device has counted";
    EXPECT_EQ(end_["peak_program_bytes"], plain_peak_) << "as the device has counted without us";
    EXPECT_LE(peak_, end_["budget_bytes"].get<uint64_t>());
  }
  uint64_t unmanaged(const std::string& what) const {
    for (const auto& line : lines_of(log_, "unmanaged")) {
      if (line["what"] == what) return line["bytes"].get<uint64_t>();
    }
    return 0;
  }

  Outcome plain_;
  Outcome managed_;
  uint64_t plain_peak_ = 0;
  uint64_t peak_ = 0;
  std::vector<json> log_;
  json end_;
};

struct Beside {
  const char* kind;
  const char* what;
};
class BesideKinds : public Account, public testing::WithParamInterface<Beside> {};

TEST_P(BesideKinds, CountsTowardsABudget) {
  run_within("40MiB", program("beside", {GetParam().kind}));
  EXPECT_EQ(plain_peak_, 56 * kMiB) << "otherwise this test shows nothing";
  EXPECT_EQ(unmanaged(GetParam().what), 24 * kMiB);
  EXPECT_EQ(end_["outside_bytes"], 24 * kMiB);
}

// As in a container: nobody tells what this process holds.
TEST_P(BesideKinds, CountsWhereNvmlTellsNothing) {
  run_within("40MiB", program("beside", {GetParam().kind}), {{"REPRISE_SIM_PROCESSES", "0"}});
}

INSTANTIATE_TEST_SUITE_P(All, BesideKinds,
                         testing::Values(Beside{"first", "cuMemCreate"}, Beside{"after", "cuMemCreate"},
                                         Beside{"managed", "cuMemAllocManaged"},
                                         Beside{"pool", "memory of a pool of its own kind"}),
                         [](const auto& instance) { return std::string(instance.param.kind); });

TEST_F(Account, WhatIsGivenBackBeforeTensorsComeIsNotAddedToThem) {
  run_within("80%", program("beside", {"given_back"}));
  EXPECT_EQ(plain_peak_, 32 * kMiB);
  run_managed(program("beside", {"given_back"}), {{"REPRISE_BUDGET", "50%"}});
  EXPECT_EQ(managed_.out, plain_.out) << managed_.err;
  EXPECT_EQ(peak_, 24 * kMiB);
  EXPECT_EQ(end_["peak_used_bytes"], peak_);
  EXPECT_TRUE(has_cause(managed_.err, Cause::used_before)) << "24 MiB are above 16: ";
}

TEST_F(Account, AContextCounts) {
  run_plain(program("beside", {"after"}), {{"REPRISE_SIM_CONTEXT_BYTES", "6MiB"}});
  run_managed(program("beside", {"after"}), {{"REPRISE_SIM_CONTEXT_BYTES", "6MiB"}, {"REPRISE_BUDGET", "46MiB"}});
  EXPECT_EQ(managed_.out, plain_.out) << managed_.err;
  EXPECT_EQ(plain_peak_, 62 * kMiB);
  EXPECT_EQ(end_["peak_program_bytes"], plain_peak_);
  EXPECT_EQ(end_["peak_used_bytes"], peak_);
  EXPECT_LE(peak_, 46 * kMiB);
}

TEST_F(Account, WhatTheBudgetCannotHoldIsRefusedWithALine) {
  for (const char* kind : {"first", "after", "pool"}) {
    run_managed(program("beside", {kind, "48"}), {{"REPRISE_BUDGET", "40MiB"}});
    EXPECT_EQ(managed_.exit_code, 3) << kind << managed_.err;
    EXPECT_LE(peak_, 40 * kMiB) << kind;
    const auto shortages = lines_of(log_, "shortage");
    ASSERT_EQ(shortages.size(), 1u) << kind;
    EXPECT_EQ(shortages[0]["needed_bytes"], 48 * kMiB);
    EXPECT_TRUE(has(managed_.err, shortages[0]["call"].get<std::string>()));
  }
}

// The driver pages it, so that it is never refused. Where nothing is left that could give way for it, the line at the
// end and the page say so, whatever has failed meanwhile, and whether any other memory was ever there.
TEST_F(Account, ManagedMemoryAboveTheBudgetIsTold) {
  const Environment small = {{"REPRISE_BUDGET", "20MiB"}};
  for (const bool alone : {false, true}) {
    const auto argv = program("beside", alone ? Words{"managed", "24", "0", "0"} : Words{"managed", "24"});
    run_managed(argv, small);
    EXPECT_EQ(managed_.exit_code, alone ? 0 : 3) << managed_.err;
    EXPECT_EQ(peak_, 24 * kMiB);
    EXPECT_EQ(end_["peak_used_bytes"], peak_);
    EXPECT_EQ(end_["outside_bytes"], peak_);
    EXPECT_TRUE(has_cause(managed_.err, Cause::used_before)) << managed_.err;
    EXPECT_TRUE(has(managed_.err, alone ? "ask for at least 24.0 MiB" : "ask for at least 28.0 MiB")) << managed_.err;
    const Outcome launched =
        reprise({"run", "--device", "sim", "--budget", "20MiB", "-o", file("a.html")}, argv, device());
    EXPECT_FALSE(has(launched.err, "0 B of device memory")) << launched.err;
    const std::string page = read_file(file("a.html"));
    EXPECT_TRUE(has(page, "Device memory reached 24.0 MiB, above the budget of 20.0 MiB")) << launched.err;
    EXPECT_FALSE(has(page, "never exceeded"));
  }
}

// One meaning of a percentage from the recording to the replay.
TEST_F(Account, APlanLeavesRoomForIt) {
  for (const char* kind : {"first", "managed"}) {
    const auto argv = program("beside", {kind});
    run_plain(argv);
    const std::string trace = file("a.trace"), plan = file("a.plan");
    ASSERT_EQ(reprise({"record", "--device", "sim", "-o", trace}, argv, device()).exit_code, 0) << kind;
    const Outcome planned = reprise({"plan", trace, "--budget", "60%", "-o", plan}, {}, device());
    ASSERT_EQ(planned.exit_code, 0) << kind << planned.err;
    run_managed(argv, {{"REPRISE_PLAN", plan}});
    EXPECT_EQ(managed_.exit_code, 0) << kind << managed_.err;
    EXPECT_EQ(managed_.out, plain_.out) << kind;
    EXPECT_EQ(end_["budget_bytes"], 56 * kMiB * 60 / 100) << kind;
    EXPECT_GE(end_["iterations_planned"], 8) << kind << managed_.err;
    EXPECT_EQ(end_["peak_used_bytes"], peak_) << kind;
    EXPECT_LE(peak_, 56 * kMiB * 60 / 100) << kind;
  }
}

TEST_F(Account, ThePageOfARecordingListsIt) {
  const std::string page = file("a.html");
  well(reprise({"record", "--device", "sim", "-o", file("a.trace")}, program("beside", {"after"}), device()));
  well(reprise({"report", file("a.trace"), "-o", page}, {}, device()));
  EXPECT_TRUE(has(read_file(page), R"("what":"cuMemCreate","count":1,"bytes":25165824)"));
}

TEST_F(Account, GraphsTakeTheRoomOfWhatNoLaunchNeeds) {
  const auto argv = program("graph_memory", {});
  for (const char* budget : {"40MiB", "48MiB", "54MiB"}) {
    run_within(budget, argv);
    EXPECT_EQ(plain_peak_, 56 * kMiB);
  }
  run_within("108MiB", program("graph_memory", {"16", "8", "4"}));
}

TEST_F(Account, GraphsTakeItOnADeviceThatIsNoLarger) {
  const auto argv = program("graph_memory", {});
  run_plain(argv, {{"REPRISE_SIM_MEMORY", "60MiB"}});
  run_managed(argv, {{"REPRISE_SIM_MEMORY", "60MiB"}, {"REPRISE_BUDGET", "48MiB"}});
  EXPECT_EQ(managed_.out, plain_.out) << managed_.err;
  EXPECT_LE(peak_, 48 * kMiB);
}

TEST_F(Account, WhatIsRefusedInACaptureIsNamed) {
  const auto argv = program("graph_memory", {"4", "16"});
  run_managed(argv, {{"REPRISE_BUDGET", "48MiB"}});
  EXPECT_EQ(managed_.exit_code, 3);
  EXPECT_TRUE(has(managed_.err, "a captured cuMemAllocAsync needs 4.0 MiB of device memory"));
  EXPECT_LE(peak_, 48 * kMiB);
  run_managed(argv, {{"REPRISE_BUDGET", "90%"}, {"REPRISE_SIM_MEMORY", "60MiB"}});
  EXPECT_EQ(managed_.exit_code, 3);
  EXPECT_TRUE(has(managed_.err, "a captured cuMemAllocAsync needs 4.0 MiB of device memory"));
}

TEST_F(Account, WhatIsSaidToBeFreeCanBeHad) {
  for (const char* memory : {"4GiB", "90MiB"}) {
    for (const char* layers : {"8"}) {
      for (const char* tenths : {"9", "10"}) {
        const auto argv = program("sized_by_free", {layers, tenths});
        run_plain(argv, {{"REPRISE_SIM_MEMORY", memory}});
        run_managed(argv, {{"REPRISE_SIM_MEMORY", memory}, {"REPRISE_BUDGET", "100MiB"}});
        EXPECT_EQ(managed_.exit_code, 0) << memory << layers << tenths << managed_.err;
        EXPECT_EQ(managed_.out, plain_.out) << managed_.err;
        EXPECT_LE(peak_, 100 * kMiB);
      }
    }
  }
}

// A program sizes itself alike when it is recorded, and when its plan is played.
TEST_F(Account, TheSameIsFreeInARecordingAndUnderItsPlan) {
  const auto argv = program("sized_by_free", {"8", "9", "ask"});
  const Environment small = {{"REPRISE_SIM_MEMORY", "128MiB"}};
  run_plain(argv, small);
  const std::string trace = file("a.trace"), plan = file("a.plan");
  EXPECT_EQ(reprise({"record", "--device", "sim", "-o", trace}, argv, device(small)).out, plain_.out);
  well(reprise({"plan", trace, "--budget", "60%", "-o", plan}, {}, device()));
  run_managed(argv, merged(small, {{"REPRISE_PLAN", plan}}));
  EXPECT_EQ(managed_.out, plain_.out) << managed_.err;
  EXPECT_GE(end_["iterations_planned"], 8);
  run_managed(argv, merged(small, {{"REPRISE_BUDGET", "60%"}}));
  EXPECT_EQ(managed_.out, plain_.out) << managed_.err;
}

}  // namespace
}  // namespace reprise::e2e
