#include "replay/memory/budget.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "preload/driver/driver.h"

namespace reprise::replay {
namespace {

// One number from a file, or `otherwise` when there is none ("max").
uint64_t read_number(const char* path, uint64_t otherwise) noexcept {
  FILE* const file = std::fopen(path, "re");
  if (file == nullptr) return otherwise;
  uint64_t value = 0;
  const bool read = std::fscanf(file, "%" SCNu64, &value) == 1;
  std::fclose(file);
  return read ? value : otherwise;
}

uint64_t available_memory() noexcept {
  FILE* const file = std::fopen("/proc/meminfo", "re");
  if (file == nullptr) return 0;
  char line[128];
  uint64_t kibibytes = 0;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::sscanf(line, "MemAvailable: %" SCNu64, &kibibytes) == 1) break;
  }
  std::fclose(file);
  return kibibytes * 1024;
}

uint64_t cgroup_room() noexcept {
  const uint64_t limit = read_number("/sys/fs/cgroup/memory.max", UINT64_MAX);
  if (limit == UINT64_MAX) return UINT64_MAX;
  const uint64_t used = read_number("/sys/fs/cgroup/memory.current", 0);
  return limit - std::min(limit, used);
}

}  // namespace

uint64_t known_budget(const BudgetRule& rule, uint64_t peak_bytes, uint64_t outside_bytes) noexcept {
  if (rule.bytes != 0) return rule.bytes;
  return static_cast<uint64_t>(rule.fraction * static_cast<double>(peak_bytes + outside_bytes));
}

uint64_t chunk_limit(const BudgetRule& rule, uint64_t chunk_bytes, uint64_t outside_bytes, uint64_t peak_bytes,
                     uint64_t largest_working_set) noexcept {
  const uint64_t budget = known_budget(rule, peak_bytes, outside_bytes);
  const uint64_t chunks = (budget - std::min(budget, outside_bytes)) / chunk_bytes;
  return rule.bytes != 0 ? chunks : std::max(chunks, largest_working_set);
}

void Outside::open() noexcept {
  size_t free = 0;
  size_t total = 0;
  if (driver().cuMemGetInfo(&free, &total) == CUDA_SUCCESS) free_at_start_ = free;
  bytes_ = 0;
}

uint64_t Outside::measure(uint64_t ours) noexcept {
  size_t free = 0;
  size_t total = 0;
  if (free_at_start_ == 0 || driver().cuMemGetInfo(&free, &total) != CUDA_SUCCESS) return bytes_;
  const uint64_t used = free_at_start_ - std::min<uint64_t>(free_at_start_, free);
  bytes_ = used - std::min(used, ours);
  return bytes_;
}

uint64_t host_memory_cap(uint64_t wanted) noexcept {
  if (wanted != 0) return wanted;
  return std::min(available_memory(), cgroup_room()) / 10 * 8;
}

}  // namespace reprise::replay
