// Runs programs in fresh processes, plain or under Reprise on the simulated device, and reads what they leave behind.
// Callers: the end-to-end tests. Paths of the build tree come from REPRISE_BUILD (set by ctest).
#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace reprise::e2e {

struct Outcome {
  int exit_code = -1;  // 128 + n when killed by signal n
  std::string out;
  std::string err;
};

using Environment = std::map<std::string, std::string>;

// Runs argv[0] with `environment` on top of ours. stdin is empty. Kills it after `timeout_seconds` (exit code 124).
Outcome run(const std::vector<std::string>& argv, const Environment& environment = {}, int timeout_seconds = 120);

// Absolute path of `relative` in the build tree.
std::string built(const std::string& relative);

// The python to look for a PyTorch in: REPRISE_TORCH_PYTHON, that of `tools/setup --torch`, or python3.
std::string torch_python();

// A fresh folder for one test, removed when the object goes.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

 private:
  std::string folder_;
};

// The environment in which a program finds the simulated device instead of a driver: small chunks, so that a model that
// a CPU can train has as many of them as a real one has on a GPU.
Environment simulated_device();

// ... and under the preloaded library, as a user without the launcher would set it.
Environment preloaded(const std::string& budget);

// `reprise WORDS -- PROGRAM` on a simulated device of 16 KiB granules, which the words name (`--device sim`).
Outcome reprise(std::vector<std::string> words, const std::vector<std::string>& program = {},
                const Environment& more = {});

// chargpt at its smallest: one layer, a few hundred KiB.
std::vector<std::string> small_trainer(int steps, const std::vector<std::string>& more = {});

Environment merged(Environment base, const Environment& more);

// The simulated driver's own counters, from the file named by REPRISE_SIM_STATS.
nlohmann::json read_stats(const std::string& path);

// The run log: one JSON value a line.
std::vector<nlohmann::json> read_run_log(const std::string& path);
// Its lines of one kind.
std::vector<nlohmann::json> lines_of(const std::vector<nlohmann::json>& log, const std::string& kind);

std::string read_file(const std::string& path);

}  // namespace reprise::e2e
