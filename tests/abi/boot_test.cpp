// The preloaded library in a process of its own: when it starts, when it does not, and how it ends.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "preload/trace/reader.h"

namespace reprise {
namespace {

struct Outcome {
  int status;
  std::string output;
  std::string errors;
  int exit_code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }
};

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class Boot : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/reprise-boot-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    trace_ = folder_ + "/a.trace";
  }
  void TearDown() override { [[maybe_unused]] const int result = std::system(("rm -rf " + folder_).c_str()); }

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
  bool exists(const std::string& path) {
    struct stat status;
    return stat(path.c_str(), &status) == 0;
  }
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

  std::string folder_;
  std::string trace_;
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
  const auto recorded = trace::read_trace(trace_);
  ASSERT_TRUE(recorded.ok()) << recorded.status().message();
  EXPECT_TRUE(recorded.value().ended);
  EXPECT_EQ(count(recorded.value(), 0), 1);  // allocate
  EXPECT_EQ(count(recorded.value(), 1), 1);  // free
  EXPECT_EQ(count(recorded.value(), 2), 1);  // op
  EXPECT_EQ(count(recorded.value(), 3), 1);  // order
  EXPECT_EQ(count(recorded.value(), 4), 1);  // mark
}

TEST_F(Boot, RecordsOnTheSimulatedDevice) {
  const Outcome outcome = run("work", "REPRISE_TRACE=" + trace_, REPRISE_SIM_DRIVER);
  EXPECT_EQ(outcome.exit_code(), 0);
  const auto recorded = trace::read_trace(trace_);
  ASSERT_TRUE(recorded.ok()) << recorded.status().message();
  EXPECT_TRUE(recorded.value().ended);
  EXPECT_EQ(recorded.value().info.at("activity.source"), "sim");
  EXPECT_EQ(recorded.value().activities.size(), 1u);  // when the memset ran
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
  EXPECT_NE(outcome.errors.find("reprise: REPRISE_DRIVER=/nowhere/libcuda.so.1"), std::string::npos) << outcome.errors;
  EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1);
}

TEST_F(Boot, ABadTraceFileDoesNotStopTheProgram) {
  const Outcome outcome = run("work", "REPRISE_TRACE=/nowhere/a.trace");
  EXPECT_EQ(outcome.exit_code(), 0);
  EXPECT_EQ(outcome.output, "output\n");
  EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
}

TEST_F(Boot, AForkedChildLeavesTheRecordingAlone) {
  const Outcome outcome = run("fork", "REPRISE_ACTIVITY=none REPRISE_TRACE=" + trace_);
  EXPECT_EQ(outcome.exit_code(), 0);
  const auto recorded = trace::read_trace(trace_);
  ASSERT_TRUE(recorded.ok()) << recorded.status().message();
  EXPECT_TRUE(recorded.value().ended);
  EXPECT_EQ(count(recorded.value(), 0), 1);  // the parent's alone
}

TEST_F(Boot, ExitWhileThreadsCall) {
  for (int round = 0; round < 5; ++round) {
    const Outcome outcome = run("threads", "REPRISE_ACTIVITY=none REPRISE_TRACE=" + trace_);
    ASSERT_EQ(outcome.exit_code(), 5) << outcome.errors;
    const auto recorded = trace::read_trace(trace_);
    ASSERT_TRUE(recorded.ok()) << recorded.status().message();
    EXPECT_TRUE(recorded.value().tail.ok()) << recorded.value().tail.message();
  }
}

TEST_F(Boot, ASecondProcessDoesNotWriteIntoTheFirstOnesTrace) {
  // The outer process holds its recording while it starts the inner one.
  const Outcome outcome = run("nested", "REPRISE_ACTIVITY=none REPRISE_TRACE=" + trace_);
  EXPECT_EQ(outcome.exit_code(), 0);
  EXPECT_EQ(outcome.output, "output\n");  // the inner one's
  EXPECT_NE(outcome.errors.find("another process"), std::string::npos) << outcome.errors;
  const auto recorded = trace::read_trace(trace_);
  ASSERT_TRUE(recorded.ok()) << recorded.status().message();
  EXPECT_TRUE(recorded.value().ended);
  EXPECT_EQ(count(recorded.value(), 0), 1);
}

TEST_F(Boot, AbortKeepsTheSignalAndAReadableTrace) {
  const Outcome outcome = run("abort", "REPRISE_ACTIVITY=none REPRISE_TRACE=" + trace_);
  // The shell that std::system starts was replaced by the program: its status is the signal itself.
  EXPECT_TRUE(WIFSIGNALED(outcome.status) && WTERMSIG(outcome.status) == SIGABRT) << outcome.status;
  EXPECT_TRUE(trace::read_trace(trace_).ok());
}

TEST_F(Boot, OpeningTheDriverByNameGivesTheLibrary) {
  const Outcome outcome = run("lookup", "");
  EXPECT_EQ(outcome.output, "same " REPRISE_LIBRARY "\n");
}

TEST_F(Boot, ABudgetLeavesNoFilesBehind) {
  const Outcome outcome = run("work", "REPRISE_BUDGET=64MiB", REPRISE_SIM_DRIVER);
  EXPECT_EQ(outcome.exit_code(), 0);
  EXPECT_EQ(outcome.output, "output\n") << outcome.errors;
  EXPECT_EQ(files(), "err\nout\n");
}

}  // namespace
}  // namespace reprise
