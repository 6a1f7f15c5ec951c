#include "replay/memory/budget.h"

#include <algorithm>

#include "preload/driver/driver.h"
#include "preload/driver/own_memory.h"
#include "preload/driver/taken.h"
#include "preload/footprint/headroom.h"

namespace reprise::replay {
uint64_t budget_in_bytes(const BudgetRule& rule, uint64_t peak_bytes, uint64_t outside_bytes) noexcept {
  if (rule.bytes != 0) return rule.bytes;
  const double share = rule.fraction * static_cast<double>(peak_bytes + outside_bytes);
  return std::max(static_cast<uint64_t>(share), rule.least_bytes);
}

uint64_t chunk_limit(const BudgetRule& rule, uint64_t chunk_bytes, uint64_t outside_bytes, uint64_t peak_bytes,
                     uint64_t largest_working_set) noexcept {
  const uint64_t budget = budget_in_bytes(rule, peak_bytes, outside_bytes);
  const uint64_t chunks = (budget - std::min(budget, outside_bytes)) / chunk_bytes;
  return rule.bytes != 0 ? chunks : std::max(chunks, largest_working_set);
}

namespace {
// What the driver may take, or have given back, without a call around which we look.
constexpr uint64_t kUnseen = 128ull << 20;
}  // namespace

void Outside::open(uint64_t held, uint64_t given) noexcept {
  const Answer now = ask();
  if (driver().cuCtxGetDevice(&device_) != CUDA_SUCCESS) device_ = 0;
  const std::optional<uint64_t> own = own_bytes(device_);
  const std::lock_guard lock(mutex_);
  if (now.total != 0) start_.free = now.free;
  start_.own = own;
  start_.held = held;
  start_.given = given;
  headroom_ = footprint::headroom_of(now.total);
  room_ = UINT64_MAX;
  by_calls_ = beside_others_ = 0;
  asked_.about = 0;
  others_ = false;
  bytes_ = held;
}

Outside::Answer Outside::ask() noexcept {
  size_t free = 0;
  size_t total = 0;
  if (driver().cuMemGetInfo(&free, &total) != CUDA_SUCCESS) return {};
  return {free, total};
}

// The lock is held.
uint64_t Outside::settle(const Answer& answer, uint64_t ours, uint64_t bytes) noexcept {
  bytes_ = bytes;
  total_ = answer.total;
  room_ = ours + answer.free - std::min(ours + answer.free, headroom_);
  elsewhere_ = answer.total - std::min(answer.total, answer.free + ours + bytes);
  return bytes;
}

// What is held and no call explains is this program's as far as NVML says so, which is asked without the lock.
uint64_t Outside::take(const Answer& answer, uint64_t ours, uint64_t given) noexcept {
  if (answer.total == 0 || start_.free == 0) return bytes();
  uint64_t held = 0;
  uint64_t explained = 0;
  {
    const std::lock_guard lock(mutex_);
    const uint64_t most = start_.held + start_.free;
    held = most - std::min(most, answer.free + ours);  // if all of it is this program's
    const uint64_t since_start = start_.held + given - std::min(given, start_.given);
    if (held > since_start + by_calls_ + kUnseen || answer.free + ours > most + kUnseen) others_ = true;
    explained = std::min(held, since_start + (others_ ? beside_others_ : by_calls_));
    if (held == explained || !start_.own) return settle(answer, ours, explained);
    if (held == asked_.about && ours == asked_.with_ours) return settle(answer, ours, asked_.told);
  }
  const std::optional<uint64_t> own = own_bytes(device_);
  const bool told = own && own_bytes_follow(device_);
  const std::lock_guard lock(mutex_);
  if (!told) return settle(answer, ours, explained);
  const uint64_t at_start = *start_.own + ours;
  const uint64_t more = start_.held + *own;
  asked_.told = std::min(held, more - std::min(more, at_start));
  asked_.about = held;
  asked_.with_ours = ours;
  return settle(answer, ours, asked_.told);
}

void Outside::before_call() noexcept { before_ = look_before_call(device_); }

void Outside::after_call() noexcept {
  const TakenByCall taken = taken_by_call(before_, device_);
  const std::lock_guard lock(mutex_);
  by_calls_ += taken.bytes;
  beside_others_ += taken.own ? taken.bytes : std::min(taken.bytes, kMostBesideOthers);
}

}  // namespace reprise::replay
