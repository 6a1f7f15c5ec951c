// An unmodified, nvcc-built trainer in less memory than it needs: equal losses and weights, budget kept, plan enforced.
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

// Small enough for a CPU, deep enough that activations, gradients and optimizer state all matter.
Words trainer(int seed, int steps, const Words& more = {}) {
  return joined({built("bin/chargpt"), "--layers", "3", "--width", "64", "--heads", "4", "--context", "32", "--batch",
                 "8", "--steps", std::to_string(steps), "--seed", std::to_string(seed)},
                more);
}

struct Pair {
  Outcome plain;
  Outcome managed;
  json plain_stats;
  json stats;
  std::vector<json> log;
};

// The program plain and with LD_PRELOAD and variables alone. It waits for its plan, so that the same iterations are
// planned ones however busy the machine is.
Pair run_both(const Words& argv, const std::string& budget, const Environment& more = {}) {
  const Scratch scratch;
  Pair pair;
  pair.plain = run(argv, merged(simulated_device(), {{"REPRISE_SIM_STATS", scratch.path("plain")}}));
  const Environment managed = merged(preloaded(budget), {{"REPRISE_SIM_STATS", scratch.path("managed")},
                                                         {"REPRISE_RUN_LOG", scratch.path("log")},
                                                         {"REPRISE_WAIT_FOR_PLAN", "1"}});
  pair.managed = run(argv, merged(managed, more));
  pair.plain_stats = read_stats(scratch.path("plain"));
  pair.stats = read_stats(scratch.path("managed"));
  pair.log = read_run_log(scratch.path("log"));
  return pair;
}

void expect_same(const Pair& pair) {
  ASSERT_EQ(pair.plain.exit_code, 0) << pair.plain.err;
  EXPECT_EQ(pair.managed.exit_code, 0) << pair.managed.err;
  EXPECT_EQ(pair.managed.out, pair.plain.out) << pair.managed.err;
}

int64_t total(const Pair& pair, const char* field) {
  const auto ends = lines_of(pair.log, "end");
  return ends.empty() ? -1 : ends.back().value(field, static_cast<int64_t>(-1));
}

struct Sweep {
  int percent;
  int seed;
};
void PrintTo(const Sweep& value, std::ostream* out) { *out << value.percent << "% seed " << value.seed; }

class Budgets : public testing::TestWithParam<Sweep> {};

TEST_P(Budgets, LossesAndWeightsAreEqualToTheLastBit) {
  const Pair pair = run_both(trainer(GetParam().seed, 10), std::to_string(GetParam().percent) + "%");
  expect_same(pair);
  EXPECT_LE(pair.stats["peak_bytes"].get<double>(),
            pair.plain_stats["peak_bytes"].get<double>() * GetParam().percent / 100.0);
  if (GetParam().percent == 100) {
    EXPECT_EQ(total(pair, "offload_bytes") + total(pair, "reload_bytes"), 0) << "everything fits";
    return;
  }
  EXPECT_GT(total(pair, "iterations_planned"), 2) << "the plan was never enforced";
  // The loop's end is the only divergence: nothing planned comes after it.
  const auto departures = lines_of(pair.log, "divergence");
  const auto iterations = lines_of(pair.log, "iteration");
  EXPECT_LE(departures.size(), 1u);
  for (const auto& departure : departures) EXPECT_GT(departure["iteration"], iterations.back()["index"]);
}

