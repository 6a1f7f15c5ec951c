#include "preload/driver/beside.h"

#include <algorithm>

#include "preload/driver/driver.h"
#include "preload/driver/outside_captures.h"

namespace reprise {
namespace {

// Drivers take whole blocks.
constexpr uint64_t kBlock = 2u << 20;
uint64_t in_blocks(uint64_t bytes) noexcept { return (bytes + kBlock - 1) / kBlock * kBlock; }

void raise(std::atomic<uint64_t>& most, uint64_t value) noexcept {
  uint64_t seen = most.load(std::memory_order_relaxed);
  while (seen < value && !most.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

// By how much what is neither free nor ours has grown.
int64_t growth(const BesideCall& call, uint64_t free_after, uint64_t ours) noexcept {
  return static_cast<int64_t>(*call.free + call.ours) - static_cast<int64_t>(free_after + ours);
}

}  // namespace

const char* words_of(BesideKind kind) noexcept {
  switch (kind) {
    case BesideKind::physical:
      return "cuMemCreate";
    case BesideKind::managed:
      return "cuMemAllocManaged";
    case BesideKind::pool:
      return "memory of a pool of its own kind";
    case BesideKind::array:
      return "array";
    case BesideKind::elsewhere:
      return "allocation";
    case BesideKind::graph:
      break;
  }
  return "memory of CUDA graphs";
}

bool BesideLedgers::any() const noexcept {
  return std::any_of(ledgers_.begin(), ledgers_.end(), [](const BesideLedger& ledger) {
    for (size_t kind = 0; kind < kBesideKinds; ++kind) {
      if (ledger.figures(static_cast<BesideKind>(kind)).count != 0) return true;
    }
    return false;
  });
}

void BesideLedger::made(BesideKind kind, uint64_t bytes) noexcept {
  if (kind == BesideKind::graph) return;
  Entry& entry = entries_[static_cast<size_t>(kind)];
  entry.count.fetch_add(1, std::memory_order_relaxed);
  raise(entry.most, entry.now.fetch_add(bytes, std::memory_order_relaxed) + bytes);
  raise(most_, now());
}

void BesideLedger::saw_free(uint64_t bytes) noexcept {
  uint64_t seen = least_free();
  while (seen > bytes && !least_free_.compare_exchange_weak(seen, bytes, std::memory_order_relaxed)) {
  }
}

void BesideLedger::given_back(BesideKind kind, uint64_t bytes) noexcept {
  if (kind == BesideKind::graph) return;
  std::atomic<uint64_t>& now = entries_[static_cast<size_t>(kind)].now;
  uint64_t seen = now.load(std::memory_order_relaxed);
  while (!now.compare_exchange_weak(seen, seen - std::min(seen, bytes), std::memory_order_relaxed)) {
  }
}

BesideLedger::Figures BesideLedger::figures(BesideKind kind) const noexcept {
  if (kind == BesideKind::graph) return {};
  const Entry& entry = entries_[static_cast<size_t>(kind)];
  return {entry.count.load(std::memory_order_relaxed), entry.now.load(std::memory_order_relaxed),
          entry.most.load(std::memory_order_relaxed)};
}

uint64_t BesideLedger::now() const noexcept {
  uint64_t sum = 0;
  for (const Entry& entry : entries_) sum += entry.now.load(std::memory_order_relaxed);
  return sum;
}

uint64_t made_by_call(const BesideCall& call, std::optional<uint64_t> free_after, uint64_t ours) noexcept {
  if (!call.free || !free_after) return call.bytes;
  const int64_t grown = growth(call, *free_after, ours);
  return std::min(static_cast<uint64_t>(std::max<int64_t>(grown, 0)), in_blocks(call.bytes));
}

uint64_t given_back_by_call(const BesideCall& call, std::optional<uint64_t> free_after, uint64_t ours) noexcept {
  if (call.given_back != 0) return call.given_back;
  if (!call.free || !free_after) return 0;
  return static_cast<uint64_t>(std::max<int64_t>(-growth(call, *free_after, ours), 0));
}

std::optional<uint64_t> free_bytes_of(CUdevice device) noexcept {
  const OutsideCaptures outside;
  CUdevice current = 0;
  size_t free = 0;
  size_t total = 0;
  if (driver().cuCtxGetDevice(&current) != CUDA_SUCCESS || current != device) return {};
  if (driver().cuMemGetInfo(&free, &total) != CUDA_SUCCESS) return {};
  return free;
}

}  // namespace reprise
