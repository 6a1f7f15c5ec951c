#include "tools/launch/environment.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "preload/files/file_names.h"
#include "tools/cli/files.h"
#include "tools/launch/frameworks.h"

namespace reprise::tools {
namespace {

// Puts our library or folder first and keeps those that the user has set.
std::string prepend(const std::string& ours, const char* name) {
  const std::string theirs = inherited(name);
  return theirs.empty() ? ours : ours + ":" + theirs;
}

Status need_file(const std::string& path, std::string_view what) {
  if (access(path.c_str(), R_OK) == 0) return {};
  return {StatusCode::not_found, fmt::format("{}: {} is missing; install Reprise again", path, what)};
}

// NVML's library, where the program is to be told of a budget instead of the device; else empty.
std::string real_nvml(const Settings& settings) {
  if (!settings.budget.set() || settings.budget.percent > 0 || !settings.plan.empty()) return {};
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
  const link_map* map = nullptr;
  if (library == nullptr || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) return {};
  std::error_code error;
  const std::filesystem::path found = std::filesystem::canonical(map->l_name, error);
  // This command may itself be run by one that preloads the library in front of it: what stands behind that is known.
  const bool is_ours = std::filesystem::equivalent(found, installation().nvml, error);
  return is_ours ? inherited("REPRISE_NVML") : found.string();
}

// Ours, in the order in which the loader looks into them.
std::vector<std::string> preloaded_libraries(const Settings& settings) {
  const Installation files = installation();
  std::vector<std::string> libraries = {files.shim};
  if (!real_nvml(settings).empty()) libraries.push_back(files.nvml);
  if (settings.device == "sim") {
    for (auto& path : simulated_libraries(settings.framework, files.sim_folder)) libraries.push_back(std::move(path));
  }
  return libraries;
}

// Of the shim's variables those that name files; what else the user has set may be meant to stand behind an option.
bool is_our_file(std::string_view variable) {
#define REPRISE_VARIABLE(field, name, type, values, ...) \
  if (variable == name) return std::string_view(values) == "path";
#include "preload/base/variables.def"
#undef REPRISE_VARIABLE
  return false;
}

}  // namespace

// LD_PRELOAD is a list, in which there is no way to quote what separates.
Status check_preloadable(const std::string& path) {
  if (path.find_first_of(" :") == std::string::npos) return {};
  return {StatusCode::unsupported,
          fmt::format("{}: there is a space or a colon in this path, and the loader cannot preload from it; install "
                      "Reprise elsewhere",
                      path)};
}

Status check_installation(const Settings& settings) {
  const Installation files = installation();
  Status found = check_preloadable(files.shim);
  if (found.ok()) found = need_file(files.shim, "the preloaded library");
  if (found.ok() && settings.device == "sim") {
    found = need_file(files.sim_driver, "the simulated device");
    if (found.ok()) found = check_simulated_libraries(settings.framework, files.sim_folder);
  }
  return found;
}

Variables make_environment(const Settings& settings) {
  const Installation files = installation();
  Variables variables;
  const auto set = [&](const char* name, const std::string& value) {
    if (!value.empty()) variables.emplace_back(name, value);
  };
  set("LD_PRELOAD", prepend(fmt::format("{}", fmt::join(preloaded_libraries(settings), ":")), "LD_PRELOAD"));
  set("REPRISE_NVML", real_nvml(settings));
  set("REPRISE_PLANNER", files.planner);
  set("REPRISE_LAUNCHER", std::to_string(getpid()));
  if (settings.budget.set()) set("REPRISE_BUDGET", to_variable(settings.budget));
  if (settings.host_memory.set()) set("REPRISE_HOST_MEMORY", to_variable(settings.host_memory));
  set("REPRISE_TRACE", protected_name(settings.trace));
  set("REPRISE_PLAN", protected_name(settings.plan));
  set("REPRISE_RUN_LOG", protected_name(settings.run_log));
  set("REPRISE_POLICY", settings.policy);
  set("REPRISE_SAFETY", settings.safety);
  set("REPRISE_EXAMINE", settings.examine);
  if (settings.audit) set("REPRISE_AUDIT", "1");
  if (settings.audit_iterations != 0) set("REPRISE_AUDIT_ITERATIONS", std::to_string(settings.audit_iterations));
  set("REPRISE_KEEP_PLANS", settings.keeps.plans);
  if (settings.keeps.files) set("REPRISE_KEEP", "1");
  if (settings.defragment) set("REPRISE_DEFRAGMENT", "1");
  if (settings.fragmentation_limit != 0) {
    set("REPRISE_FRAGMENTATION_LIMIT", std::to_string(settings.fragmentation_limit));
  }
  if (settings.device == "sim") {
    set("LD_LIBRARY_PATH", prepend(files.sim_folder, "LD_LIBRARY_PATH"));
    set("REPRISE_DRIVER", files.sim_driver);
  }
  set("REPRISE_TORCH_BACKEND", torch_backend(settings.framework));
  for (const auto& variable : allocator_variables(settings.framework)) variables.push_back(variable);
  return variables;
}

std::vector<std::string> environment_warnings(const Settings& settings) {
  std::vector<std::string> lines =
      conflicts(settings.framework, preloaded_libraries(settings), settings.device == "sim");
  for (const auto& [name, ours] : make_environment(settings)) {
    const std::string theirs = inherited(name.c_str());
    if (!is_our_file(name) || theirs.empty() || theirs == ours) continue;
    lines.push_back(fmt::format("{}={} has no effect here: the command sets it to {}", name, theirs, ours));
  }
  return lines;
}

}  // namespace reprise::tools
