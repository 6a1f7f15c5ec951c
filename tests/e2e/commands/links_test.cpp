// How fast the link is that a plan is made for: recordings measure it, and where nobody has, that is said.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

using nlohmann::json;

constexpr double kMiB = 1 << 20;

class Links : public testing::Test {
 protected:
  static Environment device(const std::string& to_device, const std::string& to_host) {
    return merged(simulated_device(),
                  {{"REPRISE_SIM_GRANULARITY", "16KiB"}, {"REPRISE_SIM_H2D", to_device}, {"REPRISE_SIM_D2H", to_host}});
  }
  static Outcome reprise(std::vector<std::string> arguments, const Environment& environment = {}) {
    arguments.insert(arguments.begin(), built("bin/reprise"));
    Environment launcher = environment;
    launcher.erase("LD_LIBRARY_PATH");
    return run(arguments, launcher);
  }
  Outcome record(const std::string& trace, const Environment& environment, const std::vector<std::string>& program) {
    std::vector<std::string> arguments = {"record", "--device", "sim", "-o", file(trace), "--"};
    arguments.insert(arguments.end(), program.begin(), program.end());
    return reprise(arguments, environment);
  }
  // The value of an info key of a trace; 0: it has none.
  double info(const std::string& trace, const std::string& key) const {
    const std::string text = reprise({"dump", file(trace)}).out;
    const size_t at = text.find("info " + key + "=");
    return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + key.size() + 6, nullptr);
  }
  std::string file(const std::string& name) const { return scratch_.path(name); }

  Scratch scratch_;
};

// A busy host makes the simulated link slower, never faster.
void expect_about(double value, double wanted) {
  EXPECT_LT(value, 1.1 * wanted);
  EXPECT_GT(value, 0.3 * wanted);
}

TEST_F(Links, ARecordingHasTheLinkThatItWasMadeOn) {
  const std::vector<std::string> program = small_trainer(3, {"--batch", "8"});
  const Environment slow = device("45MiB", "35MiB");
  const Outcome plain = run(program, slow);
  const Outcome recorded = record("a.trace", slow, program);
  ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
  EXPECT_EQ(recorded.out, plain.out);
  expect_about(info("a.trace", "link.h2d_bytes_per_s"), 45 * kMiB);
  expect_about(info("a.trace", "link.d2h_bytes_per_s"), 35 * kMiB);
  EXPECT_GT(info("a.trace", "link.latency_ns"), 0);
  EXPECT_GT(info("a.trace", "vmm.remap_ns_per_chunk"), 0);
}

