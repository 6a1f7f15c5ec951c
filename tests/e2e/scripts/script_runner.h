// Runs script_program on the simulated device, alone or under Reprise, in a process of its own. Callers: the tests of
// this folder.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/support/said.h"

namespace reprise::replay {

struct Outcome {
  int exit_code = -1;  // 128 + signal when it was killed
  std::string output;
  std::string err;
  std::string run_log;
  uint64_t peak_bytes = 0;  // device memory, as the device counts it
  uint64_t vmm_calls = 0;
  uint64_t copied_bytes = 0;
};

using Variables = std::map<std::string, std::string>;

// Without Reprise.
Outcome run_plain(const std::string& script, const Variables& more = {});
// Under Reprise, with `budget` as REPRISE_BUDGET.
Outcome run_managed(const std::string& script, const std::string& budget, const Variables& more = {});

// Lines of a run log of one kind, and the number behind a key in a line (0: none).
std::vector<std::string> lines_of_kind(const std::string& run_log, const std::string& kind);
uint64_t number_in(const std::string& line, const std::string& key);

// A folder of this test process, removed at its end.
std::string scratch_file(const std::string& name);

}  // namespace reprise::replay
