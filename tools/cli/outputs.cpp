#include "tools/cli/outputs.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "preload/base/written_files.h"
#include "tools/cli/files.h"

namespace reprise::tools {
namespace {

// What the shell has opened for the program to read, under whatever name.
constexpr const char* kStandardInput = "/proc/self/fd/0";

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool is_regular(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

// Can a new file be made beside this one?
Status check_folder(const std::string& path) {
  struct stat info {};
  const std::string folder = folder_of(path);
  if (stat(folder.c_str(), &info) != 0) return system_error(path, errno, fmt::format("create {} first", folder));
  if (!S_ISDIR(info.st_mode)) return system_error(path, ENOTDIR, "choose another output file");
  if (access(folder.c_str(), W_OK | X_OK) != 0) return system_error(path, errno, "choose another output file");
  return {};
}

// Mapped as they are, by this command or the program, which would end with them.
Status check_own(const std::string& option, const std::string& path) {
  const Installation own = installation();
  for (const std::string& file : {std::string("/proc/self/exe"), own.shim, own.sim_driver}) {
    if (!is_same_file(path, file)) continue;
    return {StatusCode::invalid_argument,
            fmt::format("{} {} is a file of Reprise's own; name another output", option, path)};
  }
  return {};
}

}  // namespace

bool can_be_lost(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode);
}

Outputs& Outputs::reads(const std::string& path) {
  if (is_regular(path)) inputs_.push_back(path);
  return *this;
}

Outputs& Outputs::reads(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) reads(path);
  return *this;
}

Outputs& Outputs::read_by_program(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) reads(names_in_argument(argument));
  return reads(kStandardInput);
}

Outputs& Outputs::writes(const std::string& option, const std::string& path) {
  if (!path.empty() && path != "-") outputs_.push_back({option, path, false});
  return *this;
}

Outputs& Outputs::chooses(const std::string& path) {
  outputs_.push_back({"the default output", path, true});
  return *this;
}

Status Outputs::check_inputs(const Output& output) const {
  if (Status status = check_own(output.option, output.path); !status.ok()) return status;
  for (const std::string& input : inputs_) {
    if (!is_same_file(output.path, input)) continue;
    const std::string what = input == kStandardInput ? "the program's standard input is that file"
                             : output.path == input  ? "this command reads that file"
                                                     : "this is " + input + ", which is read";
    return {StatusCode::invalid_argument,
            fmt::format("{} {}: {}, and would destroy it; name another output", output.option, output.path, what)};
  }
  return {};
}

// What is there keeps the name that we have chosen: it is another one that is written.
bool Outputs::Output::is_elsewhere() const {
  struct stat info {};
  return chosen && lstat(path.c_str(), &info) == 0;
}

Status Outputs::check_others(size_t index) const {
  const Output& output = outputs_[index];
  for (size_t before = 0; before < index; ++before) {
    const Output& other = outputs_[before];
    if (other.is_elsewhere() || !can_be_lost(output.path) || !is_same_file(output.path, other.path)) continue;
    return {StatusCode::invalid_argument,
            fmt::format("{} {}: {} writes the same file; name two of them", output.option, output.path, other.option)};
  }
  return {};
}

Status Outputs::check() const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Output& output = outputs_[i];
    Status status;
    if (output.is_elsewhere()) {
      status = check_folder(output.path);
    } else {
      status = check_inputs(output);
      if (status.ok()) status = check_others(i);
      if (status.ok()) status = check_writable(output.path);
    }
    if (!status.ok()) return status;
  }
  return {};
}

Status check_writable(const std::string& path) {
  if (path == "-") return {};
  if (path.empty()) return {StatusCode::invalid_argument, "the output file has an empty name; give one"};
  struct stat info {};
  if (stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return system_error(path, EISDIR, "name a file");
    if (access(path.c_str(), W_OK) != 0) return system_error(path, errno, "choose another output file");
    return {};
  }
  return check_folder(path);
}

}  // namespace reprise::tools
