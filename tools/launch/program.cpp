#include "tools/launch/program.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>

#include "preload/trace/identity.h"

namespace reprise::tools {
namespace {

std::string base_name(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

bool is_executable_file(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

// Programs that start another one: what they will run is not what the plan was made for.
bool starts_others(const std::string& name) {
  static constexpr std::string_view kNames[] = {"bash",    "chrt",    "dash", "env",     "ionice", "mpirun",
                                                "nice",    "nohup",   "sh",   "stdbuf",  "setsid", "srun",
                                                "taskset", "timeout", "zsh",  "numactl", "xargs"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// First line of a script without "#!", empty when the file is none.
std::string interpreter_line(const std::string& path) {
  FILE* file = std::fopen(path.c_str(), "rbe");
  if (file == nullptr) return {};
  char line[512] = {};
  const bool got = std::fgets(line, sizeof line, file) != nullptr;
  std::fclose(file);
  if (!got || line[0] != '#' || line[1] != '!') return {};
  return std::string(line + 2, std::strcspn(line + 2, "\r\n"));
}

// "#!/usr/bin/env -S python3 -u" -> python3's path.
Result<std::string> interpreter(const std::string& line) {
  std::istringstream words(line);
  std::string word;
  words >> word;
  if (base_name(word) == "env") {
    while (words >> word && (word[0] == '-' || word.find('=') != std::string::npos)) {
    }
  }
  return find_program(word);
}

bool is_python(const std::string& name) { return base_name(name).rfind("python", 0) == 0; }

}  // namespace

Result<std::string> find_program(const std::string& name) {
  const Status missing(StatusCode::invalid_argument,
                       fmt::format("{}: program not found; check its name and PATH", name));
  if (name.find('/') != std::string::npos || name == "." || name == "..") {
    struct stat info {};
    if (stat(name.c_str(), &info) != 0) return missing;
    if (S_ISDIR(info.st_mode)) {
      return Status(StatusCode::invalid_argument,
                    fmt::format("{}: a folder, not a program; give the program's file", name));
    }
    if (!is_executable_file(name)) {
      return Status(StatusCode::invalid_argument,
                    fmt::format("{}: not an executable file; check its permissions", name));
    }
    return name;
  }
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (!name.empty() && is_executable_file(candidate)) return candidate;
  }
  return missing;
}

Status check_program(const ProgramArguments& program) {
  if (!program.arguments.empty()) return find_program(program.arguments.front()).status();
  return {StatusCode::invalid_argument, program.separated
                                            ? "no program behind '--'; name the one to run"
                                            : "no program given; put it behind '--', as in: -- python train.py"};
}

uint64_t identity_of_program(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return 0;
  Result<std::string> path = find_program(arguments.front());
  for (int depth = 0; depth < 4 && path.ok(); ++depth) {
    if (starts_others(base_name(path.value()))) return 0;
    const std::string line = interpreter_line(path.value());
    if (line.empty()) return trace::program_identity(path.value().c_str());
    path = interpreter(line);
  }
  return 0;
}

std::string short_name(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return "program";
  if (is_python(arguments.front())) {
    for (size_t i = 1; i < arguments.size(); ++i) {
      if (arguments[i] == "-m" && i + 1 < arguments.size()) return arguments[i + 1];
      if (arguments[i] == "-c") break;
      if (!arguments[i].empty() && arguments[i][0] != '-') return base_name(arguments[i]);
    }
  }
  return base_name(arguments.front());
}

}  // namespace reprise::tools