// Threads that never rest, so many to a core: where the simulated device's threads get a core late.
class BusyHost {
 public:
  explicit BusyHost(unsigned threads) {
    for (unsigned i = 0; i < threads; ++i) {
      threads_.emplace_back([this] {
        while (!over_.load(std::memory_order_relaxed)) {
        }
      });
    }
  }
  ~BusyHost() {
    over_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  BusyHost(const BusyHost&) = delete;
  BusyHost& operator=(const BusyHost&) = delete;

 private:
  std::atomic<bool> over_{false};
  std::vector<std::thread> threads_;
};

// It had a thirtieth of its link: small copies alone were tried, as one late try after the other had used up the time.
TEST_F(Links, ABusyHostDoesNotMakeAFastLinkSlow) {
  const double fast = 16.0 * 1024 * kMiB;
  const BusyHost busy(8 * std::max(1u, std::thread::hardware_concurrency()));
  for (int run = 0; run < 3; ++run) {
    const Outcome recorded = record("a.trace", device("16GiB", "16GiB"), small_trainer(1));
    ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
    expect_about(info("a.trace", "link.h2d_bytes_per_s"), fast);
    expect_about(info("a.trace", "link.d2h_bytes_per_s"), fast);
  }
}

TEST_F(Links, SoHasOneWithoutTheLauncher) {
  const std::vector<std::string> program = small_trainer(3);
  Environment environment = merged(preloaded(""), {{"REPRISE_SIM_H2D", "200MiB"},
                                                   {"REPRISE_SIM_D2H", "90MiB"},
                                                   {"REPRISE_SIM_STATS", file("stats.json")},
                                                   {"REPRISE_TRACE", file("a.trace")}});
  environment.erase("REPRISE_BUDGET");
  const Outcome recorded = run(program, environment);
  ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
  EXPECT_EQ(recorded.err.find("reprise"), std::string::npos) << recorded.err;
  expect_about(info("a.trace", "link.h2d_bytes_per_s"), 200 * kMiB);
  expect_about(info("a.trace", "link.d2h_bytes_per_s"), 90 * kMiB);
  const json stats = read_stats(file("stats.json"));
  EXPECT_EQ(stats["create_calls"], stats["release_calls"]);
  EXPECT_EQ(stats["map_calls"], stats["unmap_calls"]);
}

// What is refused to Reprise is not refused to the program.
TEST_F(Links, WithoutMemoryForItNothingIsMeasuredAndTheProgramRuns) {
  const std::vector<std::string> program = small_trainer(3);
  const Environment full = merged(device("1GiB", "1GiB"), {{"REPRISE_SIM_FAIL", "shim.cuMemCreate=2"}});
  const Outcome recorded = record("a.trace", full, program);
  ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
  EXPECT_EQ(recorded.out, run(program, device("1GiB", "1GiB")).out);
  EXPECT_EQ(info("a.trace", "link.h2d_bytes_per_s"), 0);
}

// Old recordings, and those of a device that had no chunk free.
TEST_F(Links, WhereNobodyHasMeasuredTheLinkThatIsSaidAndHowToDoIt) {
  const std::string assumed = "does not say how fast the link is, and 24.0 GB/s each way are assumed; record again";
  const Environment unmeasured = merged(device("1GiB", "1GiB"), {{"REPRISE_SIM_FAIL", "shim.cuMemCreate=2"}});
  ASSERT_EQ(record("old.trace", unmeasured, small_trainer(4)).exit_code, 0);
  const Outcome planned = reprise({"plan", file("old.trace"), "--budget", "70%", "-o", file("old.plan")});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_NE(planned.err.find(file("old.trace") + " " + assumed), std::string::npos) << planned.err;
  const Outcome quiet = reprise({"plan", file("old.trace"), "--budget", "70%", "-o", file("quiet.plan"), "--quiet"});
  EXPECT_EQ(quiet.err, "");
  const Outcome simulated =
      reprise({"simulate", file("old.trace"), "--budget", "70%", "--no-fluid", "--html", file("s.html")});
  EXPECT_NE(simulated.err.find(assumed), std::string::npos) << simulated.err;
  EXPECT_NE(read_file(file("s.html")).find(assumed), std::string::npos);
  for (const std::vector<std::string>& files :
       {std::vector<std::string>{file("old.trace")}, {file("old.plan")}, {file("old.trace"), file("old.plan")}}) {
    std::vector<std::string> arguments = {"report", "-o", file("a.html")};
    arguments.insert(arguments.end(), files.begin(), files.end());
    ASSERT_EQ(reprise(arguments).exit_code, 0);
    EXPECT_NE(read_file(file("a.html")).find(assumed), std::string::npos) << files.front();
  }
  for (const std::string& machine : {std::string("a100"), file("known.json")}) {
    std::ofstream(file("known.json"))
        << R"({"format": "reprise-machine", "version": 1, "device": "x", "memory_bytes": 1,
      "h2d_bytes_per_second": 1e9, "d2h_bytes_per_second": 2e9})";
    const Outcome given =
        reprise({"plan", file("old.trace"), "--budget", "70%", "--machine", machine, "-o", file("given.plan")});
    ASSERT_EQ(given.exit_code, 0) << given.err;
    EXPECT_EQ(given.err.find("assumed"), std::string::npos) << given.err;
  }
  std::ofstream(file("half.json")) << R"({"format": "reprise-machine", "version": 1, "device": "x", "memory_bytes": 1,
    "h2d_bytes_per_second": 1e9})";
  const Outcome half =
      reprise({"plan", file("old.trace"), "--budget", "70%", "--machine", file("half.json"), "-o", file("half.plan")});
  EXPECT_NE(
      half.err.find(file("half.json") +
                    " does not say how fast the link is, and 1.0 GB/s to the device and 24.0 GB/s back are assumed; "
                    "give --machine"),
      std::string::npos)
      << half.err;
}

