// `reprise run --defragment`: programs run as before, in the memory that they need and not in what a caching allocator
// breaks into pieces.
#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

// Of its 21.1 MiB the program has in 22 MiB what its caching allocator does not find in 24 MiB.
std::vector<std::string> fragmenting() { return {built("bin/fragmenting_program"), "--iterations", "60"}; }

Environment device_of(const std::string& bytes) {
  return merged(simulated_device(), {{"REPRISE_SIM_MEMORY", bytes}, {"LD_LIBRARY_PATH", built("lib/sim")}});
}

std::vector<std::string> defragmented(const std::vector<std::string>& program,
                                      const std::vector<std::string>& options = {"--fragmentation-limit", "64KiB"}) {
  std::vector<std::string> argv = {built("bin/reprise"), "run", "--defragment", "--device", "sim"};
  argv.insert(argv.end(), options.begin(), options.end());
  argv.emplace_back("--");
  argv.insert(argv.end(), program.begin(), program.end());
  return argv;
}

TEST(Defragment, AProgramThatFragmentsRunsInTheMemoryItNeeds) {
  const Outcome roomy = run(fragmenting(), device_of("1GiB"));
  ASSERT_EQ(roomy.exit_code, 0) << roomy.out;
  const Outcome cached = run(fragmenting(), device_of("24MiB"));
  EXPECT_EQ(cached.exit_code, 1);
  EXPECT_NE(cached.out.find("out of memory"), std::string::npos) << cached.out;
  const Outcome ours = run(defragmented(fragmenting()), device_of("22MiB"));
  EXPECT_EQ(ours.exit_code, 0) << ours.out << ours.err;
  EXPECT_EQ(ours.out, roomy.out);
  EXPECT_NE(ours.err.find("21.1 MiB live, in 21.4 MiB of device memory"), std::string::npos) << ours.err;
}

TEST(Defragment, SynchronousAllocationsAreStitched) {
  const Outcome roomy = run(fragmenting(), device_of("1GiB"));
  const Environment uncached = {{"PYTORCH_NO_CUDA_MEMORY_CACHING", "1"}};
  const Outcome ours = run(defragmented(fragmenting()), merged(device_of("22MiB"), uncached));
  EXPECT_EQ(ours.exit_code, 0) << ours.out << ours.err;
  EXPECT_EQ(ours.out, roomy.out);
}

TEST(Defragment, ThreadsWithStreamsOfTheirOwnShareTheMemory) {
  const std::vector<std::string> program = {built("bin/fragmenting_program"), "--iterations", "20", "--threads", "4"};
  const Outcome roomy = run(program, device_of("1GiB"));
  ASSERT_EQ(roomy.exit_code, 0) << roomy.out;
  for (const char* uncached : {"0", "1"}) {
    const Environment device = merged(device_of("90MiB"), {{"PYTORCH_NO_CUDA_MEMORY_CACHING", uncached}});
    const Outcome ours = run(defragmented(program), device);
    EXPECT_EQ(ours.exit_code, 0) << ours.out << ours.err;
    EXPECT_EQ(ours.out, roomy.out);
  }
}

TEST(Defragment, TooLittleMemoryIsStillTooLittle) {
  const Outcome ours = run(defragmented(fragmenting()), device_of("21MiB"));
  EXPECT_EQ(ours.exit_code, 1);
  EXPECT_NE(ours.out.find("out of memory"), std::string::npos) << ours.out;
  EXPECT_NE(ours.err.find("live, in"), std::string::npos) << ours.err;
}

TEST(Defragment, ATrainerComputesTheSameBits) {
  const std::vector<std::string> trainer = {
      built("bin/chargpt"), "--layers", "2",       "--width", "64",      "--heads", "4",
      "--context",          "32",       "--batch", "8",       "--steps", "6"};
  const Outcome plain = run(trainer, simulated_device());
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  const Outcome ours = run(defragmented(trainer), simulated_device());
  EXPECT_EQ(ours.exit_code, 0) << ours.err;
  EXPECT_EQ(ours.out, plain.out);
  EXPECT_NE(ours.err.find("found at their size"), std::string::npos) << ours.err;
}

TEST(Defragment, ARandomProgramOnSeveralStreamsComputesTheSame) {
  for (const char* seed : {"1", "2", "3"}) {
    const std::vector<std::string> program = {
        built("bin/random_program"), built("bin/hash_kernels.cubin"), seed, "8", "--async", "--streams", "4"};
    const Outcome plain = run(program, simulated_device());
    ASSERT_EQ(plain.exit_code, 0) << plain.out << plain.err;
    const Outcome ours = run(defragmented(program), simulated_device());
    EXPECT_EQ(ours.exit_code, 0) << ours.err;
    EXPECT_EQ(ours.out, plain.out) << "seed " << seed;
  }
}

TEST(Defragment, AProgramWithoutLargeMemoryIsToldSo) {
  const Outcome ours = run(defragmented({"/bin/echo", "hello"}), simulated_device());
  EXPECT_EQ(ours.exit_code, 0);
  EXPECT_EQ(ours.out, "hello\n");
  EXPECT_NE(ours.err.find("nothing was defragmented"), std::string::npos) << ours.err;
}

TEST(Defragment, OptionsThatBelongToABudgetAreRefused) {
  for (const std::vector<std::string>& options : {std::vector<std::string>{"--budget", "50%"},
                                                  {"-o", "a.html"},
                                                  {"--trace", "a.trace"},
                                                  {"--policy", "lru"},
                                                  {"--fragmentation-limit", "big"}}) {
    const Outcome refused = run(defragmented({"/bin/echo", "hello"}, options), simulated_device());
    EXPECT_EQ(refused.exit_code, 2) << options[0];
    EXPECT_EQ(refused.out, "");
    EXPECT_NE(refused.err.find(options[0]), std::string::npos) << refused.err;
  }
  const Outcome alone = run(
      {built("bin/reprise"), "run", "--fragmentation-limit", "1MiB", "--budget", "50%", "--", "/bin/echo", "hello"});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_NE(alone.err.find("--defragment"), std::string::npos) << alone.err;
}

}  // namespace
}  // namespace reprise::e2e
