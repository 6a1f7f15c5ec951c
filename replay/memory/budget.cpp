#include "replay/memory/budget.h"

#include <algorithm>

#include "preload/driver/driver.h"

namespace reprise::replay {
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

}  // namespace reprise::replay
