// What of the machine's surroundings costs speed or words, and never works against Reprise: call stacks, NUMA,
// containers.
#include <fmt/core.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "preload/driver/resolve.h"
#include "tools/doctor/checks.h"

namespace reprise::tools {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Of /proc/self/status.
std::string of_this_process(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name + ":")) continue;
    const size_t value = line.find_first_not_of(" \t", name.size() + 1);
    return value == std::string::npos ? "" : line.substr(value);
  }
  return {};
}

void check_call_stacks(std::vector<Check>& checks) {
  std::string lacking;
  for (const char* name : {"libunwind.so.8", "libdw.so.1"}) {
    if (load_library(name) == nullptr) lacking += (lacking.empty() ? "" : ", ") + std::string(name);
  }
  checks.push_back(
      {"call stacks", lacking.empty() ? Finding::good : Finding::note,
       lacking.empty() ? "libunwind.so.8 finds them, libdw.so.1 functions and lines" : "not found: " + lacking,
       lacking.empty() ? "" : "reports have no call stacks, or no lines: install libunwind8 and libdw1"});
}

// "0", or "0-1": more than one node.
bool are_several(const std::string& nodes) { return nodes.find_first_of(",-") != std::string::npos; }

void check_numa(std::vector<Check>& checks) {
  const std::string online = first_line("/sys/devices/system/node/online");
  if (online.empty() || !are_several(online)) {
    checks.push_back({"NUMA", Finding::good, "one node", ""});
    return;
  }
  const std::string allowed = of_this_process("Mems_allowed_list");
  const bool spread = are_several(allowed);
  checks.push_back({"NUMA", spread ? Finding::note : Finding::good,
                    fmt::format("nodes {}; memory of this process may lie on {}", online, allowed),
                    spread ? "copies are slower from a node that the device is not at: numactl --cpunodebind=N "
                             "--membind=N reprise ..., with the N of nvidia-smi topo -m"
                           : ""});
}

bool is_container() {
  const char* const named = getenv("container");
  return std::filesystem::exists("/.dockerenv") || std::filesystem::exists("/run/.containerenv") ||
         (named != nullptr && *named != '\0');
}

// Only what is seen to be forbidden is told.
void check_container(std::vector<Check>& checks) {
  std::string forbidden;
  const auto add = [&](const std::string& what) { forbidden += (forbidden.empty() ? "" : "; ") + what; };
  std::istringstream numbers(of_this_process("NSpid"));
  const auto namespaces = std::distance(std::istream_iterator<std::string>(numbers), {});
  if (namespaces > 1)
    add("processes have other numbers outside, so NVML cannot say whose memory is whose (--pid=host)");
  int policy = 0;
  if (syscall(SYS_get_mempolicy, &policy, nullptr, 0, nullptr, 0) != 0 && errno == EPERM) {
    add("memory cannot be put on a NUMA node (--cap-add=SYS_NICE)");
  }
  const bool contained = is_container();
  if (!contained && forbidden.empty()) {
    checks.push_back({"container", Finding::good, "none seen", ""});
    return;
  }
  checks.push_back({"container", forbidden.empty() ? Finding::good : Finding::note,
                    forbidden.empty() ? "one that forbids nothing of use" : "forbids something", forbidden});
}

}  // namespace

void check_around(std::vector<Check>& checks) {
  check_call_stacks(checks);
  check_numa(checks);
  check_container(checks);
}

}  // namespace reprise::tools
