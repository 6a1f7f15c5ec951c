// Device times from CUPTI: programs on the simulated device, with a libcupti of our own that tells of its work.
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

class Cupti : public InScratch {
 protected:
  Environment with_cupti(const Environment& base, const std::string& report) const {
    Environment made = merged(
        base, {{"REPRISE_ACTIVITY", "cupti"}, {"REPRISE_TEST_CUPTI_REPORT", report}, {"REPRISE_WAIT_FOR_PLAN", "1"}});
    made["LD_LIBRARY_PATH"] = built("lib/fake_cupti") + ":" + made["LD_LIBRARY_PATH"];  // before the stand-in
    return made;
  }
  static Outcome train(const Environment& environment, const std::string& steps) {
    return run({built("bin/chargpt"), "--layers", "2", "--width", "64", "--heads", "4", "--context", "32", "--batch",
                "8", "--seed", "1", "--steps", steps},
               environment);
  }
  static json read(const std::string& path) { return json::parse(read_file(path)); }
};

TEST_F(Cupti, EveryLaunchOfARecordingHasATime) {
  const std::string report = file("report"), trace = file("a.trace");
  Environment environment = with_cupti(preloaded(""), report);
  environment.erase("REPRISE_BUDGET");
  environment["REPRISE_TRACE"] = trace;
  well(train(environment, "4"));
  const std::string page = file("a.json");
  well(run({built("bin/reprise"), "export", trace, "--format", "json", "-o", page}));
  const std::string recorded = run({built("bin/reprise"), "dump", trace}).out;
  EXPECT_TRUE(has(recorded, "activity.source=cupti"));
  size_t ops = 0, times = 0;
  const json exported = read(page);
  for (const json& event : exported.at("trace").at("events")) {
    if (event.at("event") != "op" || event.at("kind") != "launch") continue;
    ++ops;
    if (event.contains("start_ns")) ++times;
  }
  EXPECT_GT(ops, 100u);
  EXPECT_EQ(times, ops);
}

// A recording that has ended costs nothing any more, and leaves CUPTI to others: longer runs make no more records.
TEST_F(Cupti, StopsWhereNothingIsRecorded) {
  uint64_t works[2];
  for (const int run : {0, 1}) {
    const std::string report = file("report");
    well(train(with_cupti(preloaded("50%"), report), run == 0 ? "20" : "120"));
    const json left = read(report);
    EXPECT_EQ(left.at("enabled"), 0);
    EXPECT_EQ(left.at("subscribed"), 0);
    works[run] = left.at("works");
  }
  EXPECT_GT(works[0], 100u);
  EXPECT_LT(works[1], 4 * works[0]);  // six times as many steps; when the loop is found differs on a busy machine
}

// CUPTI hands over no buffer with a record of work that is not complete, and the iteration behind the sampled one runs.
TEST_F(Cupti, APlannedIterationIsMeasuredWhileTheNextOneRuns) {
  Environment environment = with_cupti(preloaded("50%"), file("report"));
  environment["REPRISE_TEST_CUPTI_BUSY"] = "1";
  environment["REPRISE_RUN_LOG"] = file("a.run");
  const Outcome outcome = well(train(environment, "60"));
  const auto overlaps = lines_of(read_run_log(file("a.run")), "overlap");
  ASSERT_FALSE(overlaps.empty()) << outcome.err;
  for (const json& overlap : overlaps) EXPECT_GT(overlap.at("compute_ns"), 0) << overlap;
}

}  // namespace
}  // namespace reprise::e2e
