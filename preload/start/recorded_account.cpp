#include "preload/start/recorded_account.h"

#include <algorithm>
#include <cstdio>

#include "preload/driver/driver.h"
#include "preload/driver/own_memory.h"

namespace reprise {
namespace {

uint64_t granularity_of(CUdevice device) noexcept {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  size_t bytes = 0;
  const CUresult result = driver().cuMemGetAllocationGranularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  return result == CUDA_SUCCESS && bytes != 0 ? bytes : uint64_t{2} << 20;
}

}  // namespace

void RecordedAccount::open(CUdevice device) noexcept {
  uint64_t known = 0;
  {
    const std::lock_guard lock(mutex_);
    if (open_) return;
    open_ = true;
    device_ = device;
    known = drivers_own_ + ledgers_.of(device).now() + graph_bytes_;
  }
  const uint64_t held = held_by_process(device, known);
  const uint64_t granularity = granularity_of(device);
  const std::lock_guard lock(mutex_);
  footprint_.open(granularity);
  drivers_own_ += held - std::min(held, known);
  most_held_ = 0;  // what is gone before the first tensor comes needs no room beside them
  raise();
}

// The lock is held.
void RecordedAccount::raise() noexcept {
  const BesideLedger& ledger = ledgers_.of(device_);
  const uint64_t held = ledger.now() + graph_bytes_;
  most_held_ = std::max(most_held_, held);
  most_at_once_ = std::max({most_at_once_, footprint_.is_open() ? footprint_.bytes() + held : held, ledger.most()});
}

void RecordedAccount::allocated(uint64_t allocation, uint64_t bytes, CUdevice device) noexcept {
  const std::lock_guard lock(mutex_);
  if (device != device_ || !footprint_.is_open()) return;
  sizes_[allocation] = bytes;
  footprint_.allocated(allocation, bytes);
  raise();
}

void RecordedAccount::freed(uint64_t allocation) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = sizes_.find(allocation);
  if (found == sizes_.end()) return;
  footprint_.freed(allocation, found->second);
  sizes_.erase(found);
}

void RecordedAccount::taken(uint64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  drivers_own_ += bytes;
}

void RecordedAccount::beside(const BesideCall& call, std::optional<uint64_t> free_after) noexcept {
  const std::lock_guard lock(mutex_);
  BesideLedger& ledger = ledgers_.of(call.device);
  if (call.bytes != 0) {
    ledger.made(call.kind, made_by_call(call, free_after, 0));
  } else {
    ledger.given_back(call.kind, given_back_by_call(call, free_after, 0));
  }
  raise();
}

void RecordedAccount::graphs(uint64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  graph_bytes_ = bytes;
  raise();
}

void RecordedAccount::tell(Recorder& recorder, const GraphMemory& graphs) const noexcept {
  const std::lock_guard lock(mutex_);
  const uint64_t held = most_held_ + drivers_own_;
  if (held == 0) return;
  recorder.info("memory.held_bytes", held);
  recorder.info("memory.peak_bytes", most_at_once_ + drivers_own_);
  const auto kind = [&](const char* name, uint64_t count, uint64_t bytes) {
    if (count == 0) return;
    char key[96];
    std::snprintf(key, sizeof key, "unmanaged.%s", name);
    char value[64];
    std::snprintf(value, sizeof value, "%llu %llu", static_cast<unsigned long long>(count),
                  static_cast<unsigned long long>(bytes));
    recorder.info(key, value);
  };
  for (size_t i = 0; i < kBesideKinds; ++i) {
    const BesideLedger::Figures row = ledgers_.of(device_).figures(static_cast<BesideKind>(i));
    kind(words_of(static_cast<BesideKind>(i)), row.count, row.most);
  }
  if (graphs.most_bytes() != 0) kind(words_of(BesideKind::graph), graphs.allocations(), graphs.most_bytes());
  if (drivers_own_ != 0) kind(kDriversOwn, 1, drivers_own_);
}

}  // namespace reprise
