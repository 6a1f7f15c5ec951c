// Two runs at once: each has files of its own, or the second one is refused before its program starts.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include "tests/e2e/commands/launcher_test.h"

namespace reprise::e2e {
namespace {

class TwoRuns : public LauncherTest {
 protected:
  Scratch scratch_;
  const std::string trace_ = scratch_.path("a.trace");
};

// The one that comes second is refused before its program starts, and the first one's recording is its own.
TEST_F(TwoRuns, DoNotWriteOneFile) {
  const std::string first = scratch_.path("first.html");
  const std::vector<std::string> run_it = {"run", "--device", "sim", "--budget", "80%", "--trace", trace_, "-o"};
  const auto with_report = [&](const std::string& page) {
    std::vector<std::string> arguments = run_it;
    arguments.push_back(page);
    return arguments;
  };
  auto running = std::async(std::launch::async, [&] { return reprise(with_report(first), trainer("60")); });
  while (!std::filesystem::exists(trace_) &&
         running.wait_for(std::chrono::milliseconds(5)) != std::future_status::ready) {
  }
  const Outcome second = reprise(with_report(scratch_.path("second.html")), trainer("3"));
  EXPECT_EQ(running.wait_for(std::chrono::seconds(0)), std::future_status::timeout) << "it was over";
  const Outcome ended = running.get();
  EXPECT_EQ(second.exit_code, 2) << second.err;
  EXPECT_TRUE(has(second.err, "--trace " + trace_ + ": another run is writing it (process ")) << second.err;
  EXPECT_EQ(second.out, "") << "the program was started";
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("second.html")));
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_FALSE(has(ended.err, "cut short")) << ended.err;
  EXPECT_EQ(reprise({"dump", trace_, "-o", "/dev/null"}).exit_code, 0);
  EXPECT_EQ(reprise(with_report(scratch_.path("third.html")), trainer("3")).exit_code, 0)
      << "nobody writes it any more";
}

// The first run writes its report and its plan behind its program, and neither is lost to the second one.
TEST_F(TwoRuns, DoNotWriteOneReportPlanOrLog) {
  const std::string page = scratch_.path("one.html");
  const std::string plan = scratch_.path("one.plan");
  const std::string log = scratch_.path("one.run");
  const auto with = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"run", "--device", "sim", "--budget", "80%"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  auto running = std::async(std::launch::async, [&] {
    return reprise(with({"--trace", trace_, "-o", page, "--save-plan", plan, "--run-log", log}), trainer("60"));
  });
  while (!std::filesystem::exists(trace_) &&
         running.wait_for(std::chrono::milliseconds(5)) != std::future_status::ready) {
  }
  const std::vector<Outcome> others = {
      reprise(with({"-o", page}), trainer("3")), reprise(with({"-o", "/dev/null", "--save-plan", plan}), trainer("3")),
      reprise({"run", "--device", "sim", "--defragment", "--run-log", log}, trainer("3"))};
  EXPECT_EQ(running.wait_for(std::chrono::seconds(0)), std::future_status::timeout) << "it was over";
  const char* const options[] = {"-o ", "--save-plan ", "--run-log "};
  for (size_t i = 0; i < others.size(); ++i) {
    EXPECT_EQ(others[i].exit_code, 2) << others[i].err;
    EXPECT_TRUE(has(others[i].err, options[i])) << others[i].err;
    EXPECT_TRUE(has(others[i].err, ": another run is writing it (process ")) << others[i].err;
    EXPECT_EQ(others[i].out, "") << "the program was started";
  }
  EXPECT_EQ(running.get().exit_code, 0);
}

// Whatever they are called by default has a name of its own in each of them.
TEST_F(TwoRuns, InOneFolderNeedNoNames) {
  Environment environment = simulated_device();
  environment.erase("LD_LIBRARY_PATH");
  const auto run_it = [&] {
    std::string words = "cd " + scratch_.path("") + " && exec " + built("bin/reprise");
    words += " run --device sim --budget 80% --";
    for (const std::string& word : trainer("20")) words += " " + word;
    return run({"/bin/sh", "-c", words}, environment);
  };
  auto first = std::async(std::launch::async, run_it);
  auto second = std::async(std::launch::async, run_it);
  const Outcome outcomes[] = {first.get(), second.get()};
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "iterations planned; report: ")) << outcome.err;
  }
  EXPECT_GT(std::filesystem::file_size(scratch_.path("reprise-report-chargpt.html")), 0u);
  EXPECT_GT(std::filesystem::file_size(scratch_.path("reprise-report-chargpt-2.html")), 0u);
}

// A program that has Reprise by LD_PRELOAD alone claims nothing beforehand, and keeps its run log all the same.
TEST_F(TwoRuns, LeaveTheRunLogOfAPreloadedProgramAlone) {
  const std::string log = scratch_.path("a.run");
  Environment preloaded = simulated_device();
  preloaded["LD_PRELOAD"] = built("lib/reprise/libreprise.so");
  preloaded["REPRISE_BUDGET"] = "80%";
  preloaded["REPRISE_RUN_LOG"] = log;
  const auto lines_of = [&] { return std::filesystem::exists(log) ? std::filesystem::file_size(log) : 0; };
  auto running = std::async(std::launch::async, [&] { return run(trainer("60"), preloaded); });
  while (lines_of() == 0 && running.wait_for(std::chrono::milliseconds(5)) != std::future_status::ready) {
  }
  const Outcome second = reprise(
      {"run", "--device", "sim", "--budget", "80%", "--run-log", log, "-o", scratch_.path("a.html")}, trainer("3"));
  const Outcome third = run(trainer("3"), preloaded);
  EXPECT_EQ(running.wait_for(std::chrono::seconds(0)), std::future_status::timeout) << "it was over";
  EXPECT_EQ(running.get().exit_code, 0);
  EXPECT_EQ(second.exit_code, 2) << second.err;
  EXPECT_TRUE(has(second.err, "--run-log " + log + ": another run is writing it; wait for its end")) << second.err;
  EXPECT_EQ(second.out, "") << "the program was started";
  EXPECT_TRUE(has(third.err, "is being written by another process; it gets the lines of this one, too")) << third.err;
  const std::string text = read_file(log);
  EXPECT_TRUE(has(text, "--steps 60") && has(text, "--steps 3")) << text.substr(0, 1000);
}

}  // namespace
}  // namespace reprise::e2e
