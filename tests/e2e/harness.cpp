#include "tests/e2e/harness.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace reprise::e2e {
namespace {

std::vector<std::string> environment_strings(const Environment& changes) {
  Environment all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) all[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : changes) all[name] = value;
  std::vector<std::string> strings;
  for (const auto& [name, value] : all) strings.push_back(name + "=" + value);
  return strings;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (auto& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

int wait_for(pid_t child, int timeout_seconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(timeout_seconds);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return 124;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Outcome run(const std::vector<std::string>& argv, const Environment& environment, int timeout_seconds) {
  Scratch scratch;
  const std::string out_path = scratch.path("out");
  const std::string err_path = scratch.path("err");
  std::vector<std::string> arguments = argv;
  std::vector<std::string> variables = environment_strings(environment);
  std::vector<char*> argument_pointers = pointers(arguments);
  std::vector<char*> variable_pointers = pointers(variables);
  const pid_t child = fork();
  if (child == 0) {
    const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int out = open(out_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const int err = open(err_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    dup2(in, 0);
    dup2(out, 1);
    dup2(err, 2);
    execve(argument_pointers[0], argument_pointers.data(), variable_pointers.data());
    _exit(127);
  }
  Outcome outcome;
  outcome.exit_code = wait_for(child, timeout_seconds);
  outcome.out = read_file(out_path);
  outcome.err = read_file(err_path);
  return outcome;
}

std::string built(const std::string& relative) {
  const char* root = std::getenv("REPRISE_BUILD");
  EXPECT_NE(root, nullptr) << "REPRISE_BUILD names the build tree; ctest sets it";
  return std::string(root == nullptr ? "." : root) + "/" + relative;
}

std::string torch_python() {
  if (const char* named = std::getenv("REPRISE_TORCH_PYTHON")) return named;
  const std::string own = built("../torch/bin/python");
  return access(own.c_str(), X_OK) == 0 ? own : "python3";
}

Scratch::Scratch() {
  std::string pattern = (std::filesystem::temp_directory_path() / "reprise-e2e-XXXXXX").string();
  folder_ = mkdtemp(pattern.data());
}

Scratch::~Scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Environment simulated_device() {
  return {{"LD_LIBRARY_PATH", built("lib/sim")},
          {"REPRISE_SIM_GRANULARITY", "64KiB"},
          {"REPRISE_SIM_MEMORY", "1GiB"},
          {"REPRISE_SIM_STRICT", "1"}};
}

Environment preloaded(const std::string& budget) {
  return merged(simulated_device(), {{"LD_PRELOAD", built("lib/reprise/libreprise.so")},
                                     {"REPRISE_DRIVER", built("lib/sim/libcuda.so.1")},
                                     {"REPRISE_BUDGET", budget}});
}

Outcome reprise(std::vector<std::string> words, const std::vector<std::string>& program, const Environment& more) {
  words.insert(words.begin(), built("bin/reprise"));
  if (!program.empty()) words.emplace_back("--");
  words.insert(words.end(), program.begin(), program.end());
  Environment environment = merged(simulated_device(), {{"REPRISE_SIM_GRANULARITY", "16KiB"}});
  environment.erase("LD_LIBRARY_PATH");
  return run(words, merged(environment, more));
}

std::vector<std::string> small_trainer(int steps, const std::vector<std::string>& more) {
  std::vector<std::string> argv{built("bin/chargpt")};
  for (const char* word : {"--layers", "1", "--width", "32", "--heads", "2", "--batch", "4", "--context", "16"}) {
    argv.emplace_back(word);
  }
  argv.insert(argv.end(), {"--seed", "1", "--steps", std::to_string(steps)});
  argv.insert(argv.end(), more.begin(), more.end());
  return argv;
}

Environment merged(Environment base, const Environment& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}

nlohmann::json read_stats(const std::string& path) {
  return nlohmann::json::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
}

std::vector<nlohmann::json> read_run_log(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(read_file(path));
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false));
    EXPECT_FALSE(lines.back().is_discarded()) << "not JSON: " << line;
  }
  return lines;
}

std::vector<nlohmann::json> lines_of(const std::vector<nlohmann::json>& log, const std::string& kind) {
  std::vector<nlohmann::json> result;
  for (const auto& line : log) {
    if (line.value("kind", "") == kind) result.push_back(line);
  }
  return result;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace reprise::e2e
