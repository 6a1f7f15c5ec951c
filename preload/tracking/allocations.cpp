#include "preload/tracking/allocations.h"

#include <pthread.h>

#include <atomic>
#include <bit>

#include "preload/tracking/handle_map.h"
#include "preload/tracking/interval_map.h"
#include "preload/tracking/pool_use.h"

namespace reprise {
namespace {

// Two maps, because each rejects what lies outside the range of addresses that it ever held: device memory lies
// together, pinned host memory is somewhere else.
constinit IntervalMap device_map;
constinit IntervalMap host_map;
constinit std::atomic<uint64_t> last_allocation{0};
constinit std::atomic<uint64_t> live_count{0};
constinit std::atomic<uint64_t> live_bytes{0};
constinit std::atomic<uint32_t> hidden_count{0};
pthread_mutex_t writer_mutex = PTHREAD_MUTEX_INITIALIZER;

uint64_t word_of(const AllocationMarks& marks) { return std::bit_cast<uint64_t>(marks); }
AllocationMarks marks_of(const Interval& interval) { return std::bit_cast<AllocationMarks>(interval.marks); }

void unpack(const Interval& interval, Allocation* allocation) {
  *allocation = Allocation{marks_of(interval), interval.value, interval.begin, interval.end - interval.begin};
}

IntervalMap& map_of(trace::Origin origin) { return origin == trace::Origin::host ? host_map : device_map; }

void count(const Allocation& allocation, bool add) {
  if (allocation.hidden) hidden_count.fetch_add(add ? 1u : ~0u, std::memory_order_relaxed);
  if (!is_device_memory(allocation.origin)) return;
  count_in_pool(allocation.pool, allocation.size, add);
  live_count.fetch_add(add ? 1 : ~0ull, std::memory_order_relaxed);
  live_bytes.fetch_add(add ? allocation.size : ~allocation.size + 1, std::memory_order_relaxed);
}

// Not all that is live is marked as written: opaque work need not go through all of it again and again.
constinit std::atomic<bool> some_not_written{false};

// Where memory that Reprise may move has ever been, in granules.
constexpr unsigned kGranuleShift = 21;
constinit HandleMap granules;

void remember(const Allocation& allocation) {
  const uint64_t last = (allocation.address + allocation.size - 1) >> kGranuleShift;
  for (uint64_t granule = allocation.address >> kGranuleShift; granule <= last; ++granule) {
    if (granules.find(granule) == 0) granules.set(granule, 1);
  }
}

bool erase_locked(uint64_t address, Allocation* allocation) {
  Interval interval;
  if (!device_map.erase(address, &interval) && !host_map.erase(address, &interval)) return false;
  unpack(interval, allocation);
  count(*allocation, false);
  return true;
}

class WriterLock {
 public:
  WriterLock() noexcept { pthread_mutex_lock(&writer_mutex); }
  ~WriterLock() { pthread_mutex_unlock(&writer_mutex); }
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;
};

// Changes the marks of what starts at `address` by `change`; true: they were different before.
template <typename Change>
bool change_marks(uint64_t address, Change change) {
  const WriterLock lock;
  for (IntervalMap* map : {&device_map, &host_map}) {
    Interval interval;
    if (!map->find(address, &interval) || interval.begin != address) continue;
    AllocationMarks marks = marks_of(interval);
    change(&marks);
    if (word_of(marks) == interval.marks) return false;
    return map->set_marks(address, word_of(marks));
  }
  return false;
}

}  // namespace

uint64_t next_allocation_id() noexcept { return last_allocation.fetch_add(1, std::memory_order_relaxed) + 1; }

bool insert_allocation(const Allocation& allocation) noexcept {
  if (allocation.size == 0 || allocation.address + allocation.size < allocation.address) return false;
  if (is_device_memory(allocation.origin)) remember(allocation);
  const WriterLock lock;
  IntervalMap& map = map_of(allocation.origin);
  Interval stale;
  while (map.first_after(allocation.address, &stale) && stale.begin < allocation.address + allocation.size) {
    Allocation gone;
    if (!erase_locked(stale.begin, &gone)) break;
  }
  const Interval interval{allocation.address, allocation.address + allocation.size, allocation.id, word_of(allocation)};
  if (!map.insert(interval)) return false;
  count(allocation, true);
  some_not_written.store(true, std::memory_order_release);
  return true;
}

bool forget_allocation(uint64_t address, Allocation* allocation) noexcept {
  const WriterLock lock;
  Allocation gone;
  if (!erase_locked(address, &gone)) return false;
  if (allocation != nullptr) *allocation = gone;
  return true;
}

bool find_allocation(uint64_t word, Allocation* allocation) noexcept {
  Interval interval;
  if (!device_map.find(word, &interval) && !host_map.find(word, &interval)) return false;
  unpack(interval, allocation);
  return true;
}

void set_holds_pointers(uint64_t address, bool holds) noexcept {
  change_marks(address, [=](AllocationMarks* marks) { marks->holds_pointers = holds; });
}

void set_hidden(uint64_t address) noexcept {
  if (change_marks(address, [](AllocationMarks* marks) { marks->hidden = true; }))
    hidden_count.fetch_add(1, std::memory_order_relaxed);
}

void set_written(uint64_t address, bool written) noexcept {
  // On both sides: whenever mark_all_written() runs in between, the next one sees it.
  if (!written) some_not_written.store(true, std::memory_order_release);
  change_marks(address, [=](AllocationMarks* marks) { marks->written = written; });
  if (!written) some_not_written.store(true, std::memory_order_release);
}
void set_unknown(uint64_t address, bool unknown) noexcept {
  change_marks(address, [=](AllocationMarks* marks) { marks->unknown = unknown; });
}

void mark_all_written() noexcept {
  if (!some_not_written.load(std::memory_order_acquire)) return;
  const WriterLock lock;
  some_not_written.store(false, std::memory_order_relaxed);
  for (IntervalMap* map : {&device_map, &host_map}) {
    Interval interval;
    for (uint64_t at = 0; map->first_after(at, &interval); at = interval.end) {
      AllocationMarks marks = marks_of(interval);
      if (marks.written) continue;
      marks.written = true;
      map->set_marks(interval.begin, word_of(marks));
    }
  }
}

AddressRange device_addresses() noexcept { return {device_map.low(), device_map.span()}; }
bool was_movable(uint64_t word) noexcept { return granules.find(word >> kGranuleShift) != 0; }

LiveMemory live_device_memory() noexcept {
  return {live_count.load(std::memory_order_relaxed), live_bytes.load(std::memory_order_relaxed)};
}

bool any_hidden() noexcept { return hidden_count.load(std::memory_order_relaxed) != 0; }

uint32_t hidden_allocations(Allocation* list, uint32_t capacity) noexcept {
  if (!any_hidden()) return 0;
  const WriterLock lock;
  uint32_t found = 0;
  for (const IntervalMap* map : {&device_map, &host_map}) {
    Interval interval;
    for (uint64_t at = 0; map->first_after(at, &interval); at = interval.end) {
      if (!marks_of(interval).hidden) continue;
      if (found < capacity) unpack(interval, &list[found]);
      ++found;
    }
  }
  return found;
}

}  // namespace reprise
