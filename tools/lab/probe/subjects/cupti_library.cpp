#include "tools/lab/probe/subjects/cupti_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tools/lab/probe/subjects/subprocess.h"

namespace reprise::probe {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "libcupti.so.13";

bool opens(const std::string& name) {
  void* library = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library) dlclose(library);
  return library != nullptr;
}

}  // namespace

std::string find_cupti(const std::string& python) {
  if (const char* chosen = std::getenv("REPRISE_CUPTI"); chosen && *chosen) return chosen;
  std::vector<std::string> folders = {"/usr/local/cuda/lib64/", "/usr/local/cuda/extras/CUPTI/lib64/"};
  if (const char* home = std::getenv("CUDA_HOME"); home && *home) {
    folders.insert(folders.begin(), {std::string(home) + "/lib64/", std::string(home) + "/extras/CUPTI/lib64/"});
  }
  folders.emplace_back("");  // where the loader finds it
  for (const std::string& folder : folders) {
    if (opens(folder + kName)) return folder + kName;
  }
  for (const std::string& folder : package_folders(python)) {
    std::string path = folder + "/" + kName;
    if (access(path.c_str(), R_OK) == 0) return path;
  }
  return "";
}

std::vector<std::string> package_folders(const std::string& python) {
  const std::string interpreter = find_program(python);
  if (interpreter.empty()) return {};
  const auto outcome =
      run_command({{interpreter, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"}, {}, 20});
  if (!outcome.ok() || outcome.value().exit_code != 0) return {};
  std::vector<std::string> folders;
  std::error_code error;
  const fs::path packages = fs::path(last_line(outcome.value().output)) / "nvidia";
  for (const auto& entry : fs::directory_iterator(packages, error)) {
    if (fs::path folder = entry.path() / "lib"; fs::is_directory(folder, error)) folders.push_back(folder.string());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::string library_path(const std::string& python) {
  std::string path;
  if (const char* set = std::getenv("LD_LIBRARY_PATH"); set && *set) path = std::string(set) + ":";
  if (const char* home = std::getenv("CUDA_HOME"); home && *home) path += std::string(home) + "/lib64:";
  path += "/usr/local/cuda/lib64";
  for (const std::string& folder : package_folders(python)) path += ":" + folder;
  return path;
}

}  // namespace reprise::probe
