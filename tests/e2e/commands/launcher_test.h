// What tests of the launcher's commands start from: a trainer of a few MiB, and the command on the simulated device as
// a user types it. Callers: tests of how runs end, and of several at a time.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/e2e/harness.h"

namespace reprise::e2e {

class LauncherTest : public testing::Test {
 protected:
  static std::vector<std::string> trainer(const std::string& steps, const std::string& width = "64") {
    return {built("bin/chargpt"),
            "--layers",
            "2",
            "--width",
            width,
            "--heads",
            "4",
            "--context",
            "32",
            "--batch",
            "8",
            "--seed",
            "1",
            "--steps",
            steps};
  }
  static Outcome reprise(std::vector<std::string> arguments, const std::vector<std::string>& program = {}) {
    arguments.insert(arguments.begin(), built("bin/reprise"));
    if (!program.empty()) arguments.emplace_back("--");
    arguments.insert(arguments.end(), program.begin(), program.end());
    Environment environment = simulated_device();
    environment.erase("LD_LIBRARY_PATH");
    return run(arguments, environment);
  }
  static bool has(const std::string& text, const std::string& word) { return text.find(word) != std::string::npos; }
};

}  // namespace reprise::e2e
