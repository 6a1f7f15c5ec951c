// How fast the link is that a plan is made for: recordings measure it, and where nobody has, that is said.
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

constexpr double kMiB = 1 << 20;

class Links : public InScratch {
 protected:
  static Environment device(const std::string& to_device, const std::string& to_host) {
    return merged(simulated_device(),
                  {{"REPRISE_SIM_GRANULARITY", "16KiB"}, {"REPRISE_SIM_H2D", to_device}, {"REPRISE_SIM_D2H", to_host}});
  }
  static Outcome reprise(Words arguments, const Environment& environment = {}) {
    Environment launcher = environment;
    launcher.erase("LD_LIBRARY_PATH");
    return run(joined({built("bin/reprise")}, arguments), launcher);
  }
  Outcome record(const std::string& trace, const Environment& environment, const Words& program) {
    Words arguments = joined({"record", "--device", "sim", "-o", file(trace), "--"}, program);
    return reprise(arguments, environment);
  }
  // The value of an info key of a trace; 0: it has none.
  double info(const std::string& trace, const std::string& key) const {
    const std::string text = reprise({"dump", file(trace)}).out;
    const size_t at = text.find("info " + key + "=");
    return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + key.size() + 6, nullptr);
  }
};

// A busy host makes the simulated link slower, never faster.
void expect_about(double value, double wanted) {
  EXPECT_LT(value, 1.1 * wanted);
  EXPECT_GT(value, 0.3 * wanted);
}

TEST_F(Links, ARecordingHasTheLinkThatItWasMadeOn) {
  const Words program = small_trainer(3, {"--batch", "8"});
  const Environment slow = device("45MiB", "35MiB");
  const Outcome plain = run(program, slow);
  EXPECT_EQ(well(record("a.trace", slow, program)).out, plain.out);
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
    well(record("a.trace", device("16GiB", "16GiB"), small_trainer(1)));
    expect_about(info("a.trace", "link.h2d_bytes_per_s"), fast);
    expect_about(info("a.trace", "link.d2h_bytes_per_s"), fast);
  }
}

TEST_F(Links, SoHasOneWithoutTheLauncher) {
  const Words program = small_trainer(3);
  Environment environment = merged(preloaded(""), {{"REPRISE_SIM_H2D", "200MiB"},
                                                   {"REPRISE_SIM_D2H", "90MiB"},
                                                   {"REPRISE_SIM_STATS", file("stats.json")},
                                                   {"REPRISE_TRACE", file("a.trace")}});
  environment.erase("REPRISE_BUDGET");
  EXPECT_FALSE(has(well(run(program, environment)).err, "reprise"));
  expect_about(info("a.trace", "link.h2d_bytes_per_s"), 200 * kMiB);
  expect_about(info("a.trace", "link.d2h_bytes_per_s"), 90 * kMiB);
  const json stats = read_stats(file("stats.json"));
  EXPECT_EQ(stats["create_calls"], stats["release_calls"]);
  EXPECT_EQ(stats["map_calls"], stats["unmap_calls"]);
}

// What is refused to Reprise is not refused to the program.
TEST_F(Links, WithoutMemoryForItNothingIsMeasuredAndTheProgramRuns) {
  const Words program = small_trainer(3);
  const Environment full = merged(device("1GiB", "1GiB"), {{"REPRISE_SIM_FAIL", "shim.cuMemCreate=2"}});
  EXPECT_EQ(well(record("a.trace", full, program)).out, run(program, device("1GiB", "1GiB")).out);
  EXPECT_EQ(info("a.trace", "link.h2d_bytes_per_s"), 0);
}

