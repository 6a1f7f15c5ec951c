// What tests of the launcher's commands start from: a trainer of a few MiB, and the command on the simulated device as
// a user types it. Callers: tests of how runs end, and of several at a time.
#pragma once

#include "tests/e2e/harness.h"

namespace reprise::e2e {

class LauncherTest : public InScratch {
 protected:
  static Words trainer(const std::string& steps, const std::string& width = "64") {
    return joined({built("bin/chargpt"), "--layers", "2", "--width", width, "--heads", "4", "--context", "32"},
                  {"--batch", "8", "--seed", "1", "--steps", steps});
  }
  static Outcome reprise(const Words& words, const Words& program = {}, const Environment& more = {}) {
    return e2e::reprise(words, program, merged({{"REPRISE_SIM_GRANULARITY", "64KiB"}}, more));
  }
};

}  // namespace reprise::e2e
