#include <fmt/core.h>
#include <gnu/libc-version.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "analyzer/proofs/disassembler.h"
#include "preload/base/address_space.h"
#include "preload/base/config.h"
#include "preload/driver/resolve.h"
#include "tools/cli/files.h"
#include "tools/cli/sizes.h"
#include "tools/cli/temporary.h"
#include "tools/cli/version.h"
#include "tools/doctor/checks.h"
#include "tools/launch/environment.h"

namespace reprise::tools {
namespace {

constexpr uint64_t kLeastHostTier = uint64_t{64} << 20;       // the host tier's first slab
constexpr uint64_t kComfortableHostTier = uint64_t{4} << 30;  // below it, few programs have room

// A value of /proc/meminfo in bytes, 0 when it is not there.
uint64_t memory_information(const std::string& key) {
  std::ifstream file("/proc/meminfo");
  std::string name;
  for (uint64_t kilobytes = 0; file >> name >> kilobytes;) {
    if (name == key + ":") return kilobytes * 1024;
    file.ignore(1000, '\n');
  }
  return 0;
}

// The memory limit of this process's control group, version 2 or 1; 0: none.
uint64_t group_limit() {
  std::ifstream groups("/proc/self/cgroup");
  std::vector<std::string> candidates = {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
  for (std::string line; std::getline(groups, line);) {
    const std::string path = line.substr(line.rfind(':') + 1);
    if (line.rfind("0::", 0) == 0) candidates.push_back("/sys/fs/cgroup" + path + "/memory.max");
    if (line.find(":memory:") != std::string::npos) {
      candidates.push_back("/sys/fs/cgroup/memory" + path + "/memory.limit_in_bytes");
    }
  }
  uint64_t limit = 0;
  for (const std::string& candidate : candidates) {
    std::ifstream file(candidate);
    uint64_t value = 0;
    if (!(file >> value) || value >= (uint64_t{1} << 60)) continue;  // "max", or version 1's way to say so
    limit = limit == 0 ? value : std::min(limit, value);
  }
  return limit;
}

void check_temporary(std::vector<Check>& checks) {
  Result<TemporaryFolder> folder = TemporaryFolder::create();
  if (folder.ok()) {
    checks.push_back(
        {"temporary folder", Finding::good, folder.value().path().substr(0, folder.value().path().rfind('/')), ""});
  } else {
    checks.push_back(
        {"temporary folder", Finding::missing, folder.status().message(), "set TMPDIR to a writable folder"});
  }
}

std::string toolkit_version(const std::string& root) {
  std::ifstream header(root + "/include/cuda.h");
  for (std::string line; std::getline(header, line);) {
    std::istringstream words(line);
    std::string define;
    std::string name;
    int version = 0;
    if (words >> define >> name >> version && define == "#define" && name == "CUDA_VERSION") {
      return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
    }
  }
  return {};
}

void check_toolkit(std::vector<Check>& checks) {
  for (const char* candidate : {std::getenv("CUDA_HOME"), static_cast<char*>(nullptr)}) {
    const std::string root = candidate != nullptr ? candidate : "/usr/local/cuda";
    const std::string version = toolkit_version(root);
    if (version.empty()) continue;
    checks.push_back({"CUDA toolkit", Finding::good, fmt::format("{} in {}", version, root), ""});
    return;
  }
  checks.push_back({"CUDA toolkit", Finding::good, "none (not needed to run programs)", ""});
}

// What reads the machine code of kernels: without it plans are strict.
void check_nvdisasm(std::vector<Check>& checks) {
  const char* const named = std::getenv("REPRISE_NVDISASM");
  const Result<std::string> found = code::find_disassembler(named == nullptr ? "" : named);
  if (found.ok()) {
    checks.push_back({"nvdisasm", Finding::good, found.value(), ""});
    return;
  }
  const std::string why = found.status().message();
  checks.push_back({"nvdisasm", Finding::note, why.substr(0, why.find(';')) + "; so --safety proven is as strict",
                    "pip install nvidia-cuda-nvdisasm"});
}

void check_cupti(std::vector<Check>& checks) {
  std::vector<std::string> names = {"libcupti.so.13", "libcupti.so"};
  if (const char* home = std::getenv("CUDA_HOME")) {
    names.push_back(std::string(home) + "/extras/CUPTI/lib64/libcupti.so");
    names.push_back(std::string(home) + "/lib64/libcupti.so");
  }
  for (const std::string& name : names) {
    if (load_library(name.c_str()) == nullptr) continue;
    checks.push_back({"CUPTI", Finding::good, name, ""});
    return;
  }
  checks.push_back({"CUPTI", Finding::note, "not found: kernels are timed by pairs of events, which is coarser",
                    "install CUPTI 13 or put its folder into LD_LIBRARY_PATH"});
}

void check_file(const std::string& name, const std::string& path, std::vector<Check>& checks) {
  const bool there = access(path.c_str(), R_OK) == 0;
  checks.push_back({name, there ? Finding::good : Finding::missing, there ? path : path + " is not there",
                    there ? "" : "install Reprise again"});
}

void check_shim(const std::string& path, std::vector<Check>& checks) {
  const Status loads = check_preloadable(path);
  if (loads.ok()) return check_file("preloaded library", path, checks);
  const std::string& why = loads.message();
  const size_t advice = why.rfind("; ");
  checks.push_back({"preloaded library", Finding::missing, why.substr(0, advice), why.substr(advice + 2)});
}

// What the preloaded library cannot read, and would say in the middle of what the program says.
std::string unreadable_values() {
  std::string all;
  for (const ConfigVariable& variable :
       unreadable_variables([](const char* name) -> const char* { return getenv(name); })) {
    all += fmt::format("{}{}={} is not readable ({})", all.empty() ? "" : "; ", variable.name, getenv(variable.name),
                       why_unreadable(variable, getenv(variable.name)));
  }
  return all.empty() ? "" : all + ": it is as if it were not set; see `reprise help environment`";
}

// What a bug report needs besides, and a reader of ours cannot guess: the system, and the variables that change what we
// do.
void check_surroundings(std::vector<Check>& checks) {
  struct utsname system {};
  uname(&system);
  checks.push_back(
      {"system", Finding::good,
       fmt::format("{} {} {}, glibc {}", system.sysname, system.release, system.machine, gnu_get_libc_version()), ""});
  std::string variables;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string variable = *one;
    static constexpr const char* kConcern[] = {"REPRISE_",      "CUDA_",   "PYTORCH_",  "XLA_",       "TF_GPU_",
                                               "TF_FORCE_GPU_", "TF_XLA_", "TF_CUDNN_", "LD_PRELOAD="};
    const bool concerns = std::any_of(std::begin(kConcern), std::end(kConcern),
                                      [&](const char* begin) { return variable.rfind(begin, 0) == 0; });
    if (concerns) variables += (variables.empty() ? "" : " ") + variable;
  }
  const std::string unreadable = unreadable_values();
  checks.push_back({"variables", unreadable.empty() ? Finding::good : Finding::note,
                    variables.empty() ? "none that matter" : variables, unreadable});
}

}  // namespace

HostState host_state() {
  HostState state;
  state.total_bytes = memory_information("MemTotal");
  state.available_bytes = memory_information("MemAvailable");
  state.group_bytes = group_limit();
  struct rlimit locked {};
  getrlimit(RLIMIT_MEMLOCK, &locked);
  state.locked_bytes = locked.rlim_cur == RLIM_INFINITY ? 0 : locked.rlim_cur;
  struct rlimit space {};
  getrlimit(RLIMIT_AS, &space);
  state.address_bytes = space.rlim_cur == RLIM_INFINITY ? 0 : space.rlim_cur;
  return state;
}

void check_host(const HostState& state, std::vector<Check>& checks) {
  checks.push_back(
      {"host memory", Finding::good,
       fmt::format("{} available of {}", format_bytes(state.available_bytes), format_bytes(state.total_bytes)), ""});
  checks.push_back(
      {"control group limit", Finding::good, state.group_bytes == 0 ? "none" : format_bytes(state.group_bytes), ""});
  const uint64_t room =
      state.group_bytes == 0 ? state.available_bytes : std::min(state.available_bytes, state.group_bytes);
  const uint64_t tier = room / 10 * 8;
  const bool none = tier < kLeastHostTier;
  const bool little = tier < kComfortableHostTier;
  checks.push_back({"host tier",
                    none     ? Finding::missing
                    : little ? Finding::note
                             : Finding::good,
                    fmt::format("up to {} of pinned memory by default", format_bytes(tier)),
                    little ? "what does not fit the device must fit here: free some memory or raise the limit" : ""});
  const std::string limit = format_bytes(state.locked_bytes);
  checks.push_back(
      {"locked memory limit", Finding::good,
       state.locked_bytes == 0 ? "unlimited" : fmt::format("{} (the driver's pinned memory does not count)", limit),
       ""});
  const bool cramped = state.address_bytes != 0 && state.address_bytes < kLeastAddresses;
  checks.push_back({"address space", cramped ? Finding::missing : Finding::good,
                    state.address_bytes == 0 ? "unlimited" : format_bytes(state.address_bytes),
                    cramped ? "addresses are reserved for tensors, which takes no memory: ulimit -v unlimited" : ""});
  check_temporary(checks);
}

void check_software(bool simulated, std::vector<Check>& checks) {
  const Installation files = installation();
  checks.push_back({"reprise", Finding::good, version_text(), ""});
  check_surroundings(checks);
  check_shim(files.shim, checks);
  if (simulated) check_file("simulated device", files.sim_driver, checks);
  check_toolkit(checks);
  if (!simulated) check_cupti(checks);
  check_nvdisasm(checks);
}

}  // namespace reprise::tools