// Old recordings, and those of a device that had no chunk free.
TEST_F(Links, WhereNobodyHasMeasuredTheLinkThatIsSaidAndHowToDoIt) {
  const std::string assumed = "does not say how fast the link is, and 24.0 GB/s each way are assumed; record again";
  const Environment unmeasured = merged(device("1GiB", "1GiB"), {{"REPRISE_SIM_FAIL", "shim.cuMemCreate=2"}});
  well(record("old.trace", unmeasured, small_trainer(4)));
  const Outcome planned = well(reprise({"plan", file("old.trace"), "--budget", "70%", "-o", file("old.plan")}));
  EXPECT_TRUE(has(planned.err, file("old.trace") + " " + assumed));
  EXPECT_EQ(reprise({"plan", file("old.trace"), "--budget", "70%", "-o", file("quiet.plan"), "--quiet"}).err, "");
  const Outcome simulated =
      reprise({"simulate", file("old.trace"), "--budget", "70%", "--no-fluid", "--html", file("s.html")});
  EXPECT_TRUE(has(simulated.err, assumed));
  EXPECT_TRUE(has(read_file(file("s.html")), assumed));
  for (const Words& files : {Words{file("old.trace")}, {file("old.plan")}, {file("old.trace"), file("old.plan")}}) {
    Words arguments = joined({"report", "-o", file("a.html")}, files);
    well(reprise(arguments));
    EXPECT_TRUE(has(read_file(file("a.html")), assumed)) << files.front();
  }
  for (const std::string& machine : {std::string("a100"), file("known.json")}) {
    std::ofstream(file("known.json"))
        << R"({"format": "reprise-machine", "version": 1, "device": "x", "memory_bytes": 1,
      "h2d_bytes_per_second": 1e9, "d2h_bytes_per_second": 2e9})";
    const Outcome given =
        reprise({"plan", file("old.trace"), "--budget", "70%", "--machine", machine, "-o", file("given.plan")});
    ASSERT_EQ(given.exit_code, 0) << given.err;
    EXPECT_FALSE(has(given.err, "assumed"));
  }
  std::ofstream(file("half.json")) << R"({"format": "reprise-machine", "version": 1, "device": "x", "memory_bytes": 1,
    "h2d_bytes_per_second": 1e9})";
  const Outcome half =
      reprise({"plan", file("old.trace"), "--budget", "70%", "--machine", file("half.json"), "-o", file("half.plan")});
  EXPECT_TRUE(has(half.err, file("half.json") + " does not say how fast the link is, and 1.0 GB/s to the device and "
                                                "24.0 GB/s back are assumed; give --machine"));
}

TEST_F(Links, OfARecordingThatHasItsLinkNothingIsAssumed) {
  well(record("a.trace", device("1GiB", "1GiB"), small_trainer(4)));
  EXPECT_FALSE(has(well(reprise({"plan", file("a.trace"), "--budget", "70%", "-o", file("a.plan")})).err, "assumed"));
  well(reprise({"report", file("a.trace"), file("a.plan"), "-o", file("a.html")}));
  EXPECT_FALSE(has(read_file(file("a.html")), "how fast the link is"));
}

TEST_F(Links, PlansForTwoLinksAreNotJudgedAndOfTwoRecordingsTheArgumentsAreNamed) {
  well(record("a.trace", device("45MiB", "35MiB"), small_trainer(4)));
  well(record("b.trace", device("45MiB", "35MiB"), small_trainer(4, {"--layers", "2"})));
  for (const auto& [plan, trace, machine] :
       {std::tuple{"own.plan", "a.trace", ""}, {"a100.plan", "a.trace", "a100"}, {"other.plan", "b.trace", ""}}) {
    Words arguments = {"plan", file(trace), "--budget", "70%", "-o", file(plan)};
    if (*machine != '\0') arguments.insert(arguments.end(), {"--machine", machine});
    well(reprise(arguments));
  }
  const Outcome compared = well(reprise({"report", file("own.plan"), file("a100.plan"), "-o", file("c.html")}));
  EXPECT_TRUE(has(compared.err, "The plans are for different links, A for "));
  EXPECT_TRUE(has(compared.err, "back (measured), B for 25.0 GB/s each way (a100), so neither is better"));
  const Outcome refused = reprise({"report", file("own.plan"), file("other.plan"), "-o", file("d.html")});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_TRUE(has(refused.err, "called with different arguments (without and --layers 2)"));
}

