// How long the modelled clock has operations take (tools/device/engines/clock.h), by the environment of a process of
// their own.
#include "tests/support/test.h"
#include "tools/device/engines/clock.h"

namespace reprise::sim {
namespace {

bool is(Duration duration, uint64_t ns, bool exact) { return duration.ns == ns && duration.exact == exact; }

// Settings are read once a process: each test asks in a child, which ends with 0 when `right`.
void end_with(bool right) { std::_Exit(right ? 0 : 1); }

TEST(Durations, WithoutARateAreTheHosts) {
  const auto child = [] {
    setenv("REPRISE_SIM_LAUNCH_TIME", "5", 1);
    end_with(!modelled_clock() && is(kernel_duration("any", 4000), 0, false) && is(memory_duration(4000), 0, false) &&
             is(link_duration(4000, 1'000'000'000, 10), 4010, true) && is(link_duration(4000, 0, 10), 10, false));
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "^$");
}

TEST(Durations, AreBytesOverTheRate) {
  const auto child = [] {
    setenv("REPRISE_SIM_MEMORY_RATE", "2GB", 1);
    setenv("REPRISE_SIM_LAUNCH_TIME", "5", 1);
    end_with(modelled_clock() && is(kernel_duration("any", 4000), 7000, true) && is(memory_duration(4000), 2000, true));
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "^$");
}

TEST(Durations, AreThoseOfTheFileForTheKernelsThatItNames) {
  const std::string path = testing::TempDir() + "sim_durations";
  std::ofstream(path) << "# microseconds\n_Z3addPi 2.5\n\nother -1\nbare\nthird 3 us\n _Z4fillPi 40 # slow\n";
  const auto child = [&] {
    setenv("REPRISE_SIM_KERNEL_TIMES", path.c_str(), 1);
    end_with(modelled_clock() && is(kernel_duration("_Z3addPi", 4000), 2500, true) &&
             is(kernel_duration("_Z4fillPi", 0), 40'000, true) && is(kernel_duration("other", 4000), 0, false) &&
             is(memory_duration(4000), 0, false));
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "sim_durations:4 is not.*\n.*:5 is not.*\n.*:6 is not");
  const auto without = [] {
    setenv("REPRISE_SIM_KERNEL_TIMES", "/nowhere", 1);
    end_with(is(kernel_duration("_Z3addPi", 4000), 0, false));
  };
  EXPECT_EXIT(without(), testing::ExitedWithCode(0), "REPRISE_SIM_KERNEL_TIMES=/nowhere cannot be read");
}

}  // namespace
}  // namespace reprise::sim
