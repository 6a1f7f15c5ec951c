// Programs that allocate no device memory: they come to their end, and what is said of them is that they had none.
#include "tests/e2e/commands/launcher_test.h"

namespace reprise::e2e {
namespace {

class NoMemory : public LauncherTest {
 protected:
  static Words program(const std::string& what) { return {built("bin/reproductions/no_device_memory"), what}; }
  Outcome ran(const Words& words) const {
    return reprise({"run", "--device", "sim", "--budget", "60%", "--run-log", log_, "-o", file("a.html")}, words);
  }
  size_t lines(const std::string& kind) const { return lines_of(read_run_log(log_), kind).size(); }
  // All that reads the log knows that it has an end.
  void expect_ended(const Outcome& outcome, const std::string& what) const {
    for (const Outcome& one : {outcome, reprise({"report", log_, "-o", file("b.html")})}) {
      EXPECT_FALSE(has(one.err, "killed") || has(one.err, "no end")) << what << ": " << one.err;
      EXPECT_TRUE(has(one.err, "no device memory was allocated")) << what;
      EXPECT_FALSE(has(one.err, "that Reprise manages")) << what;
    }
    const auto ends = lines_of(read_run_log(log_), "end");
    ASSERT_EQ(ends.size(), 1u) << what;
    EXPECT_EQ(ends[0].at("peak_device_bytes"), 0u);
    EXPECT_EQ(ends[0].at("exit_code"), outcome.exit_code);
    EXPECT_EQ(lines_of(read_run_log(log_), "on_demand").at(0).at("cause"), "fits");
  }

  const std::string log_ = file("a.run");
};

TEST_F(NoMemory, AProgramThatEndsWellHasAnEnd) {
  for (const char* what : {"look", "launch"}) {
    const Outcome outcome = well(ran(program(what)));
    expect_ended(outcome, what);
    EXPECT_EQ(lines("start"), std::string(what) == "look" ? 0u : 1u) << "who only looks is no program of the run";
  }
}

TEST_F(NoMemory, OneThatHasOtherMemoryIsToldSo) {
  EXPECT_TRUE(has(well(ran(program("managed"))).err, "no device memory was allocated that Reprise manages"));
  EXPECT_EQ(lines("start"), 1u);
  EXPECT_EQ(lines_of(read_run_log(log_), "unmanaged").at(0).at("bytes"), 1u << 20);
}

TEST_F(NoMemory, OneThatFailsIsToldWithItsCode) {
  const Outcome outcome = ran(program("fail"));
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_TRUE(has(outcome.err, "the program ended with exit code 3"));
  EXPECT_EQ(lines("end"), 1u);
}

// Nothing of them but how they ended, which the launcher knows.
TEST_F(NoMemory, OneThatLeavesOrIsKilledIsToldAsWhatItDid) {
  EXPECT_TRUE(has(well(ran(program("leave"))).err, "exit code 0, without its exit handlers"));
  EXPECT_EQ(lines_of(read_run_log(log_), "program_end").at(0).at("exit_code"), 0);
  EXPECT_FALSE(has(well(reprise({"report", log_, "-o", file("b.html")})).err, "killed"));
  EXPECT_TRUE(has(ran(program("kill")).err, "signal 9")) << "and this one was killed";
}

// The log is of the one that has memory, and there is no other.
TEST_F(NoMemory, WhoOnlyLooksAndStartsOthersIsNotShownBesideThem) {
  std::string script = program("look")[0] + " look";
  for (const std::string& word : trainer("6")) script += (word == trainer("6")[0] ? "; " : " ") + word;
  const Outcome outcome = well(ran({"/bin/sh", "-c", script}));
  EXPECT_EQ(lines("start"), 1u);
  EXPECT_FALSE(has(outcome.err, "programs used the device"));
  EXPECT_FALSE(has(outcome.err, "no device memory"));
}

TEST_F(NoMemory, AReplayIsToldWhatCameOfItsPlan) {
  const std::string trace = file("a.trace"), plan = file("a.plan");
  well(reprise({"record", "--device", "sim", "-o", trace}, trainer("6")));
  well(reprise({"plan", trace, "--budget", "60%", "-o", plan}));
  const Outcome outcome =
      reprise({"replay", "--device", "sim", "--plan", plan}, {"/bin/sh", "-c", program("look")[0] + " look"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(has_cause(outcome.err, Cause::nothing_allocated));
  EXPECT_FALSE(has(outcome.err, "no CUDA call"));
}

}  // namespace
}  // namespace reprise::e2e
