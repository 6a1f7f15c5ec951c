#include "tools/cli/files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "preload/base/written_files.h"
#include "preload/files/system_words.h"
#include "tools/cli/message.h"
#include "tools/cli/temporary.h"

namespace reprise::tools {

Status system_error(const std::string& path, int error, std::string_view advice) {
  const StatusCode code = error == ENOENT ? StatusCode::not_found : StatusCode::io_error;
  const std::string words = system_words(error);
  if (error == EMFILE) return {code, fmt::format("{}: {}", path, words)};  // which say what helps
  return {code, fmt::format("{}: {}; {}", path, words, advice)};
}

namespace {

bool write_all(int file, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    content.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

Installation installation() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path root = self.parent_path().parent_path();
  Installation found;
  found.planner = self.string();
  found.shim = (root / "lib/reprise/libreprise.so").string();
  found.nvml = (root / "lib/reprise/nvml/libnvidia-ml.so.1").string();
  // Installed, all libraries lie in one folder; the build has a folder a part.
  const std::filesystem::path installed = root / "lib/reprise/sim";
  const std::filesystem::path sim = std::filesystem::exists(installed, error) ? installed : root / "lib/sim";
  found.sim_folder = sim.string();
  found.sim_driver = (sim / "libcuda.so.1").string();
  return found;
}

Status check_readable(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return system_error(path, errno, "check the file name");
  if (S_ISDIR(info.st_mode)) return system_error(path, EISDIR, "name a file");
  if (access(path.c_str(), R_OK) != 0) return system_error(path, errno, "check its permissions");
  return {};
}

Status write_file(const std::string& path, const std::string& content) {
  if (path == "-") {
    return write_all(STDOUT_FILENO, content) ? Status() : system_error("stdout", errno, "nothing more was written");
  }
  // Where the shell has put it into a file, opening that anew would write over what is there.
  if (const int stream = standard_stream(path); stream >= 0) {
    return write_all(stream, content) ? Status() : system_error(path, errno, "nothing more was written");
  }
  return write_whole(path, [&](const std::string& target) -> Status {
    const int file = open(target.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) return system_error(path, errno, "choose another output file");
    const bool written = write_all(file, content);
    const int error = errno;
    const bool closed = close(file) == 0;
    return written && closed ? Status() : system_error(path, written ? errno : error, "nothing was written");
  });
}

void keep_standard_numbers() {
  for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file) {
    // What is lowest is taken first. The wrong way round, so that who reads or writes is told, as of a closed one.
    if (fcntl(file, F_GETFD) < 0) open("/dev/null", (file == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
  }
}

int finish_stdout(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  return fail(system_error("stdout", errno, "nothing more was written"));
}

Status write_whole(const std::string& path, const std::function<Status(const std::string& target)>& write) {
  struct stat info {};
  // A pipe, /dev/null, memory of another process, stdout by a name: no renaming.
  if (stat(path.c_str(), &info) == 0 && (!S_ISREG(info.st_mode) || info.st_nlink == 0 || standard_stream(path) >= 0)) {
    return write(path);
  }
  const std::string target = fmt::format("{}.{}.tmp", path, getpid());
  const RemovedWhenInterrupted unfinished(target);
  Status status = write(target);
  if (status.ok() && std::rename(target.c_str(), path.c_str()) != 0) {
    status = system_error(path, errno, "nothing was written");
  }
  if (status.ok()) return status;
  unlink(target.c_str());
  std::string message = status.message();
  if (const size_t at = message.find(target); at != std::string::npos) message.replace(at, target.size(), path);
  return {status.code(), message};
}

std::string numbered_name(const std::string& path, int number) {
  const std::filesystem::path wanted(path);
  const std::string name = fmt::format("{}-{}{}", wanted.stem().string(), number, wanted.extension().string());
  return (wanted.parent_path() / name).string();
}

Result<std::string> reserve_name(const std::string& path) {
  std::string name = path;
  for (int number = 2; number <= kMostNames; ++number) {
    const int file = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0) {
      close(file);
      return name;
    }
    if (errno != EEXIST) return system_error(name, errno, "name another output file");
    name = numbered_name(path, number);
  }
  return system_error(path, EEXIST, "remove some of these, or name another output file");
}

Status write_output(std::string& path, bool named, const std::string& content) {
  if (named) return write_file(path, content);
  Result<std::string> free = reserve_name(path);
  if (!free.ok()) return free.status();
  path = std::move(free.value());
  Status written = write_file(path, content);
  if (!written.ok()) unlink(path.c_str());  // the empty file that held the name
  return written;
}

Result<std::string> read_file(const std::string& path) {
  const Status readable = check_readable(path);
  if (!readable.ok()) return readable;
  FILE* file = std::fopen(path.c_str(), "rbe");
  if (file == nullptr) return system_error(path, errno, "check its permissions");
  std::string content;
  char block[65536];
  for (size_t got = 0; (got = std::fread(block, 1, sizeof block, file)) > 0;) content.append(block, got);
  const bool failed = std::ferror(file) != 0;
  std::fclose(file);
  if (failed) return Status(StatusCode::io_error, fmt::format("{}: reading failed; check the disk", path));
  return content;
}

uint64_t file_size(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) ? static_cast<uint64_t>(info.st_size) : 0;
}

namespace {

struct sigaction before_us {};
bool fails_beyond_limit = false;

}  // namespace

void fail_beyond_file_limit() {
  struct sigaction ours {};
  ours.sa_handler = SIG_IGN;
  fails_beyond_limit = sigaction(SIGXFSZ, &ours, &before_us) == 0;
}

void restore_file_limit() {
  if (fails_beyond_limit) sigaction(SIGXFSZ, &before_us, nullptr);
}

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.string();
}

}  // namespace reprise::tools
