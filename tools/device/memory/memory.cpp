#include "tools/device/memory/memory.h"

#include <atomic>
#include <vector>

#include "preload/footprint/footprint.h"
#include "tools/device/base/settings.h"
#include "tools/device/engines/device.h"
#include "tools/device/memory/arena.h"
#include "tools/device/memory/host.h"
#include "tools/device/memory/pool.h"
#include "tools/device/memory/vmm.h"
#include "tools/device/streams/context.h"

namespace reprise::sim {
MemoryMap& memory_map() {
  static MemoryMap& instance = *new MemoryMap;
  return instance;
}

uint64_t next_buffer_id() noexcept {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

std::map<uint64_t, Range>::iterator MemoryMap::locate(uint64_t address) {
  auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return ranges_.end();
  --next;
  return address < next->second.end() ? next : ranges_.end();
}

std::map<uint64_t, Range>::const_iterator MemoryMap::locate(uint64_t address) const {
  return const_cast<MemoryMap*>(this)->locate(address);
}

bool MemoryMap::add(Range range) {
  const std::unique_lock lock(mutex_);
  const auto next = ranges_.lower_bound(range.base);
  if (next != ranges_.end() && next->first < range.end()) return false;
  if (locate(range.base) != ranges_.end()) return false;
  const uint64_t base = range.base;
  ranges_.emplace_hint(next, base, std::move(range));
  return true;
}

std::optional<Range> MemoryMap::remove(uint64_t base) {
  const std::unique_lock lock(mutex_);
  auto node = ranges_.extract(base);
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped());
}

std::optional<Range> MemoryMap::find(uint64_t address) const {
  const std::shared_lock lock(mutex_);
  const auto found = locate(address);
  if (found == ranges_.end()) return std::nullopt;
  return found->second;
}

MemoryMap::Place MemoryMap::place(uint64_t address, uint64_t bytes) const {
  const std::shared_lock lock(mutex_);
  Place place;
  auto found = locate(address);
  if (found == ranges_.end()) {
    place.pageable = true;
    return place;
  }
  place.known = true;
  place.host = found->second.is_host();
  place.device = found->second.device;
  const uint64_t end = address + bytes;
  uint64_t covered = address;
  while (found != ranges_.end() && found->first <= covered && covered < end) {
    const Range& range = found->second;
    if (range.kind == RangeKind::mapping && range.readers == 0) place.accessible = false;
    covered = range.end();
    // Only mappings join to larger ranges.
    if (range.kind != RangeKind::mapping) break;
    ++found;
  }
  place.complete = covered >= end && end >= address;
  return place;
}

bool MemoryMap::may_touch(const Context& context, uint64_t address) const {
  const std::shared_lock lock(mutex_);
  const auto found = locate(address);
  if (found == ranges_.end()) return true;
  const Range& range = found->second;
  const uint64_t own = 1ull << context.device.ordinal;
  if (range.kind == RangeKind::mapping) return range.readers == 0 || (range.readers & own) != 0;  // 0: it faults itself
  if (range.kind == RangeKind::pool) return (range.pool->readers.load(std::memory_order_relaxed) & own) != 0;
  const bool foreign = range.kind == RangeKind::device && range.device != &context.device;
  return !foreign || (context.peers.load(std::memory_order_relaxed) & 1ull << range.device->ordinal) != 0;
}

namespace {

// Bytes that the device is charged for allocations, which share blocks. By device; the rule is the replay's, too.
struct Charges {
  std::mutex mutex;
  std::map<const Device*, footprint::Footprint> footprints;
  std::map<const Device*, footprint::Footprint> of_graphs;  // alone, for what the device tells of them
};

Charges& charges() {
  static Charges& instance = *new Charges;
  return instance;
}

// A module's variables come with its image, in memory of its own.
bool shares_blocks(RangeKind kind) { return kind != RangeKind::global; }

// The lock is held.
void reserve_for_graphs(const Range& range, bool add) {
  if (range.kind != RangeKind::graph) return;
  footprint::Footprint& own = charges().of_graphs[range.device];
  if (!own.is_open()) own.open(settings().granularity);
  add ? own.allocated(range.base, range.bytes) : own.freed(range.base, range.bytes);
  range.device->graph_memory.reserved.set(own.bytes());
}

bool charge(const Range& range) {
  if (!shares_blocks(range.kind)) return range.device->charge(round_up(range.bytes, kDeviceUnit));
  const std::lock_guard lock(charges().mutex);
  footprint::Footprint& all = charges().footprints[range.device];
  if (!all.is_open()) all.open(settings().granularity);
  const uint64_t before = all.bytes();
  all.allocated(range.base, range.bytes);
  if (range.device->charge(all.bytes() - before)) {
    reserve_for_graphs(range, true);
    return true;
  }
  all.freed(range.base, range.bytes);
  return false;
}

void refund(const Range& range) {
  if (!shares_blocks(range.kind)) return range.device->refund(round_up(range.bytes, kDeviceUnit));
  const std::lock_guard lock(charges().mutex);
  footprint::Footprint& all = charges().footprints[range.device];
  const uint64_t before = all.bytes();
  all.freed(range.base, range.bytes);
  range.device->refund(before - all.bytes());
  reserve_for_graphs(range, false);
}

}  // namespace

CUresult allocate_device_memory(Context& context, uint64_t bytes, RangeKind kind, std::shared_ptr<Pool> pool,
                                CUdeviceptr* address) {
  const uint64_t rounded = round_up(bytes, kDeviceUnit);
  Device& device = pool != nullptr ? pool->device : context.device;
  const uint64_t room = device.free();
  if (rounded < bytes || rounded > room + settings().granularity) return CUDA_ERROR_OUT_OF_MEMORY;
  Range range;
  range.base = arena().allocate(rounded, device.ordinal);
  if (range.base == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  range.bytes = bytes;
  range.kind = kind;
  range.context = &context;
  range.device = &device;
  range.buffer_id = next_buffer_id();
  range.pool = std::move(pool);
  *address = range.base;
  if (!charge(range)) {
    arena().free(range.base, rounded, device.ordinal);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (kind == RangeKind::graph) range.allocated = std::make_shared<std::atomic<bool>>(false);
  if (kind == RangeKind::device || kind == RangeKind::pool || kind == RangeKind::graph)
    range.written = std::make_shared<WrittenBytes>(bytes);
  memory_map().add(std::move(range));
  return CUDA_SUCCESS;
}

CUresult free_graph_memory(const Range& range, std::shared_ptr<void>* holder) {
  if (!range.allocated->exchange(false)) return CUDA_ERROR_INVALID_VALUE;
  memory_map().visit(range.base, [holder](Range& own) { *holder = std::move(own.holder); });
  return CUDA_SUCCESS;
}

void free_device_memory(const Range& range) {
  memory_map().remove(range.base);
  refund(range);  // before its address can be another's
  arena().free(range.base, round_up(range.bytes, kDeviceUnit), range.device->ordinal);
}

void release_memory(Context& context) {
  std::vector<Range> mine;
  {
    const std::unique_lock lock(memory_map().mutex());
    for (const auto& [base, range] : memory_map().ranges()) {
      if (range.context == &context && range.kind != RangeKind::mapping && range.kind != RangeKind::global) {
        mine.push_back(range);
      }
    }
  }
  for (const Range& range : mine) {
    if (range.kind == RangeKind::pool) {
      if (!range.freed) range.pool->release(range);
    } else if (range.is_host()) {
      free_host_memory(range);
    } else {
      free_device_memory(range);
    }
  }
}

}  // namespace reprise::sim
