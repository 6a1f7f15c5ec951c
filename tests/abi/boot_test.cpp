// The preloaded library in a process of its own: when it starts, when it does not, and how it ends.
#include "preload/trace/reader.h"
#include "tests/support/said.h"
#include "tests/support/test.h"

namespace reprise {
namespace {

struct Outcome {
  int status;
  std::string output;
  std::string errors;
  int exit_code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }
};

class Boot : public testing::Test {
 protected:
  // `environment`: assignments before the program.
  Outcome run(const std::string& what, const std::string& environment,
              const std::string& driver = REPRISE_TEST_DRIVER) {
    const std::string command = "env TMPDIR=" + folder_ + " REPRISE_DRIVER=" + driver + " " + environment +
                                " LD_PRELOAD=" REPRISE_LIBRARY " " REPRISE_VICTIM " " + what + " >" + folder_ +
                                "/out 2>" + folder_ + "/err";
    Outcome outcome{};
    outcome.status = std::system(("exec " + command).c_str());
    outcome.output = read_file(folder_ + "/out");
    outcome.errors = read_file(folder_ + "/err");
    return outcome;
  }
  bool exists(const std::string& path) { return std::filesystem::exists(path); }
  std::string files() {
    std::string result;
    FILE* pipe = popen(("ls " + folder_).c_str(), "r");
    for (int c; (c = fgetc(pipe)) != EOF;) result += static_cast<char>(c);
    pclose(pipe);
    return result;
  }
  int count(const trace::Trace& recorded, size_t kind) {
    int found = 0;
    for (const trace::Event& event : recorded.events) found += event.index() == kind ? 1 : 0;
    return found;
  }

  const Scratch scratch_;
  const std::string folder_ = scratch_.folder();
  const std::string trace_ = scratch_.path("a.trace");
};

TEST_F(Boot, ForwardsWithoutAConfiguration) {
  const Outcome outcome = run("work", "");
  EXPECT_EQ(outcome.exit_code(), 0);
  EXPECT_EQ(outcome.output, "output\n");
  EXPECT_EQ(outcome.errors, "");
}

TEST_F(Boot, Records) {
  const Outcome outcome = run("work", "REPRISE_ACTIVITY=none REPRISE_TRACE=" + trace_);
  EXPECT_EQ(outcome.exit_code(), 0);
  EXPECT_EQ(outcome.output, "output\n");
  EXPECT_EQ(outcome.errors, "");
  const auto recorded = good(trace::read_trace(trace_));
  EXPECT_TRUE(recorded.ended);
  EXPECT_EQ(count(recorded, 0), 1);  // allocate
  EXPECT_EQ(count(recorded, 1), 1);  // free
  EXPECT_EQ(count(recorded, 2), 1);  // op
  EXPECT_EQ(count(recorded, 3), 1);  // order
  EXPECT_EQ(count(recorded, 4), 1);  // mark
}

TEST_F(Boot, RecordsOnTheSimulatedDevice) {
  EXPECT_EQ(run("work", "REPRISE_TRACE=" + trace_, REPRISE_SIM_DRIVER).exit_code(), 0);
  const auto recorded = good(trace::read_trace(trace_));
  EXPECT_TRUE(recorded.ended);
  EXPECT_EQ(recorded.info.at("activity.source"), "sim");
  EXPECT_EQ(recorded.activities.size(), 1u);  // when the memset ran
}

TEST_F(Boot, TheOffSwitchComesFirst) {
  const Outcome outcome = run("work", "REPRISE_DISABLE=1 REPRISE_LOG=nonsense REPRISE_TRACE=" + trace_);
  EXPECT_EQ(outcome.exit_code(), 0);
  EXPECT_EQ(outcome.errors, "");
  EXPECT_FALSE(exists(trace_));
}

TEST_F(Boot, AProgramThatNeverStartsCudaStartsNothing) {
  const Outcome outcome = run("idle", "REPRISE_LOG=nonsense REPRISE_TRACE=" + trace_, "/nowhere/libcuda.so.1");
  EXPECT_EQ(outcome.exit_code(), 3);
  EXPECT_EQ(outcome.errors, "");
  EXPECT_FALSE(exists(trace_));
}

TEST_F(Boot, AMissingDriverIsSaidOnce) {
  const Outcome outcome = run("work", "", "/nowhere/libcuda.so.1");
  EXPECT_EQ(outcome.exit_code(), 20);
  EXPECT_TRUE(has(outcome.errors, "reprise: REPRISE_DRIVER=/nowhere/libcuda.so.1"));
  EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1);
}

TEST_F(Boot, ABadTraceFileDoesNotStopTheProgram) {
  const Outcome outcome = run("work", "REPRISE_TRACE=/nowhere/a.trace");
  EXPECT_EQ(outcome.exit_code(), 0);
  EXPECT_EQ(outcome.output, "output\n");
  EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
}

TEST_F(Boot, AForkedChildLeavesTheRecordingAlone) {
  EXPECT_EQ(run("fork", "REPRISE_ACTIVITY=none REPRISE_TRACE=" + trace_).exit_code(), 0);
  const auto recorded = good(trace::read_trace(trace_));
  EXPECT_TRUE(recorded.ended);
  EXPECT_EQ(count(recorded, 0), 1);  // the parent's alone
}

TEST_F(Boot, ExitWhileThreadsCall) {
  for (int round = 0; round < 5; ++round) {
    const Outcome outcome = run("threads", "REPRISE_ACTIVITY=none REPRISE_TRACE=" + trace_);
    ASSERT_EQ(outcome.exit_code(), 5) << outcome.errors;
    const auto recorded = good(trace::read_trace(trace_));
    EXPECT_TRUE(recorded.tail.ok()) << recorded.tail.message();
  }
}

TEST_F(Boot, ASecondProcessDoesNotWriteIntoTheFirstOnesTrace) {
  // The outer process holds its recording while it starts the inner one.
  const Outcome outcome = run("nested", "REPRISE_ACTIVITY=none REPRISE_TRACE=" + trace_);
  EXPECT_EQ(outcome.exit_code(), 0);
  EXPECT_EQ(outcome.output, "output\n");  // the inner one's
  EXPECT_TRUE(has_cause(outcome.errors, Cause::trace_taken));
  const auto recorded = good(trace::read_trace(trace_));
  EXPECT_TRUE(recorded.ended);
  EXPECT_EQ(count(recorded, 0), 1);
}

TEST_F(Boot, AbortKeepsTheSignalAndAReadableTrace) {
  const Outcome outcome = run("abort", "REPRISE_ACTIVITY=none REPRISE_TRACE=" + trace_);
  // The shell that std::system starts was replaced by the program: its status is the signal itself.
  EXPECT_TRUE(WIFSIGNALED(outcome.status) && WTERMSIG(outcome.status) == SIGABRT) << outcome.status;
  EXPECT_TRUE(trace::read_trace(trace_).ok());
}

TEST_F(Boot, OpeningTheDriverByNameGivesTheLibrary) {
  EXPECT_EQ(run("lookup", "").output, "same " REPRISE_LIBRARY "\n");
}

TEST_F(Boot, ABudgetLeavesNoFilesBehind) {
  const Outcome outcome = run("work", "REPRISE_BUDGET=64MiB", REPRISE_SIM_DRIVER);
  EXPECT_EQ(outcome.exit_code(), 0);
  EXPECT_EQ(outcome.output, "output\n") << outcome.errors;
  EXPECT_EQ(files(), "err\nout\n");
}

}  // namespace
}  // namespace reprise