std::vector<Sweep> sweeps() {
  std::vector<Sweep> all;
  for (int percent = 30; percent <= 100; percent += 10) {
    for (int seed = 1; seed <= 3; ++seed) all.push_back({percent, seed});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Sweep, Budgets, testing::ValuesIn(sweeps()));

json plain_stats(const Words& argv) {
  const Scratch scratch;
  run(argv, merged(simulated_device(), {{"REPRISE_SIM_STATS", scratch.path("plain")}}));
  return read_stats(scratch.path("plain"));
}

TEST(MemoryOfTheDriver, ABudgetOfAllOfTheDeviceIsPlannedAndLeavesSome) {
  const auto argv = trainer(1, 10);
  const uint64_t bytes = plain_stats(argv)["peak_bytes"].get<uint64_t>() * 6 / 10;
  const Pair pair = run_both(argv, std::to_string(bytes), {{"REPRISE_SIM_MEMORY", std::to_string(bytes)}});
  expect_same(pair);
  EXPECT_GT(total(pair, "iterations_planned"), 2) << "the plan was never enforced";
  EXPECT_LE(pair.stats["peak_bytes"].get<uint64_t>(), bytes - bytes / 32);
}

// Of a plan's launches, too: on demand some of the device is given back for it. The loss is computed once a step, and
// plans rule the last steps; of a name in C++ the length goes with it.
TEST(MemoryOfTheDriver, ALaunchThatTheDriverHasNoneForIsIssuedAgain) {
  const auto argv = trainer(1, 10);
  for (const int step : {8, 9}) {
    const std::string fault = "launch-of-13cross_entropy@" + std::to_string(step) + "=2";
    const Pair pair = run_both(argv, "60%", {{"REPRISE_SIM_FAIL", fault}});
    expect_same(pair);
    int departed = 0;
    for (const json& departure : lines_of(pair.log, "divergence")) {
      if (departure.value("reason", "") == phrase<Cause::launch_lacked_memory>()) ++departed;
    }
    EXPECT_EQ(departed, 1) << "step " << step << ": no launch of a plan's failed";
  }
}

void make_plan(const Words& argv, const std::string& budget, const std::string& plan, const std::string& safety,
               const Environment& more) {
  Words record = joined({built("bin/reprise"), "record", "--device", "sim", "-o", plan + ".trace", "--"}, argv);
  well(run(record, merged(simulated_device(), more)));
  const Outcome planned =
      run({built("bin/reprise"), "plan", plan + ".trace", "--budget", budget, "--safety", safety, "-o", plan});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
}

// A link so slow that moving an iteration's bytes takes about a third as long as computing it, by the modelled clock.
const Environment kSlowLink = {
    {"REPRISE_SIM_H2D", "200MB"}, {"REPRISE_SIM_D2H", "200MB"}, {"REPRISE_SIM_MEMORY_RATE", "400MB"}};

class Safeties : public testing::TestWithParam<const char*> {};

// Trusted, ranges keep their mappings while they are planned; strict, those whose bytes move do not.
TEST_P(Safeties, SteadyStateOverlapsAndCountsItsVirtualMemoryCalls) {
  const std::string safety = GetParam();
  const Scratch scratch;
  make_plan(trainer(1, 10), "50%", scratch.path("a.plan"), safety, kSlowLink);
  const Pair pair = run_both(trainer(1, 20), "50%",
                             merged(kSlowLink, {{"REPRISE_PLAN", scratch.path("a.plan")}, {"REPRISE_SAFETY", safety}}));
  expect_same(pair);
  int64_t planned = 0;
  for (const auto& iteration : lines_of(pair.log, "iteration")) {
    if (iteration.value("mode", "") != "planned") continue;
    ++planned;
    if (safety == "trusted") {
      EXPECT_EQ(iteration.value("vmm_calls", -1), 0) << iteration.dump();
    } else {
      EXPECT_GT(iteration.value("vmm_calls", -1), 0) << iteration.dump();
    }
  }
  EXPECT_GT(planned, 15);
  // What the log counts is what the driver counts: the zeros are true. The log ends before the program's exit handlers,
  // where the end of its context unmaps what is left.
  const auto by_driver = [&](const char* counter) { return pair.stats[counter].get<int64_t>(); };
  const int64_t mapped = by_driver("map_calls") + by_driver("set_access_calls");
  EXPECT_GT(total(pair, "vmm_calls"), mapped);
  EXPECT_LE(total(pair, "vmm_calls"), mapped + by_driver("unmap_calls"));
  // A quarter of the copying at least goes on while something is computed (of about two thirds).
  const auto overlaps = lines_of(pair.log, "overlap");
  ASSERT_FALSE(overlaps.empty());
  EXPECT_GT(overlaps.back().value("both_ns", int64_t{0}), overlaps.back().value("copy_ns", int64_t{0}) / 4);
  EXPECT_GT(overlaps.back().value("copy_ns", int64_t{0}), 0);
}
INSTANTIATE_TEST_SUITE_P(Both, Safeties, testing::Values("strict", "trusted"));

TEST(Chargpt, AnEvaluationEveryFewIterationsDivergesAndComesBack) {
  const Pair pair = run_both(trainer(2, 24, {"--eval-every", "6"}), "50%");
  expect_same(pair);
  EXPECT_GT(total(pair, "iterations_planned"), 8);
}

TEST(Chargpt, StopsInTheMiddleOfAnIteration) {
  for (const char* launches : {"37", "600", "1011"}) {
    expect_same(run_both(trainer(3, 20, {"--stop-after", launches}), "50%"));
  }
}

TEST(Chargpt, FreesOutOfOrder) {
  expect_same(run_both(trainer(4, 12, {"--free-order", "reversed"}), "50%"));
  expect_same(run_both(trainer(4, 12, {"--free-order", "shuffled"}), "50%"));
}

TEST(Chargpt, RunsOneIterationOnly) {
  const Pair pair = run_both(trainer(5, 1), "50%");
  expect_same(pair);
  EXPECT_EQ(total(pair, "iterations_planned"), 0);
}

TEST(Chargpt, SwitchedOffItIsAForwarder) {
  const auto argv = trainer(6, 3);
  const Outcome plain = run(argv, simulated_device());
  const Outcome off = well(run(argv, merged(preloaded("50%"), {{"REPRISE_DISABLE", "1"}})));
  EXPECT_EQ(off.out, plain.out);
  EXPECT_EQ(off.err, plain.err);
}

// A budget of which more than one thousand chunks would do, or two where no transfer maps, has larger ones, and a plan
// says which it is for.
TEST(Chargpt, LargeBudgetsHaveLargerChunks) {
  const Scratch scratch;
  const Words argv = {built("bin/chargpt"), "--steps", "9"};
  const Environment small = {{"REPRISE_SIM_GRANULARITY", "4096"}};
  const auto chunk_of = [](const std::vector<json>& log) {
    return log.empty() ? int64_t{0} : log.front().value("chunk_bytes", int64_t{0});
  };
  const Pair pair = run_both(argv, "18MiB", small);
  expect_same(pair);
  EXPECT_EQ(chunk_of(pair.log), 16384);
  EXPECT_LE(pair.stats["peak_bytes"].get<int64_t>(), 18 << 20);
  const Pair trusted = run_both(argv, "18MiB", merged(small, {{"REPRISE_SAFETY", "trusted"}}));
  expect_same(trusted);
  EXPECT_EQ(chunk_of(trusted.log), 8192);

  const std::string reprise = built("bin/reprise"), trace = scratch.path("a.trace"), log = scratch.path("a.run");
  const Environment device = merged(simulated_device(), small);
  Words command = joined({reprise, "record", "-o", trace, "--"}, argv);
  well(run(command, device));
  const std::string plan = scratch.path("a.plan");
  well(run({reprise, "plan", trace, "--budget", "60%", "-o", plan}));
  EXPECT_TRUE(has(run({reprise, "dump", plan}).out, " chunk_bytes=16384 "));
  command = {reprise, "replay", "--plan", plan, "--run-log", log, "--"};
  command.insert(command.end(), argv.begin(), argv.end());
  const Outcome replayed = run(command, device);
  EXPECT_EQ(replayed.out, pair.plain.out) << replayed.err;
  const auto lines = read_run_log(log);
  EXPECT_EQ(chunk_of(lines), 16384);
  EXPECT_GT(lines_of(lines, "activate").size(), 0u) << replayed.err;
}

// Code that is loaded at first launches takes device memory that no call of the program asks for: on an H200, GPT-2's
// took 122 MiB, and the plan of its recording never applied.
TEST(Chargpt, PlansOfARecordingLeaveRoomForWhatTheDriverTakes) {
  const Scratch scratch;
  const std::string reprise = built("bin/reprise"), trace = scratch.path("a.trace"), plan = scratch.path("a.plan");
  const Environment device = merged(simulated_device(), {{"REPRISE_SIM_CODE", "1MiB"}});
  const auto with = [](const Words& command) { return joined(joined(command, {"--"}), trainer(1, 8)); };
  const Outcome recorded = well(run(with({reprise, "record", "-o", trace}), device));
  EXPECT_TRUE(has(run({reprise, "dump", trace}).out, "info memory.held_bytes=1048576\n"));
  well(run({reprise, "plan", trace, "--budget", "60%", "-o", plan}));
  const std::string log = scratch.path("a.run");
  const Outcome replayed = run(with({reprise, "replay", "--plan", plan, "--run-log", log}), device);
  EXPECT_EQ(replayed.out, recorded.out) << replayed.err;
  EXPECT_GT(lines_of(read_run_log(log), "activate").size(), 0u) << replayed.err;
}

}  // namespace
}  // namespace reprise::e2e
