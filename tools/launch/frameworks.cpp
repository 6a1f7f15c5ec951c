#include "tools/launch/frameworks.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string_view>

namespace reprise::tools {
namespace {

struct Allocator {
  std::string_view framework;
  const char* variable;
  const char* alias;
  const char* value;
};

constexpr Allocator kAllocators[] = {
#define ALLOCATOR(framework, variable, alias, value) {#framework, variable, alias, value},
#include "tools/launch/frameworks.def"
#undef ALLOCATOR
};

bool concerns(const std::string& framework, const Allocator& row) {
  return framework == "auto" || framework == row.framework;
}

// "0" is what "false" is, and other settings may stand beside the one that matters.
bool has_setting(std::string value, const std::string& wanted) {
  std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) { return std::tolower(c); });
  std::string lower = wanted;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (value.find(lower) != std::string::npos) return true;
  return (wanted == "false" && value == "0") || (wanted == "true" && value == "1");
}

std::vector<std::string> wanted_libraries(const std::string& framework, const std::string& folder) {
  if (framework == "none") return {};
  std::vector<std::string> paths;
  for (const char* name : {"libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libcupti.so.13"}) {
    paths.push_back(folder + "/" + name);
  }
  return paths;
}

bool is_installed(const std::string& path) { return access(path.c_str(), R_OK) == 0; }

// "/a/libcudart.so.13.0.96" -> "libcudart"
std::string stem(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.substr(0, name.find(".so"));
}

// The loader takes colons and spaces.
std::vector<std::string> preloaded_by_user() {
  std::vector<std::string> paths;
  std::string value = inherited("LD_PRELOAD");
  while (!value.empty()) {
    const size_t end = value.find_first_of(": ");
    if (end != 0) paths.push_back(value.substr(0, end));
    value = end == std::string::npos ? "" : value.substr(end + 1);
  }
  return paths;
}

}  // namespace

std::string inherited(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::vector<std::pair<std::string, std::string>> allocator_variables(const std::string& framework) {
  std::vector<std::pair<std::string, std::string>> variables;
  for (const Allocator& row : kAllocators) {
    const bool chosen = !inherited(row.variable).empty() || !inherited(row.alias).empty();
    if (concerns(framework, row) && !chosen) variables.emplace_back(row.variable, row.value);
  }
  return variables;
}

std::string torch_backend(const std::string& framework) {
  for (const Allocator& row : kAllocators) {
    if (row.framework != "torch" || !concerns(framework, row)) continue;
    const std::string own = inherited(row.variable);
    const std::string chosen = own.empty() ? inherited(row.alias) : own;
    return chosen.empty() ? "launcher" : has_setting(chosen, row.value) ? "user" : "";
  }
  return {};
}

std::vector<std::string> simulated_libraries(const std::string& framework, const std::string& folder) {
  std::vector<std::string> paths = wanted_libraries(framework, folder);
  paths.erase(std::remove_if(paths.begin(), paths.end(), [](const auto& path) { return !is_installed(path); }),
              paths.end());
  return paths;
}

Status check_simulated_libraries(const std::string& framework, const std::string& folder) {
  if (framework == "auto") return {};
  for (const std::string& path : wanted_libraries(framework, folder)) {
    if (is_installed(path)) continue;
    return {
        StatusCode::not_found,
        fmt::format("{}: this part of the simulated device, which --framework {} needs, is missing; run tools/setup "
                    "--torch, then build again",
                    path, framework)};
  }
  return {};
}

std::vector<std::string> conflicts(const std::string& framework, const std::vector<std::string>& ours, bool simulated) {
  std::vector<std::string> lines;
  for (const Allocator& row : kAllocators) {
    const std::string value = inherited(row.variable);
    if (!concerns(framework, row) || value.empty() || has_setting(value, row.value)) continue;
    // PyTorch asks NVML then, and calls it without looking whether it is there.
    if (simulated && has_setting(value, "expandable_segments:True")) {
      lines.push_back(
          fmt::format("{}={} is kept as you set it: expandable_segments needs NVML, without which PyTorch crashes, and "
                      "the simulated "
                      "device has none; leave it out",
                      row.variable, value));
      continue;
    }
    lines.push_back(fmt::format("{}={} is kept as you set it: {}'s own allocator hides tensors from Reprise; add {}",
                                row.variable, value, row.framework, row.value));
  }
  for (const std::string& theirs : preloaded_by_user()) {
    const bool behind =
        std::any_of(ours.begin(), ours.end(), [&](const auto& path) { return stem(path) == stem(theirs); });
    if (behind) lines.push_back(fmt::format("LD_PRELOAD: {} stands behind Reprise's own and will not be used", theirs));
  }
  return lines;
}

}  // namespace reprise::tools