TEST_F(Links, OfARecordingThatHasItsLinkNothingIsAssumed) {
  ASSERT_EQ(record("a.trace", device("1GiB", "1GiB"), small_trainer(4)).exit_code, 0);
  const Outcome planned = reprise({"plan", file("a.trace"), "--budget", "70%", "-o", file("a.plan")});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_EQ(planned.err.find("assumed"), std::string::npos) << planned.err;
  ASSERT_EQ(reprise({"report", file("a.trace"), file("a.plan"), "-o", file("a.html")}).exit_code, 0);
  EXPECT_EQ(read_file(file("a.html")).find("how fast the link is"), std::string::npos);
}

TEST_F(Links, PlansForTwoLinksAreNotJudgedAndOfTwoRecordingsTheArgumentsAreNamed) {
  ASSERT_EQ(record("a.trace", device("45MiB", "35MiB"), small_trainer(4)).exit_code, 0);
  ASSERT_EQ(record("b.trace", device("45MiB", "35MiB"), small_trainer(4, {"--layers", "2"})).exit_code, 0);
  for (const auto& [plan, trace, machine] :
       {std::tuple{"own.plan", "a.trace", ""}, {"a100.plan", "a.trace", "a100"}, {"other.plan", "b.trace", ""}}) {
    std::vector<std::string> arguments = {"plan", file(trace), "--budget", "70%", "-o", file(plan)};
    if (*machine != '\0') arguments.insert(arguments.end(), {"--machine", machine});
    ASSERT_EQ(reprise(arguments).exit_code, 0);
  }
  const Outcome compared = reprise({"report", file("own.plan"), file("a100.plan"), "-o", file("c.html")});
  ASSERT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_NE(compared.err.find("The plans are for different links, A for "), std::string::npos) << compared.err;
  EXPECT_NE(compared.err.find("back (measured), B for 25.0 GB/s each way (a100), so neither is better"),
            std::string::npos)
      << compared.err;
  const Outcome refused = reprise({"report", file("own.plan"), file("other.plan"), "-o", file("d.html")});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.err.find("called with different arguments (without and --layers 2)"), std::string::npos)
      << refused.err;
}

// A replay knows the link that it ran on, which is not the one that its plan is for.
class ReplaysOnLinks : public Links {
 protected:
  void SetUp() override {
    // So slow that a thread which wakes up late, on an idle computer too, is no tenth of a copy of 64 KiB.
    ASSERT_EQ(record("a.trace", device("50MiB", "25MiB"), program_).exit_code, 0);
    ASSERT_EQ(reprise({"plan", file("a.trace"), "--budget", "70%", "-o", file("a.plan")}).exit_code, 0);
  }
  Outcome replay(const std::string& run_log, const Environment& environment) const {
    std::vector<std::string> arguments = {"replay",       "--device",  "sim",         "--plan",
                                          file("a.plan"), "--run-log", file(run_log), "--"};
    arguments.insert(arguments.end(), program_.begin(), program_.end());
    return reprise(arguments, environment);
  }
  json line(const std::string& run_log, const std::string& kind) const {
    const auto lines = lines_of(read_run_log(file(run_log)), kind);
    return lines.empty() ? json::object() : lines.back();
  }
  std::string compared(const std::string& a, const std::string& b) const {
    return reprise({"report", file(a), file(b), "-o", file("c.html")}).err;
  }

  const std::vector<std::string> program_ = small_trainer(8);
};

