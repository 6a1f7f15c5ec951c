#include "analyzer/proofs/disassembler.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

extern char** environ;

namespace reprise::code {
namespace {

constexpr int kMostSeconds = 300;
constexpr size_t kMostText = size_t{1} << 30;

bool is_program(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

std::string first_match(const std::string& pattern) {
  glob_t found{};
  std::string path;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc && path.empty(); ++i) {
      if (is_program(found.gl_pathv[i])) path = found.gl_pathv[i];
    }
  }
  globfree(&found);
  return path;
}

std::string in_path() {
  const char* all = std::getenv("PATH");
  std::string_view rest = all == nullptr ? "" : all;
  while (!rest.empty()) {
    const std::string folder(rest.substr(0, rest.find(':')));
    rest.remove_prefix(folder.size() < rest.size() ? folder.size() + 1 : rest.size());
    if (std::string path = folder + "/nvdisasm"; !folder.empty() && is_program(path)) return path;
  }
  return "";
}

class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { shut(); }

  int get() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }
  void shut() {
    if (open()) close(descriptor_);
    descriptor_ = -1;
  }

 private:
  int descriptor_;
};

class TemporaryFile {
 public:
  TemporaryFile(const std::string& folder, const std::string& content) : path_(folder + "/reprise-code-XXXXXX") {
    const OpenFile file(mkostemp(path_.data(), O_CLOEXEC));
    made_ = file.open();
    size_t done = 0;
    while (made_ && done < content.size()) {
      const ssize_t written = write(file.get(), content.data() + done, content.size() - done);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) break;
      done += static_cast<size_t>(written);
    }
    whole_ = made_ && done == content.size();
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (made_) unlink(path_.c_str());
  }

  const std::string& path() const { return path_; }
  bool whole() const { return whole_; }

 private:
  std::string path_;
  bool made_ = false;
  bool whole_ = false;
};

// Nothing is preloaded into it.
std::vector<char*> environment_of_child() {
  std::vector<char*> all;
  for (char** one = environ; *one != nullptr; ++one) {
    if (!std::string_view(*one).starts_with("LD_PRELOAD=")) all.push_back(*one);
  }
  all.push_back(nullptr);
  return all;
}

// Its output and errors are one text, so that a failure says why.
pid_t start(std::vector<std::string>& words, int output) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  pid_t child = 0;
  std::vector<char*> environment = environment_of_child();
  const int error = posix_spawn(&child, pointers[0], &actions, nullptr, pointers.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  errno = error;
  return error == 0 ? child : -1;
}

// Whether all of the output was there in time.
bool read_all(int output, std::string& text) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(kMostSeconds);
  std::array<char, 65536> buffer{};
  while (Clock::now() < end && text.size() <= kMostText) {
    pollfd ready{output, POLLIN, 0};
    if (poll(&ready, 1, 1000) <= 0) continue;
    const ssize_t got = read(output, buffer.data(), buffer.size());
    if (got == 0) return true;
    if (got < 0 && errno != EINTR) return false;
    if (got > 0) text.append(buffer.data(), static_cast<size_t>(got));
  }
  return false;
}

Result<std::string> run(std::vector<std::string> words) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    return Status(StatusCode::io_error, fmt::format("{}: {}", words[0], std::strerror(errno)));
  const OpenFile reading(ends[0]);
  OpenFile writing(ends[1]);
  const pid_t child = start(words, writing.get());
  if (child < 0) return Status(StatusCode::io_error, fmt::format("{}: {}", words[0], std::strerror(errno)));
  writing.shut();
  std::string text;
  const bool whole = read_all(reading.get(), text);
  if (!whole) kill(child, SIGKILL);
  int state = 0;
  while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  if (!whole) return Status(StatusCode::io_error, fmt::format("{}: takes too long, or writes too much", words[0]));
  if (!WIFEXITED(state) || WEXITSTATUS(state) != 0) {
    const std::string line = text.substr(0, text.find('\n'));
    return Status(StatusCode::io_error, fmt::format("{}: it failed: {}", words[0], line.substr(0, 200)));
  }
  return text;
}

}  // namespace

Result<std::string> find_disassembler(const std::string& named, const std::string& near) {
  if (named == "none") return Status(StatusCode::not_found, "REPRISE_NVDISASM=none: no kernel's code is read");
  if (!named.empty()) {
    if (is_program(named)) return named;
    return Status(StatusCode::invalid_argument, fmt::format("REPRISE_NVDISASM={}: {}", named, std::strerror(errno)));
  }
  if (std::string path = in_path(); !path.empty()) return path;
  std::vector<std::string> patterns;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* root = std::getenv(name); root != nullptr && *root != '\0')
      patterns.push_back(std::string(root) + "/bin/nvdisasm");
  }
  patterns.emplace_back("/usr/local/cuda/bin/nvdisasm");
  std::vector<std::string> roots;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const char* root = std::getenv(name); root != nullptr && *root != '\0') roots.emplace_back(root);
  }
  if (const char* home = std::getenv("HOME"); home != nullptr) roots.push_back(std::string(home) + "/.local");
  roots.emplace_back("/usr/local");
  roots.emplace_back("/usr");
  std::vector<std::string> folders;
  for (const char* package : {"/site-packages", "/dist-packages"}) {
    if (const size_t at = near.find(std::string(package) + "/"); at != std::string::npos)
      folders.push_back(near.substr(0, at) + package);
    for (const std::string& root : roots) folders.push_back(root + "/lib/python3*" + package);
  }
  for (const std::string& folder : folders) {
    patterns.push_back(folder + "/triton/backends/nvidia/bin/nvdisasm");
    patterns.push_back(folder + "/nvidia/*/bin/nvdisasm");
  }
  for (const std::string& pattern : patterns) {
    if (std::string path = first_match(pattern); !path.empty()) return path;
  }
  return Status(
      StatusCode::not_found,
      "nvdisasm: not found; `pip install nvidia-cuda-nvdisasm` has it, PyTorch's Triton and CUDA toolkits, too; "
      "REPRISE_NVDISASM names another place");
}

Result<std::string> disassemble(const std::string& program, const std::string& cubin,
                                const std::vector<uint32_t>& symbols, const std::string& folder) {
  const TemporaryFile file(folder, cubin);
  if (!file.whole()) return Status(StatusCode::io_error, fmt::format("{}: {}", file.path(), std::strerror(errno)));
  std::vector<std::string> words{program, "-c"};
  if (!symbols.empty()) {
    std::string all;
    for (const uint32_t symbol : symbols) all += fmt::format("{}{}", all.empty() ? "" : ",", symbol);
    words.insert(words.end(), {"-fun", all});
  }
  words.push_back(file.path());
  return run(std::move(words));
}

}  // namespace reprise::code
