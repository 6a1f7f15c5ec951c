#include "tools/launch/old_files.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "tools/cli/files.h"
#include "tools/cli/message.h"

namespace reprise::tools {
namespace {

std::string free_name_beside(const std::string& path) {
  std::string name = path + ".old";
  struct stat info {};
  for (int number = 2; lstat(name.c_str(), &info) == 0; ++number) name = fmt::format("{}.old-{}", path, number);
  return name;
}

}  // namespace

OldFiles::~OldFiles() { give_back(); }

void OldFiles::set_aside(const std::string& path) {
  struct stat info {};
  if (path.empty() || stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  const std::string name = free_name_beside(path);
  if (std::rename(path.c_str(), name.c_str()) == 0) aside_.emplace_back(path, name);
}

void OldFiles::settle() {
  for (const std::string& path : give_back()) say(fmt::format("{}: nothing was written{}", path, about_old_file(path)));
}

std::vector<std::string> OldFiles::give_back() {
  std::vector<std::string> given_back;
  for (const auto& [path, name] : aside_) {
    if (file_size(path) > 0) {
      unlink(name.c_str());
    } else if (std::rename(name.c_str(), path.c_str()) == 0) {
      given_back.push_back(path);
    }
  }
  aside_.clear();
  return given_back;
}

std::string about_old_file(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? "; the file that was there is as it was" : "";
}

}  // namespace reprise::tools
