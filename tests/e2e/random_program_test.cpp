// The dataflow-hash oracle: a random program printed hashes without Reprise; under any budget it must print the same.
// One lost byte, one stale reload or one wrong order changes every hash after it.
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

struct Case {
  int seed;
  std::string budget;
  Words options;
};

void PrintTo(const Case& value, std::ostream* out) { *out << "seed " << value.seed << " budget " << value.budget; }

class RandomProgram : public testing::TestWithParam<Case> {};

Words command(const Case& value, int iterations) {
  return joined({built("bin/random_program"), built("bin/hash_kernels.cubin"), std::to_string(value.seed),
                 std::to_string(iterations)},
                value.options);
}

TEST_P(RandomProgram, PrintsTheSameHashesUnderABudget) {
  const Scratch scratch;
  // Where iterations of another kind lie between, the loop is found late, and on a busy machine later.
  const auto& options = GetParam().options;
  const bool evaluates = std::find(options.begin(), options.end(), "--odd-every") != options.end();
  const auto argv = command(GetParam(), evaluates ? 26 : 16);
  const Outcome plain = well(run(argv, merged(simulated_device(), {{"REPRISE_SIM_STATS", scratch.path("plain")}})));
  const Outcome managed =
      run(argv, merged(preloaded(GetParam().budget), {{"REPRISE_SIM_STATS", scratch.path("managed")},
                                                      {"REPRISE_RUN_LOG", scratch.path("log")},
                                                      {"REPRISE_WAIT_FOR_PLAN", "1"}}));
  EXPECT_EQ(managed.exit_code, 0) << managed.err;
  EXPECT_EQ(managed.out, plain.out) << managed.err;
  const auto plain_stats = read_stats(scratch.path("plain"));
  const auto stats = read_stats(scratch.path("managed"));
  const double fraction = std::stod(GetParam().budget) / 100.0;
  EXPECT_LE(stats["peak_bytes"].get<double>(), fraction * plain_stats["peak_bytes"].get<double>() + 1);
  EXPECT_EQ(stats["unsupported_calls"], 0);
  EXPECT_FALSE(has(managed.err, "defect"));
  const auto ends = lines_of(read_run_log(scratch.path("log")), "end");
  ASSERT_EQ(ends.size(), 1u);
  if (fraction < 1) {
    EXPECT_GT(ends.back()["iterations_planned"], 0) << "the plan was never enforced: " << managed.err;
  } else {  // everything fits, so there is nothing to plan and nothing moves
    EXPECT_EQ(ends.back()["iterations_planned"], 0);
    EXPECT_EQ(ends.back()["offload_bytes"], 0);
    EXPECT_EQ(ends.back()["reload_bytes"], 0);
  }
}

// A free that answers an error has freed nothing: made once more, it frees. Which waits of the library belong to frees
// depends on the program.
TEST(RandomProgramTest, AFreeThatFailsCanBeMadeOnceMore) {
  const auto argv = command({11, "60%", {"--ops", "40", "--max-kib", "384", "--retry"}}, 6);
  const Outcome plain = well(run(argv, simulated_device()));
  int told = 0;
  for (int wait = 1; wait <= 24; ++wait) {
    const Outcome managed = run(
        argv, merged(preloaded("60%"), {{"REPRISE_SIM_FAIL", "shim.cuCtxSynchronize@" + std::to_string(wait) + "=1"}}),
        30);
    EXPECT_EQ(managed.exit_code, 0) << wait << ": " << managed.err;
    EXPECT_EQ(managed.out, plain.out) << wait << ": " << managed.err;
    told += managed.err.find("told: cuMemFree") != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(told, 0) << "no free was refused: this proves nothing";
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const std::vector<Words> shapes = {
      {},
      {"--streams", "1", "--async"},
      {"--streams", "4", "--ops", "90"},
      {"--odd-every", "4"},
      {"--replaced", "2"},
      {"--replaced", "3", "--odd-every", "7", "--max-kib", "600"},
      {"--persistent", "30", "--max-kib", "300"},
      {"--async", "--streams", "3", "--odd-every", "3"},
  };
  int seed = 1;
  for (const auto& shape : shapes) {
    for (const char* budget : {"75%", "60%"}) all.push_back({seed++, budget, shape});
  }
  // The program grows when its first iterations have a plan.
  for (const int grown : {1003, 1021}) all.push_back({grown, "60%", {"--grows-at", "8"}});
  // Diverges from its plan just after it has allocated a small tensor.
  all.push_back({689111, "85%", {"--odd-every", "4"}});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Budgets, RandomProgram, testing::ValuesIn(cases()));

}  // namespace
}  // namespace reprise::e2e
