// While everything fits, no step changes a mapping: counted in calls that the library makes, of runs of which one is
// longer. Both begin alike, so what differs are steps in the middle.
#include <fstream>

#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

using Calls = std::map<std::string, long>;

// How often the library made each call about memory.
Calls calls_of(const Words& argv, const std::string& safety, const std::string& budget) {
  const Scratch scratch;
  const Environment environment =
      merged(preloaded(budget), {{"REPRISE_SAFETY", safety}, {"REPRISE_SIM_CALLS", scratch.path("calls")}});
  const Outcome outcome = run(argv, environment);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  Calls made;
  std::ifstream file(scratch.path("calls"));
  std::string name;
  long ours = 0;
  for (long others = 0; file >> name >> ours >> others;) {
    for (const char* one : {"cuMemCreate", "cuMemRelease", "cuMemMap", "cuMemSetAccess", "cuMemUnmap"}) {
      if (name == one) made[name] = ours;
    }
  }
  return made;
}

void expect_nothing_is_mapped(const std::function<Words(int)>& program, int few, int many) {
  for (const char* safety : {"strict", "audited", "trusted"}) {
    for (const char* budget : {"100%", "200MiB"}) {
      const Calls learned = calls_of(program(few), safety, budget);
      EXPECT_GT(learned.at("cuMemMap"), 0) << "the library made none, so none was counted";
      EXPECT_EQ(calls_of(program(many), safety, budget), learned) << safety << " " << budget;
    }
  }
}

TEST(Fits, TrainingStepsMapNothing) {
  expect_nothing_is_mapped([](int steps) { return small_trainer(steps, {"--layers", "3", "--width", "64"}); }, 6, 14);
}

TEST(Fits, NorDoStepsOfADriverProgram) {
  const auto program = [](int rounds) {
    return Words{built("bin/phases_program"), built("bin/hash_kernels.cubin"), "steps", std::to_string(rounds)};
  };
  expect_nothing_is_mapped(program, 10, 24);
}

}  // namespace
}  // namespace reprise::e2e
