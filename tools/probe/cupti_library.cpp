#include "tools/probe/cupti_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "tools/probe/subprocess.h"

namespace reprise::probe {
namespace {

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
  const std::string interpreter = find_program(python);
  if (interpreter.empty()) return "";
  const auto outcome =
      run_command({{interpreter, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"}, {}, 20});
  if (!outcome.ok() || outcome.value().exit_code != 0) return "";
  for (const char* folder : {"/nvidia/cu13/lib/", "/nvidia/cuda_cupti/lib/"}) {
    std::string path = last_line(outcome.value().output) + folder + kName;
    if (access(path.c_str(), R_OK) == 0) return path;
  }
  return "";
}

}  // namespace reprise::probe
