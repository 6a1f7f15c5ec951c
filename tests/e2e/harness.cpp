#include "tests/e2e/harness.h"

#include "tests/support/test.h"

namespace reprise::e2e {
namespace {

Words environment_strings(const Environment& changes) {
  // What one test's program did changes no other test, nor whether nvdisasm is on this machine.
  Environment all = {{"REPRISE_KEEP_PLANS", "0"}, {"REPRISE_NVDISASM", "none"}};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) all[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : changes) all[name] = value;
  Words strings;
  for (const auto& [name, value] : all) strings.push_back(name + "=" + value);
  return strings;
}

std::vector<char*> pointers(Words& strings) {
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

Outcome run(const Words& argv, const Environment& environment, int timeout_seconds) {
  Scratch scratch;
  const std::string out_path = scratch.path("out"), err_path = scratch.path("err");
  Words arguments = argv;
  Words variables = environment_strings(environment);
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

Environment launching(const Environment& more) {
  Environment environment = simulated_device();
  environment.erase("LD_LIBRARY_PATH");
  return merged(environment, more);
}

Outcome reprise(Words words, const Words& program, const Environment& more) {
  words.insert(words.begin(), built("bin/reprise"));
  if (!program.empty()) words.emplace_back("--");
  return run(joined(words, program), launching(merged({{"REPRISE_SIM_GRANULARITY", "16KiB"}}, more)));
}

Words small_trainer(int steps, const Words& more) {
  Words argv{built("bin/chargpt")};
  for (const char* word : {"--layers", "1", "--width", "32", "--heads", "2", "--batch", "4", "--context", "16"}) {
    argv.emplace_back(word);
  }
  argv.insert(argv.end(), {"--seed", "1", "--steps", std::to_string(steps)});
  return joined(argv, more);
}

Environment merged(Environment base, const Environment& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

json read_stats(const std::string& path) { return json::parse(read_file(path), nullptr, /*allow_exceptions=*/false); }

std::vector<json> read_run_log(const std::string& path) {
  std::vector<json> lines;
  std::istringstream stream(read_file(path));
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(json::parse(line, nullptr, /*allow_exceptions=*/false));
    EXPECT_FALSE(lines.back().is_discarded()) << "not JSON: " << line;
  }
  return lines;
}

std::vector<json> lines_of(const std::vector<json>& log, const std::string& kind) {
  std::vector<json> result;
  for (const auto& line : log) {
    if (line.value("kind", "") == kind) result.push_back(line);
  }
  return result;
}

json data_of_page(const std::string& path) {
  const std::string text = read_file(path);
  const size_t begin = text.find("id=\"data\">") + 10;
  return json::parse(text.substr(begin, text.find("</script>", begin) - begin));
}

}  // namespace reprise::e2e