// A replay knows the link that it ran on, which is not the one that its plan is for.
class ReplaysOnLinks : public Links {
 protected:
  void SetUp() override {
    // So slow that a thread which wakes up late, on an idle computer too, is no tenth of a copy of 64 KiB.
    well(record("a.trace", device("50MiB", "25MiB"), program_));
    well(reprise({"plan", file("a.trace"), "--budget", "70%", "-o", file("a.plan")}));
  }
  Outcome replay(const std::string& run_log, const Environment& environment) const {
    Words arguments =
        joined({"replay", "--device", "sim", "--plan", file("a.plan"), "--run-log", file(run_log), "--"}, program_);
    return reprise(arguments, environment);
  }
  json line(const std::string& run_log, const std::string& kind) const {
    const auto lines = lines_of(read_run_log(file(run_log)), kind);
    return lines.empty() ? json::object() : lines.back();
  }
  std::string compared(const std::string& a, const std::string& b) const {
    return reprise({"report", file(a), file(b), "-o", file("c.html")}).err;
  }

  const Words program_ = small_trainer(8);
};

TEST_F(ReplaysOnLinks, TwoOfThemAreNotJudgedForTheirTimes) {
  EXPECT_EQ(well(replay("slow.run", device("45MiB", "35MiB"))).out, run(program_, device("45MiB", "35MiB")).out);
  well(replay("fast.run", device("1GiB", "1GiB")));
  expect_about(line("slow.run", "start").value("link_h2d_bytes_per_s", 0.0), 45 * kMiB);
  expect_about(line("slow.run", "start").value("link_d2h_bytes_per_s", 0.0), 35 * kMiB);
  EXPECT_TRUE(has(compared("slow.run", "fast.run"), "A and B ran on different links, more than a tenth apart, A on "));
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
  well(replay("fast.run", device("4GiB", "4GiB")));
  const json fast = page("fast.run");
  EXPECT_TRUE(has(said(fast), "The plan is for a link of "));
  EXPECT_TRUE(has(said(fast), differs));
  EXPECT_TRUE(has(said(fast), " on another link"));
  EXPECT_FALSE(has(said(fast), " %).")) << "predicted against measured: ";
  EXPECT_EQ(fast.at("totals").at(0).at("label"), "Link");
  EXPECT_TRUE(has(fast.at("totals").at(0).dump(), "are not compared"));
  EXPECT_TRUE(has(fast.at("time_went").back().at("name"), "for a link of "));
  EXPECT_TRUE(has(fast.at("budget_curve").at("times"), "for a link of "));
  EXPECT_FALSE(has(fast.at("advice").dump(), "for full speed"));
  well(replay("own.run", device("50MiB", "25MiB")));
  const json own = page("own.run");
  EXPECT_FALSE(has(said(own), differs));
  EXPECT_EQ(own.at("totals").at(0).at("label"), "Link");
  EXPECT_FALSE(has(own.at("totals").at(0).dump(), "are not compared"));
}

// The chunk and the host memory that it is measured with are none of the program's.
TEST_F(ReplaysOnLinks, MeasuringTakesNothingOfTheBudgetAndWithoutItThatIsSaid) {
  const Environment link = merged(device("50MiB", "25MiB"), {{"REPRISE_SIM_STATS", file("stats.json")}});
  const auto chunks = [this] {
    const json stats = read_stats(file("stats.json"));
    return stats["create_calls"].get<int>() - stats["release_calls"].get<int>();
  };
  well(replay("a.run", link));
  const int measured = chunks();
  well(replay("b.run", merged(link, {{"REPRISE_SIM_FAIL", "shim.cuMemCreate@2=2"}})));
  EXPECT_EQ(measured, chunks());
  EXPECT_FALSE(line("b.run", "start").contains("link_h2d_bytes_per_s"));
  for (const char* key :
       {"peak_device_bytes", "peak_used_bytes", "outside_bytes", "host_bytes", "iterations_planned"}) {
    EXPECT_EQ(line("a.run", "end").value(key, -1), line("b.run", "end").value(key, -2)) << key;
  }
  const std::string said = compared("a.run", "b.run");
  EXPECT_TRUE(has(said, "It is not known how fast the link of B was, so neither is better for its times. "));
}

}  // namespace
}  // namespace reprise::e2e
