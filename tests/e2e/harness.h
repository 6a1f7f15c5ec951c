// Runs programs in fresh processes, plain or under Reprise on the simulated device, and reads what they leave behind.
// Callers: the end-to-end tests. Paths of the build tree come from REPRISE_BUILD (set by ctest).
#pragma once
#include "tests/support/json.h"
#include "tests/support/said.h"
#include "tests/support/test.h"

namespace reprise::e2e {

using nlohmann::json;
using Words = std::vector<std::string>;
using Environment = std::map<std::string, std::string>;

struct Outcome {
  int exit_code = -1;  // 128 + n when killed by signal n
  std::string out;
  std::string err;
};

// Runs argv[0] with `environment` on top of ours; no plans of earlier runs are used unless it says so. stdin is empty.
// Kills it after `timeout_seconds` (exit code 124).
Outcome run(const Words& argv, const Environment& environment = {}, int timeout_seconds = 120);

// Absolute path of `relative` in the build tree.
std::string built(const std::string& relative);

// The python to look for a PyTorch in: REPRISE_TORCH_PYTHON, that of `tools/setup --torch`, or python3.
std::string torch_python();

// The environment in which a program finds the simulated device instead of a driver: small chunks, so that a model that
// a CPU can train has as many of them as a real one has on a GPU.
Environment simulated_device();

// ... and under the preloaded library, as a user without the launcher would set it.
Environment preloaded(const std::string& budget);

// The environment of a launcher, whose `--device sim` finds the simulated device itself.
Environment launching(const Environment& more = {});

// `reprise WORDS -- PROGRAM` on a simulated device of 16 KiB granules, which the words name (`--device sim`).
Outcome reprise(Words words, const Words& program = {}, const Environment& more = {});

// chargpt at its smallest: one layer, a few hundred KiB.
Words small_trainer(int steps, const Words& more = {});

Environment merged(Environment base, const Environment& more);
Words joined(Words words, const Words& more);

// The simulated driver's own counters, from the file named by REPRISE_SIM_STATS.
json read_stats(const std::string& path);

// The run log: one JSON value a line.
std::vector<json> read_run_log(const std::string& path);
// Its lines of one kind.
std::vector<json> lines_of(const std::vector<json>& log, const std::string& kind);

// What the page of a report was made from.
json data_of_page(const std::string& path);

// A test with a folder of its own.
class InScratch : public testing::Test {
 protected:
  std::string file(const std::string& name) const { return scratch_.path(name); }
  // The last line of a run log.
  json end_of(const std::string& log) const { return lines_of(read_run_log(file(log)), "end").at(0); }

  const Scratch scratch_;
};

}  // namespace reprise::e2e
