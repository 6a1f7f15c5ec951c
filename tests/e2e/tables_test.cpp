// Kernels that reach tensors through tables of addresses in memory get the right bytes, however the table came about:
// while memory is managed on demand, under plans, and where a buffer cannot be read in time.
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

struct Case {
  const char* way;
  const char* budget;
  const char* words;
};

void PrintTo(const Case& what, std::ostream* out) { *out << what.way << " " << what.budget << " " << what.words; }

class Tables : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    argv_ = {built("bin/table_program"), GetParam().way, "14", GetParam().words};
    plain_ = well(run(argv_, simulated_device()));
  }
  json end_of(const Environment& more) {
    const Outcome managed =
        run(argv_, merged(merged(preloaded(GetParam().budget), {{"REPRISE_RUN_LOG", scratch_.path("log")}}), more));
    EXPECT_EQ(managed.exit_code, 0) << managed.err;
    EXPECT_EQ(managed.out, plain_.out) << managed.err;
    const auto ends = lines_of(read_run_log(scratch_.path("log")), "end");
    return ends.size() == 1 ? ends.back() : json();
  }

  const Scratch scratch_;
  Words argv_;
  Outcome plain_;
};

class AnyTables : public Tables {};
TEST_P(AnyTables, LeadToTheRightBytes) {
  EXPECT_GT(end_of({{"REPRISE_WAIT_FOR_PLAN", "1"}})["offload_bytes"], 0) << "nothing ever left the device";
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const char* way : {"once", "late", "anew", "reused", "deep", "other_stream", "managed", "host_function", "rows",
                          "graph", "host_function_copy"}) {
    cases.push_back({way, "60%", "40000"});
    cases.push_back({way, "85%", "100000"});
  }
  cases.push_back({"large", "60%", "100000"});
  cases.push_back({"large", "70%", "130000"});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Ways, AnyTables, testing::ValuesIn(all_cases()));

// The plan has the tensors that only the table names.
class PlannedTables : public Tables {};
TEST_P(PlannedTables, ArePlanned) {
  const json end = end_of({{"REPRISE_WAIT_FOR_PLAN", "1"}, {"REPRISE_SIM_H2D", "1GiB"}});
  EXPECT_GT(end["iterations_planned"], 4);
  EXPECT_GT(end["buffers_with_addresses"], 0);
}
INSTANTIATE_TEST_SUITE_P(Ways, PlannedTables,
                         testing::Values(Case{"once", "60%", "40000"}, Case{"anew", "60%", "40000"},
                                         Case{"other_stream", "70%", "70000"}));

// A launch of the plan's fails for want of memory: those behind it, which were made while the plan was in force and
// nothing was looked into, are served on demand.
class LeftTables : public testing::TestWithParam<const char*> {};
TEST_P(LeftTables, LeadToTheRightBytes) {
  for (const char* way : {"once", "anew", "other_stream"}) {
    const Words argv = {built("bin/table_program"), way, "24", "40000"};
    const Outcome plain = well(run(argv, simulated_device()));
    for (const int nth : {11, 15, 18, 20}) {
      const Scratch scratch;
      const std::string fault = "launch-of-6gather@" + std::to_string(nth) + "=2";
      const Outcome managed = run(argv, merged(preloaded("60%"), {{"REPRISE_RUN_LOG", scratch.path("log")},
                                                                  {"REPRISE_WAIT_FOR_PLAN", "1"},
                                                                  {"REPRISE_SAFETY", GetParam()},
                                                                  {"REPRISE_SIM_FAIL", fault}}));
      EXPECT_EQ(managed.exit_code, 0) << way << " " << nth << ": " << managed.err;
      EXPECT_EQ(managed.out, plain.out) << way << " " << nth << ": " << managed.err;
      const auto left = lines_of(read_run_log(scratch.path("log")), "divergence");
      EXPECT_GE(left.size(), 1u) << way << " " << nth << ": the plan was never left";
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Safeties, LeftTables, testing::Values("strict", "trusted"));

// The first plan is of iterations whose table was empty. It never lasts, and the next one has the tensors behind it.
TEST(LateTables, ArePlannedAnew) {
  for (const char* budget : {"60%", "75%"}) {
    const Scratch scratch;
    const Words argv = {built("bin/table_program"), "late", "40", "40000"};
    const Outcome plain = run(argv, simulated_device());
    const Outcome managed = well(run(
        argv, merged(preloaded(budget), {{"REPRISE_RUN_LOG", scratch.path("log")}, {"REPRISE_WAIT_FOR_PLAN", "1"}})));
    EXPECT_EQ(managed.out, plain.out) << managed.err;
    const auto ends = lines_of(read_run_log(scratch.path("log")), "end");
    ASSERT_EQ(ends.size(), 1u);
    EXPECT_GT(ends[0]["iterations_planned"], 20) << budget;
    EXPECT_EQ(ends[0]["plans"], 2) << budget;
  }
}

// Reading back gives up on a kernel that waits for the launch that asks; the program goes on.
class HeldBackKernel : public Tables {};
TEST_P(HeldBackKernel, IsNotWaitedForForEver) {
  const json end = end_of({});
  EXPECT_GT(end["buffers_not_scanned"], 0);
  EXPECT_LE(end["buffers_not_scanned"], 6);
}
INSTANTIATE_TEST_SUITE_P(Ways, HeldBackKernel, testing::Values(Case{"held_back", "60%", "40000"}));

// All memory is resident for it, or it is refused.
TEST(OpaqueByName, AKernelOfACollectiveLibraryIsNeverWrong) {
  const Words argv = {built("bin/table_program"), "collective", "9", "40000"};
  const Outcome plain = well(run(argv, simulated_device())), ample = well(run(argv, preloaded("64MiB")));
  EXPECT_EQ(ample.out, plain.out);
  const Outcome tight = run(argv, preloaded("1400KiB"));
  EXPECT_EQ(tight.exit_code, 9) << tight.out;
  EXPECT_TRUE(has(tight.err, "ncclDevKernel_sum needs "));
}

// Without a budget, too: what a recording says of a launch is what a plan of it will know.
TEST(RecordedTables, LeadToTheirTensors) {
  const Scratch scratch;
  for (const char* way : {"once", "anew", "other_stream", "host_function_copy"}) {
    well(run({built("bin/table_program"), way, "6", "20000"},
             merged(simulated_device(), {{"LD_PRELOAD", built("lib/reprise/libreprise.so")},
                                         {"REPRISE_DRIVER", built("lib/sim/libcuda.so.1")},
                                         {"REPRISE_TRACE", scratch.path("trace")}})));
    const Outcome dump = run({built("bin/reprise"), "dump", scratch.path("trace")});
    std::istringstream lines(dump.out);
    int launches = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.find(":gather ") == std::string::npos) continue;
      ++launches;
      EXPECT_EQ(std::count(line.begin(), line.end(), '#'), 7) << way << ": table, sum, and five behind it: " << line;
    }
    EXPECT_EQ(launches, 6) << way;
  }
}

}  // namespace
}  // namespace reprise::e2e