TEST_F(ReplaysOnLinks, TwoOfThemAreNotJudgedForTheirTimes) {
  const Outcome slow = replay("slow.run", device("45MiB", "35MiB"));
  ASSERT_EQ(slow.exit_code, 0) << slow.err;
  EXPECT_EQ(slow.out, run(program_, device("45MiB", "35MiB")).out);
  ASSERT_EQ(replay("fast.run", device("1GiB", "1GiB")).exit_code, 0);
  expect_about(line("slow.run", "start").value("link_h2d_bytes_per_s", 0.0), 45 * kMiB);
  expect_about(line("slow.run", "start").value("link_d2h_bytes_per_s", 0.0), 35 * kMiB);
  const std::string said = compared("slow.run", "fast.run");
  EXPECT_NE(said.find("A and B ran on different links, more than a tenth apart, A on "), std::string::npos) << said;
}

// A page of one replay says which link its plan is for and which one it had, and does not measure the one by the other.
TEST_F(ReplaysOnLinks, APageOfOneSaysWhichLinkItsPlanIsFor) {
  const auto page = [this](const std::string& run_log) {
    const Outcome made =
        reprise({"report", file("a.trace"), file("a.plan"), file(run_log), "--json", "-o", file("page.json")});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    return json::parse(read_file(file("page.json")));
  };
  const auto said = [](const json& data) { return data.at("sentences").dump(); };
  const std::string differs = ", more than a tenth apart: what is predicted for the one is not compared with";
  ASSERT_EQ(replay("fast.run", device("4GiB", "4GiB")).exit_code, 0);
  const json fast = page("fast.run");
  EXPECT_NE(said(fast).find("The plan is for a link of "), std::string::npos) << said(fast);
  EXPECT_NE(said(fast).find(differs), std::string::npos) << said(fast);
  EXPECT_NE(said(fast).find(" on another link"), std::string::npos) << said(fast);
  EXPECT_EQ(said(fast).find(" %)."), std::string::npos) << "predicted against measured: " << said(fast);
  EXPECT_EQ(fast.at("totals").at(0).at("label"), "Link");
  EXPECT_NE(fast.at("totals").at(0).dump().find("are not compared"), std::string::npos) << fast.at("totals").at(0);
  EXPECT_NE(fast.at("time_went").back().at("name").get<std::string>().find("for a link of "), std::string::npos);
  EXPECT_NE(fast.at("budget_curve").at("times").get<std::string>().find("for a link of "), std::string::npos);
  EXPECT_EQ(fast.at("advice").dump().find("for full speed"), std::string::npos) << fast.at("advice").dump(1);
  ASSERT_EQ(replay("own.run", device("50MiB", "25MiB")).exit_code, 0);
  const json own = page("own.run");
  EXPECT_EQ(said(own).find(differs), std::string::npos) << said(own);
  EXPECT_EQ(own.at("totals").at(0).at("label"), "Link");
  EXPECT_EQ(own.at("totals").at(0).dump().find("are not compared"), std::string::npos) << own.at("totals").at(0);
}

// The chunk and the host memory that it is measured with are none of the program's.
TEST_F(ReplaysOnLinks, MeasuringTakesNothingOfTheBudgetAndWithoutItThatIsSaid) {
  const Environment link = merged(device("50MiB", "25MiB"), {{"REPRISE_SIM_STATS", file("stats.json")}});
  const auto chunks = [this] {
    const json stats = read_stats(file("stats.json"));
    return stats["create_calls"].get<int>() - stats["release_calls"].get<int>();
  };
  ASSERT_EQ(replay("a.run", link).exit_code, 0);
  const int measured = chunks();
  const Outcome refused = replay("b.run", merged(link, {{"REPRISE_SIM_FAIL", "shim.cuMemCreate@2=2"}}));
  ASSERT_EQ(refused.exit_code, 0) << refused.err;
  EXPECT_EQ(measured, chunks());
  EXPECT_FALSE(line("b.run", "start").contains("link_h2d_bytes_per_s"));
  for (const char* key :
       {"peak_device_bytes", "peak_used_bytes", "outside_bytes", "host_bytes", "iterations_planned"}) {
    EXPECT_EQ(line("a.run", "end").value(key, -1), line("b.run", "end").value(key, -2)) << key;
  }
  const std::string said = compared("a.run", "b.run");
  EXPECT_NE(said.find("It is not known how fast the link of B was, so neither is better for its times. "),
            std::string::npos)
      << said;
}

}  // namespace
}  // namespace reprise::e2e
