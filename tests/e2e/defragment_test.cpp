// `reprise run --defragment`: programs run as before, in the memory that they need and not in what a caching allocator
// breaks into pieces.
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

// Of its 21.1 MiB the program has in 22 MiB what its caching allocator does not find in 24 MiB.
Words fragmenting() { return {built("bin/fragmenting_program"), "--iterations", "60"}; }

Environment device_of(const std::string& bytes) {
  return merged(simulated_device(), {{"REPRISE_SIM_MEMORY", bytes}, {"LD_LIBRARY_PATH", built("lib/sim")}});
}

Words defragmented(const Words& program, const Words& options = {"--fragmentation-limit", "64KiB"}) {
  Words argv = joined({built("bin/reprise"), "run", "--defragment", "--device", "sim"}, options);
  argv.emplace_back("--");
  return joined(argv, program);
}

TEST(Defragment, AProgramThatFragmentsRunsInTheMemoryItNeeds) {
  const Outcome roomy = well(run(fragmenting(), device_of("1GiB")));
  const Outcome cached = run(fragmenting(), device_of("24MiB"));
  EXPECT_EQ(cached.exit_code, 1);
  EXPECT_TRUE(has(cached.out, "out of memory"));
  const Outcome ours = well(run(defragmented(fragmenting()), device_of("22MiB")));
  EXPECT_EQ(ours.out, roomy.out);
  EXPECT_TRUE(has(ours.err, "21.1 MiB live, in 21.4 MiB of device memory"));
}

TEST(Defragment, SynchronousAllocationsAreStitched) {
  const Outcome roomy = run(fragmenting(), device_of("1GiB"));
  const Environment uncached = {{"PYTORCH_NO_CUDA_MEMORY_CACHING", "1"}};
  EXPECT_EQ(well(run(defragmented(fragmenting()), merged(device_of("22MiB"), uncached))).out, roomy.out);
}

TEST(Defragment, ThreadsWithStreamsOfTheirOwnShareTheMemory) {
  const Words program = {built("bin/fragmenting_program"), "--iterations", "20", "--threads", "4"};
  const Outcome roomy = well(run(program, device_of("1GiB")));
  for (const char* uncached : {"0", "1"}) {
    const Environment device = merged(device_of("90MiB"), {{"PYTORCH_NO_CUDA_MEMORY_CACHING", uncached}});
    EXPECT_EQ(well(run(defragmented(program), device)).out, roomy.out);
  }
}

TEST(Defragment, TooLittleMemoryIsStillTooLittle) {
  const Outcome ours = run(defragmented(fragmenting()), device_of("21MiB"));
  EXPECT_EQ(ours.exit_code, 1);
  EXPECT_TRUE(has(ours.out, "out of memory"));
  EXPECT_TRUE(has(ours.err, "live, in"));
}

TEST(Defragment, ATrainerComputesTheSameBits) {
  const Words trainer = {built("bin/chargpt"), "--layers", "2",       "--width", "64",      "--heads", "4",
                         "--context",          "32",       "--batch", "8",       "--steps", "6"};
  const Outcome plain = well(run(trainer, simulated_device()));
  const Outcome ours = well(run(defragmented(trainer), simulated_device()));
  EXPECT_EQ(ours.out, plain.out);
  EXPECT_TRUE(has(ours.err, "found at their size"));
}

TEST(Defragment, ARandomProgramOnSeveralStreamsComputesTheSame) {
  for (const char* seed : {"1", "2", "3"}) {
    const Words program = {
        built("bin/random_program"), built("bin/hash_kernels.cubin"), seed, "8", "--async", "--streams", "4"};
    const Outcome plain = well(run(program, simulated_device()));
    EXPECT_EQ(well(run(defragmented(program), simulated_device())).out, plain.out) << "seed " << seed;
  }
}

TEST(Defragment, AProgramWithoutLargeMemoryIsToldSo) {
  const Outcome ours = well(run(defragmented({"/bin/echo", "hello"}), simulated_device()));
  EXPECT_EQ(ours.out, "hello\n");
  EXPECT_TRUE(has(ours.err, "nothing was defragmented"));
}

TEST(Defragment, OptionsThatBelongToABudgetAreRefused) {
  for (const Words& options : {Words{"--budget", "50%"},
                               {"-o", "a.html"},
                               {"--trace", "a.trace"},
                               {"--policy", "lru"},
                               {"--fragmentation-limit", "big"}}) {
    const Outcome refused = run(defragmented({"/bin/echo", "hello"}, options), simulated_device());
    EXPECT_EQ(refused.exit_code, 2) << options[0];
    EXPECT_EQ(refused.out, "");
    EXPECT_TRUE(has(refused.err, options[0]));
  }
  const Outcome alone = run(
      {built("bin/reprise"), "run", "--fragmentation-limit", "1MiB", "--budget", "50%", "--", "/bin/echo", "hello"});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_TRUE(has(alone.err, "--defragment"));
}

}  // namespace
}  // namespace reprise::e2e
