// How fast the link is that a plan is made for: recordings measure it, and where nobody has, that is said.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

using nlohmann::json;

constexpr double kMiB = 1 << 20;

class Links : public testing::Test {
 protected:
  static Environment device(const std::string& to_device, const std::string& to_host) {
    return merged(simulated_device(), {{"REPRISE_SIM_H2D", to_device}, {"REPRISE_SIM_D2H", to_host}});
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

}  // namespace
}  // namespace reprise::e2e
