#include "replay/memory/budget.h"

#include <algorithm>

#include "preload/driver/driver.h"
#include "preload/driver/taken.h"
#include "preload/footprint/headroom.h"

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

namespace {
// What the driver may take, or have given back, without a call around which we look.
constexpr uint64_t kUnseen = 128ull << 20;
}  // namespace

void Outside::open() noexcept {
  size_t free = 0;
  size_t total = 0;
  if (driver().cuMemGetInfo(&free, &total) == CUDA_SUCCESS) free_at_start_ = free;
  if (driver().cuCtxGetDevice(&device_) != CUDA_SUCCESS) device_ = 0;
  headroom_ = footprint::headroom_of(total);
  room_ = UINT64_MAX;
  by_calls_ = beside_others_ = 0;
  others_ = false;
  bytes_ = 0;
}

bool Outside::taken_since_start(uint64_t ours, uint64_t* bytes, uint64_t* free_bytes) noexcept {
  size_t free = 0;
  size_t total = 0;
  if (free_at_start_ == 0 || driver().cuMemGetInfo(&free, &total) != CUDA_SUCCESS) return false;
  const uint64_t used = free_at_start_ - std::min<uint64_t>(free_at_start_, free);
  *bytes = used - std::min(used, ours);
  *free_bytes = free;
  total_ = total;
  return true;
}

uint64_t Outside::measure(uint64_t ours, uint64_t given) noexcept {
  uint64_t taken = 0;
  uint64_t free = 0;
  if (!taken_since_start(ours, &taken, &free)) return bytes_;
  others_ = others_ || taken > given + by_calls_ + kUnseen || free + ours > free_at_start_ + kUnseen;
  bytes_ = std::min(taken, given + (others_ ? beside_others_ : by_calls_));
  room_ = ours + free - std::min(ours + free, headroom_);
  elsewhere_ = total_ - std::min(total_, free + ours + bytes_);
  return bytes_;
}

void Outside::before_call() noexcept { before_ = look_before_call(device_); }

void Outside::after_call() noexcept {
  const TakenByCall taken = taken_by_call(before_, device_);
  by_calls_ += taken.bytes;
  beside_others_ += taken.own ? taken.bytes : std::min(taken.bytes, kMostBesideOthers);
}

}  // namespace reprise::replay
