// What leaves the device without a copy, because the host has the same bytes already: found by comparing digests, never
// by trusting a kernel.
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

constexpr uint64_t kOutput = (1 << 17) * sizeof(float);
constexpr uint64_t kLayers = 8;

struct Compared {
  Outcome plain;
  Outcome managed;
  std::vector<json> planned;
  json end;
};

Compared run_both(const Words& arguments, const std::string& budget, const Environment& more) {
  const Scratch scratch;
  Words argv = joined({built("bin/inference_program")}, arguments);
  Compared both;
  both.plain = run(argv, simulated_device());
  const Environment managed =
      merged(preloaded(budget), {{"REPRISE_RUN_LOG", scratch.path("log")}, {"REPRISE_WAIT_FOR_PLAN", "1"}});
  both.managed = run(argv, merged(managed, more));
  const auto log = read_run_log(scratch.path("log"));
  for (const auto& line : lines_of(log, "iteration")) {
    if (line["mode"] == "planned") both.planned.push_back(line);
  }
  const auto ends = lines_of(log, "end");
  if (!ends.empty()) both.end = ends.back();
  EXPECT_EQ(both.plain.exit_code, 0) << both.plain.err;
  EXPECT_EQ(both.managed.exit_code, 0) << both.managed.err;
  EXPECT_EQ(both.managed.out, both.plain.out) << both.managed.err;
  return both;
}

// Weights are more than 60 % of the memory. Once the host has them, they are never copied out again.
TEST(Spared, AnInferenceLoopCopiesOutItsActivationsAlone) {
  for (const char* safety : {"strict", "trusted"}) {
    for (const char* budget : {"80%", "60%", "45%"}) {
      const Compared both = run_both({}, budget, {{"REPRISE_SAFETY", safety}});
      ASSERT_GE(both.planned.size(), 4u) << safety << budget;
      uint64_t spared = 0;
      for (size_t i = 2; i < both.planned.size(); ++i) {
        EXPECT_LE(both.planned[i]["offload_bytes"], kLayers * kOutput) << safety << " " << budget << " " << i;
        spared += both.planned[i]["spared_bytes"].get<uint64_t>();
      }
      EXPECT_GT(spared, 0u) << safety << " " << budget;
    }
  }
}

// ... also where no plan ever comes.
TEST(Spared, OnDemandToo) {
  const Compared both = run_both({}, "60%", {{"REPRISE_PLANNER", "/nothing"}, {"REPRISE_SAFETY", "strict"}});
  EXPECT_TRUE(both.planned.empty());
  EXPECT_GT(both.end["spared_bytes"].get<uint64_t>(), both.end["offload_bytes"].get<uint64_t>() / 2);
}

// The program replaces weights now and then, and a kernel that takes them as const changes them once: the new bytes are
// what leaves.
TEST(Spared, ChangedBytesAreCopied) {
  for (const char* safety : {"strict", "trusted"}) {
    run_both({"6", "2", "65536", "14", "3", "0"}, "55%", {{"REPRISE_SAFETY", safety}});
    run_both({"6", "2", "65536", "14", "0", "9"}, "55%", {{"REPRISE_SAFETY", safety}});
    run_both({"5", "3", "49152", "16", "5", "11"}, "50%", {{"REPRISE_SAFETY", safety}});
  }
}

}  // namespace
}  // namespace reprise::e2e
