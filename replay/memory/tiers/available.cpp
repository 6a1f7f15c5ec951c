#include "replay/memory/tiers/available.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string>

namespace reprise::replay {
namespace {

// Calls visit(line) for each line of a file, without its end; nothing where there is no such file.
template <typename Visit>
void for_each_line(const std::string& path, Visit visit) noexcept {
  FILE* const file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return;
  char line[4096];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    line[std::strcspn(line, "\n")] = 0;
    visit(line);
  }
  std::fclose(file);
}

// The number behind `key` and a blank; 0 where there is none.
uint64_t value_of(const std::string& path, const char* key) noexcept {
  const size_t length = std::strlen(key);
  uint64_t value = 0;
  for_each_line(path, [&](const char* line) {
    if (std::strncmp(line, key, length) == 0 && std::strchr(" :", line[length]) != nullptr)
      std::sscanf(line + length + 1, "%" SCNu64, &value);
  });
  return value;
}

// One number that is all of a file, or `otherwise` when it is none ("max").
uint64_t read_number(const std::string& path, uint64_t otherwise) noexcept {
  uint64_t value = otherwise;
  for_each_line(path, [&](const char* line) { std::sscanf(line, "%" SCNu64, &value); });
  return value;
}

// What the two versions call the same.
struct GroupVersion {
  const char* file_system;
  const char* limits[2];  // the second: what more is only taken slowly
  const char* used;
  const char* cached[2];
};
constexpr GroupVersion kVersions[] = {
    {"cgroup",
     {"memory.limit_in_bytes", nullptr},
     "memory.usage_in_bytes",
     {"total_inactive_file", "total_active_file"}},
    {"cgroup2", {"memory.max", "memory.high"}, "memory.current", {"inactive_file", "active_file"}}};

uint64_t room_of_group(const GroupVersion& version, const std::string& folder) noexcept {
  uint64_t limit = UINT64_MAX;
  for (const char* name : version.limits) {
    if (name != nullptr) limit = std::min(limit, read_number(folder + "/" + name, UINT64_MAX));
  }
  if (limit == UINT64_MAX) return UINT64_MAX;
  uint64_t used = read_number(folder + "/" + version.used, 0);
  for (const char* kind : version.cached) used -= std::min(used, value_of(folder + "/memory.stat", kind));
  return limit - std::min(limit, used);
}

// Is "memory" one of the words between the commas?
bool lists_memory(const std::string& words) noexcept {
  std::string list(1, ',');
  list.append(words).append(1, ',');
  return list.find(",memory,") != std::string::npos;
}

// The process's group of the hierarchy that accounts memory, as /proc/self/cgroup has it; "" where there is none.
std::string own_group(const std::string& root, const GroupVersion& version) noexcept {
  std::string group;
  for_each_line(root + "/proc/self/cgroup", [&](const std::string& line) {
    const size_t controllers = line.find(':') + 1;
    const size_t path = line.find(':', controllers);
    if (controllers == 0 || path == std::string::npos) return;
    const std::string list = line.substr(controllers, path - controllers);
    const bool second = &version == &kVersions[1];
    if (second ? list.empty() : lists_memory(list)) group = line.substr(path + 1);
  });
  return group;
}

// Folders of a process's group may lie below a part of the hierarchy alone: in a container the mount may begin at the
// group itself, whatever /proc says.
std::string below_mount(const std::string& group, const std::string& mount_root) noexcept {
  if (mount_root == "/") return group == "/" ? "" : group;
  const bool below = group.compare(0, mount_root.size(), mount_root) == 0 &&
                     (group.size() == mount_root.size() || group[mount_root.size()] == '/');
  return below ? group.substr(mount_root.size()) : "";
}

uint64_t room_below(const GroupVersion& version, const std::string& mount, std::string group) noexcept {
  uint64_t room = room_of_group(version, mount);
  while (!group.empty()) {
    room = std::min(room, room_of_group(version, mount + group));
    group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
  return room;
}

// A line of /proc/self/mountinfo: number, parent, device, root, mount point, options, ... - file system, source,
// options.
uint64_t room_of_mount(const std::string& root, const char* line) noexcept {
  char mount_root[1024];
  char mount[1024];
  char kind[32];
  char options[1024];
  const char* const rest = std::strstr(line, " - ");
  if (rest == nullptr || std::sscanf(line, "%*s %*s %*s %1023s %1023s", mount_root, mount) != 2 ||
      std::sscanf(rest, " - %31s %*s %1023s", kind, options) != 2) {
    return UINT64_MAX;
  }
  for (const GroupVersion& version : kVersions) {
    const bool accounts = std::strcmp(version.file_system, "cgroup") != 0 || lists_memory(options);
    if (std::strcmp(kind, version.file_system) != 0 || !accounts) continue;
    return room_below(version, root + mount, below_mount(own_group(root, version), mount_root));
  }
  return UINT64_MAX;
}

}  // namespace

uint64_t available_host_memory(const char* root) noexcept {
  const std::string at = root;
  uint64_t room = value_of(at + "/proc/meminfo", "MemAvailable") * 1024;
  for_each_line(at + "/proc/self/mountinfo", [&](const char* line) { room = std::min(room, room_of_mount(at, line)); });
  return room;
}

uint64_t host_memory_cap(uint64_t wanted) noexcept { return wanted != 0 ? wanted : available_host_memory() / 10 * 8; }

}  // namespace reprise::replay
