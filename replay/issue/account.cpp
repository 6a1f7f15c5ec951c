#include "replay/issue/account.h"

#include <algorithm>

namespace reprise::replay {
namespace {

constexpr int kLooks = 8;  // our chunks may come and go meanwhile

void raise(std::atomic<uint64_t>& most, uint64_t value) noexcept {
  uint64_t seen = most.load(std::memory_order_relaxed);
  while (seen < value && !most.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

// The driver may still have what a call gave back in its stream's order. Where the program has the device to itself,
// the least that was free tells the most that was held.
void Account::take_held_before(uint64_t held) noexcept {
  const BesideLedger& ledger = common_.beside.of(device_);
  const uint64_t most_by_calls = ledger.most();
  uint64_t most = held - std::min(held, ledger.now()) + most_by_calls;
  const Outside::Answer now = Outside::ask();
  if (now.total != 0 && now.total - now.free == held && ledger.least_free() != UINT64_MAX) {
    most = now.total - std::min(now.free, ledger.least_free());
  }
  raise(counters.held_before, most);
  raise(counters.peak_used_bytes, most);
  raise(counters.peak_with_held, most_by_calls);
  raise(counters.most_held, most_by_calls);
}

void Account::never_opened(CUdevice device) noexcept {
  device_ = device;
  take_held_before(common_.held_on(device));
  raise(counters.most_outside, counters.held_before.load());
}

// A budget of what is free counts what the program holds already.
void Account::open(const Config& config, CUdevice device, uint64_t held) noexcept {
  device_ = device;
  take_held_before(held);
  budget = {config.budget.bytes, config.budget.fraction, config.plan_chunk_bytes};
  if (config.budget.free) {
    fixed_budget_.store(budget.bytes = Outside::ask().free + held);
    room.budget_is_what_is_free();
  }
  if (config.audit) budget = {kAll, 0, 0};  // what the driver gives
}

void Account::close(const ManagedMemory& memory) noexcept {
  moved.add(memory);
  counters.requested_bytes.store(0, std::memory_order_relaxed);
  set_footprint(0);
}

BudgetRule Account::rule() const noexcept {
  BudgetRule now = budget;
  now.least_bytes = counters.raised_bytes.load(std::memory_order_relaxed);
  return now;
}

void Account::raise_peak_with_held() noexcept {
  raise(counters.peak_with_held, counters.footprint_bytes.load(std::memory_order_relaxed) +
                                     counters.held_in_outside.load(std::memory_order_relaxed));
}

uint64_t Account::held_by_driver() const noexcept {
  const uint64_t outside = counters.outside_bytes.load(std::memory_order_relaxed);
  return outside - std::min(outside, counters.held_in_outside.load(std::memory_order_relaxed));
}

void Account::look_around(ManagedMemory& memory) noexcept {
  counters.look_again.store(false);
  for (int i = 0; i < kLooks; ++i) {
    const uint32_t changes = memory.chunks.changes();
    const uint64_t ours = memory.chunks.bytes();
    graphs.look(device_);
    const Outside::Answer answer = Outside::ask();
    const bool changed = changes % 2 != 0 || memory.chunks.changes() != changes;
    if (changed && i + 1 < kLooks) continue;
    const uint64_t given = counters.given_bytes.load(std::memory_order_relaxed);
    const uint64_t outside = memory.outside.take(answer, ours, given + graphs.bytes());
    const uint64_t by_calls = common_.beside.of(device_).now() + graphs.bytes();
    const uint64_t held = std::min(outside, by_calls);
    counters.outside_bytes.store(outside, std::memory_order_relaxed);
    around.hold(outside);
    counters.held_in_outside.store(held, std::memory_order_relaxed);
    raise(counters.most_outside, outside);
    raise(counters.most_held, held);
    raise_peak(ours + outside);
    raise_peak_with_held();
    room.set(figures_of(memory.outside));
    return;
  }
}

void Account::look_at_graphs(ManagedMemory& memory) noexcept {
  if (!graphs.any()) return;
  const uint64_t before = graphs.bytes();
  graphs.look(device_);
  if (graphs.bytes() != before) look_around(memory);
}

void Account::set_footprint(uint64_t bytes) noexcept {
  counters.footprint_bytes.store(bytes, std::memory_order_relaxed);
  raise_peak_with_held();
}

uint64_t Account::peak_beside_outside(uint64_t peak_footprint) const noexcept {
  if (counters.most_held.load(std::memory_order_relaxed) == 0) return peak_footprint;
  const uint64_t peak = counters.peak_with_held.load(std::memory_order_relaxed);
  return peak - std::min(peak, counters.held_in_outside.load(std::memory_order_relaxed));
}

uint64_t Account::peak_of_program() const noexcept {
  const bool any = counters.most_held.load(std::memory_order_relaxed) != 0;
  return (any ? counters.peak_with_held : counters.peak_footprint_bytes).load(std::memory_order_relaxed) +
         held_by_driver();
}

void Account::raise_peak(uint64_t bytes) noexcept { raise(counters.peak_used_bytes, bytes); }

void Account::told_least(uint64_t bytes) noexcept { raise(least_told, bytes); }

// What was taken for the program's own for a while, and was another one's, is in the peak and no longer in what is
// held.
uint64_t Account::peak_used(bool others) const noexcept {
  const uint64_t at_once = counters.peak_used_bytes.load(std::memory_order_relaxed);
  if (!others) return at_once;
  return std::min(at_once, counters.peak_device_bytes.load(std::memory_order_relaxed) + outside_at_most(others));
}

uint64_t Account::outside_at_most(bool others) const noexcept {
  return (others ? counters.outside_bytes : counters.most_outside).load(std::memory_order_relaxed);
}

}  // namespace reprise::replay
