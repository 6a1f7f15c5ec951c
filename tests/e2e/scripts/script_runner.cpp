#include "tests/e2e/scripts/script_runner.h"

#include "tests/support/test.h"

namespace reprise::replay {
namespace {

Outcome run(const std::string& script, const Variables& variables) {
  std::ofstream(scratch_file("script")) << script;
  for (const char* name : {"run", "stats"}) std::filesystem::remove(scratch_file(name));
  std::string command = "env TMPDIR=" + scratch_file("") + " REPRISE_SIM_STATS=" + scratch_file("stats");
  for (const auto& [name, value] : variables) command += " '" + name + "=" + value + "'";
  command += std::string(" timeout 60 ") + REPRISE_TEST_PROGRAM + " " + scratch_file("script") + " >" +
             scratch_file("out") + " 2>" + scratch_file("err");
  const int status = std::system(command.c_str());
  Outcome outcome;
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.output = read_file(scratch_file("out"));
  outcome.err = read_file(scratch_file("err"));
  outcome.run_log = read_file(scratch_file("run"));
  const std::string stats = read_file(scratch_file("stats"));
  outcome.peak_bytes = number_in(stats, "peak_bytes");
  outcome.vmm_calls = number_in(stats, "map_calls") + number_in(stats, "unmap_calls");
  outcome.copied_bytes = number_in(stats, "copied_bytes_h2d") + number_in(stats, "copied_bytes_d2h");
  return outcome;
}

Variables common(const Variables& more) {
  Variables variables = {{"LD_LIBRARY_PATH", REPRISE_TEST_SIM_FOLDER},
                         {"REPRISE_SIM_GRANULARITY", "64KiB"},
                         {"REPRISE_SIM_H2D", "0"},
                         {"REPRISE_SIM_D2H", "0"},
                         {"REPRISE_SIM_LATENCY", "0"}};
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

}  // namespace

std::string scratch_file(const std::string& name) {
  static const Scratch scratch;
  const char* kept = std::getenv("REPLAY_TEST_FOLDER");  // its files stay
  return kept == nullptr ? scratch.path(name) : std::string(kept) + "/" + name;
}

Outcome run_plain(const std::string& script, const Variables& more) { return run(script, common(more)); }

Outcome run_managed(const std::string& script, const std::string& budget, const Variables& more) {
  Variables variables = {{"LD_PRELOAD", REPRISE_TEST_PRELOAD},
                         {"REPRISE_DRIVER", std::string(REPRISE_TEST_SIM_FOLDER) + "/libcuda.so.1"},
                         {"REPRISE_BUDGET", budget},
                         {"REPRISE_RUN_LOG", scratch_file("run")}};
  if (!budget.empty()) variables["REPRISE_HOST_MEMORY"] = "256MiB";
  for (const auto& [name, value] : more) variables[name] = value;
  return run(script, common(variables));
}

std::vector<std::string> lines_of_kind(const std::string& run_log, const std::string& kind) {
  std::vector<std::string> found;
  std::istringstream lines(run_log);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.find("{\"kind\":\"" + kind + "\"") == 0) found.push_back(line);
  }
  return found;
}

uint64_t number_in(const std::string& line, const std::string& key) {
  const size_t at = line.find("\"" + key + "\":");
  return at == std::string::npos ? 0 : std::strtoull(line.c_str() + at + key.size() + 3, nullptr, 10);
}

}  // namespace reprise::replay
