#include "tools/launch/environment.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "tools/cli/files.h"

namespace reprise::tools {
namespace {

std::string inherited(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Puts our library or folder first and keeps those that the user has set.
std::string prepend(const std::string& ours, const char* name) {
  const std::string theirs = inherited(name);
  return theirs.empty() ? ours : ours + ":" + theirs;
}

void set_unless_chosen(Variables& variables, const char* name, const char* value) {
  if (std::getenv(name) == nullptr) variables.emplace_back(name, value);
}

// Caching allocators of frameworks take few large blocks from the driver and hide the tensors inside. These settings
// make them ask the driver for each tensor; other programs do not read them.
void expose_tensors(Variables& variables) {
  // torch reads one name or the other by version; a choice of the user's in either one is respected.
  const bool torch_chosen = !inherited("PYTORCH_CUDA_ALLOC_CONF").empty() || !inherited("PYTORCH_ALLOC_CONF").empty();
  if (!torch_chosen) {
    variables.emplace_back("PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync");
    variables.emplace_back("PYTORCH_ALLOC_CONF", "backend:cudaMallocAsync");
  }
  set_unless_chosen(variables, "XLA_PYTHON_CLIENT_PREALLOCATE", "false");
  set_unless_chosen(variables, "XLA_PYTHON_CLIENT_ALLOCATOR", "platform");
  set_unless_chosen(variables, "TF_GPU_ALLOCATOR", "cuda_malloc_async");
  set_unless_chosen(variables, "TF_FORCE_GPU_ALLOW_GROWTH", "true");
}

Status need_file(const std::string& path, std::string_view what) {
  if (access(path.c_str(), R_OK) == 0) return {};
  return {StatusCode::not_found, fmt::format("{}: {} is missing; install Reprise again", path, what)};
}

}  // namespace

Status check_installation(const Settings& settings) {
  const Installation files = installation();
  Status found = need_file(files.shim, "the preloaded library");
  if (found.ok() && settings.device == "sim") found = need_file(files.sim_driver, "the simulated device");
  return found;
}

Variables make_environment(const Settings& settings) {
  const Installation files = installation();
  Variables variables;
  const auto set = [&](const char* name, const std::string& value) {
    if (!value.empty()) variables.emplace_back(name, value);
  };
  set("LD_PRELOAD", prepend(files.shim, "LD_PRELOAD"));
  set("REPRISE_PLANNER", files.planner);
  if (settings.budget.set()) set("REPRISE_BUDGET", to_variable(settings.budget));
  if (settings.host_memory.set()) set("REPRISE_HOST_MEMORY", to_variable(settings.host_memory));
  set("REPRISE_TRACE", settings.trace);
  set("REPRISE_PLAN", settings.plan);
  set("REPRISE_RUN_LOG", settings.run_log);
  set("REPRISE_POLICY", settings.policy);
  set("REPRISE_SAFETY", settings.safety);
  if (settings.keep_files) set("REPRISE_KEEP", "1");
  if (settings.defragment) set("REPRISE_DEFRAGMENT", "1");
  if (settings.fragmentation_limit != 0) {
    set("REPRISE_FRAGMENTATION_LIMIT", std::to_string(settings.fragmentation_limit));
  }
  if (settings.device == "sim") {
    set("LD_LIBRARY_PATH", prepend(files.sim_folder, "LD_LIBRARY_PATH"));
    set("REPRISE_DRIVER", files.sim_driver);
  }
  expose_tensors(variables);
  return variables;
}

std::string environment_warning() {
  for (const char* name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
    const std::string value = inherited(name);
    if (value.empty() || value.find("backend:cudaMallocAsync") != std::string::npos) continue;
    return fmt::format("{}={} is kept as you set it: torch's own allocator hides tensors from Reprise; add {}", name,
                       value, "backend:cudaMallocAsync");
  }
  return {};
}

}  // namespace reprise::tools
