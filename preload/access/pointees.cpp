#include "preload/access/pointees.h"

#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "preload/tracking/handle_map.h"

namespace reprise {
namespace {

// The words of one allocation that were addresses of live memory when they were written there.
struct PointerTable {
  struct Pointer {
    uint64_t offset;
    uint64_t word;
  };
  Pointer* pointers = nullptr;
  uint32_t count = 0;
  uint32_t capacity = 0;
  bool incomplete = false;  // the allocation holds more addresses than fit
};
constexpr uint32_t kMaxPointers = 128 * 1024;

constinit HandleMap tables;  // allocation id -> PointerTable*
pthread_mutex_t table_mutex = PTHREAD_MUTEX_INITIALIZER;

class TableLock {
 public:
  TableLock() noexcept { pthread_mutex_lock(&table_mutex); }
  ~TableLock() { pthread_mutex_unlock(&table_mutex); }
  TableLock(const TableLock&) = delete;
  TableLock& operator=(const TableLock&) = delete;
};

PointerTable* table_of(uint64_t allocation) { return reinterpret_cast<PointerTable*>(tables.find(allocation)); }

void add(PointerTable* table, uint64_t offset, uint64_t word) {
  if (table->count == table->capacity) {
    const uint32_t capacity = table->capacity == 0 ? 64 : table->capacity * 2;
    auto* bigger =
        capacity > kMaxPointers
            ? nullptr
            : static_cast<PointerTable::Pointer*>(std::realloc(table->pointers, capacity * sizeof *table->pointers));
    if (bigger == nullptr) {
      table->incomplete = true;
      return;
    }
    table->pointers = bigger;
    table->capacity = capacity;
  }
  table->pointers[table->count++] = {offset, word};
}

void drop_range(PointerTable* table, uint64_t offset, uint64_t bytes) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < table->count; ++i) {
    const PointerTable::Pointer pointer = table->pointers[i];
    if (pointer.offset + 8 > offset && pointer.offset < offset + bytes) continue;
    table->pointers[kept++] = pointer;
  }
  table->count = kept;
}

// The table of an allocation that is about to get its first pointer.
PointerTable* make_table(const Allocation& allocation) {
  PointerTable* table = table_of(allocation.id);
  if (table == nullptr) {
    table = new (std::nothrow) PointerTable;
    if (table == nullptr) return nullptr;
    tables.set(allocation.id, reinterpret_cast<uint64_t>(table));
  }
  set_holds_pointers(allocation.address, true);
  return table;
}

bool points_to_device(uint64_t word) {
  Allocation pointee;
  return find_allocation(word, &pointee) && pointee.origin != trace::Origin::host;
}

}  // namespace

void record_payload(uint64_t address, const void* data, uint64_t bytes) noexcept {
  Allocation to;
  if (bytes < 8 || !find_allocation(address, &to)) return;
  if (bytes > kMaxScannedBytes) return mark_overwritten(address, bytes);
  const uint64_t offset = address - to.address;
  const TableLock lock;
  PointerTable* table = table_of(to.id);
  if (table != nullptr) drop_range(table, offset, bytes);
  const auto* source = static_cast<const unsigned char*>(data);
  for (uint64_t at = (8 - address % 8) % 8; at + 8 <= bytes; at += 8) {
    uint64_t word;
    std::memcpy(&word, source + at, 8);
    if (!points_to_device(word)) continue;
    if (table == nullptr && (table = make_table(to)) == nullptr) return;
    add(table, offset + at, word);
  }
}

void mark_overwritten(uint64_t address, uint64_t bytes) noexcept {
  Allocation to;
  if (!find_allocation(address, &to) || !to.holds_pointers) return;
  const TableLock lock;
  if (PointerTable* table = table_of(to.id); table != nullptr) drop_range(table, address - to.address, bytes);
}

void record_device_copy(uint64_t to_address, uint64_t from_address, uint64_t bytes) noexcept {
  Allocation to;
  Allocation from;
  if (!find_allocation(to_address, &to)) return;
  mark_overwritten(to_address, bytes);
  if (!find_allocation(from_address, &from) || !from.holds_pointers || from.id == to.id) return;
  const TableLock lock;
  const PointerTable* source = table_of(from.id);
  if (source == nullptr || source->count == 0) return;
  PointerTable* table = make_table(to);
  if (table == nullptr) return;
  const uint64_t start = from_address - from.address;
  for (uint32_t i = 0; i < source->count; ++i) {
    const PointerTable::Pointer pointer = source->pointers[i];
    if (pointer.offset < start || pointer.offset + 8 > start + bytes) continue;
    add(table, pointer.offset - start + (to_address - to.address), pointer.word);
  }
  table->incomplete = table->incomplete || source->incomplete;
}

void forget_pointees(const Allocation& allocation) noexcept {
  if (!allocation.holds_pointers) return;
  const TableLock lock;
  PointerTable* table = table_of(allocation.id);
  if (table == nullptr) return;
  tables.erase(allocation.id);
  std::free(table->pointers);
  delete table;
}

void add_pointees(CommandBuilder& builder) noexcept {
  if (!builder.holds_pointers) return;
  const TableLock lock;
  // The list grows while it is walked: pointees may hold pointers themselves.
  for (uint32_t i = 0; i < builder.command.access_count; ++i) {
    const PointerTable* table = table_of(builder.accesses[i].allocation);
    if (table == nullptr) continue;
    if (table->incomplete) builder.flag(trace::kOpOpaque);
    for (uint32_t k = 0; k < table->count; ++k) {
      Allocation pointee;
      const uint64_t word = table->pointers[k].word;
      if (!find_allocation(word, &pointee) || builder.touches(pointee.id)) continue;
      // One access for the whole allocation: several pointers of the table may lie in it.
      builder.touch(pointee, pointee.address, 0, trace::kAccessRead | trace::kAccessWrite, trace::kNoParameter);
    }
  }
}

}  // namespace reprise
