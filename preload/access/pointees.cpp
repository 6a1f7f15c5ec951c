#include "preload/access/pointees.h"

#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "preload/access/looks.h"
#include "preload/access/words.h"
#include "preload/tracking/handle_map.h"

namespace reprise {
namespace {

// The words of one allocation that are addresses of device memory.
struct PointerTable {
  struct Pointer {
    uint64_t offset;
    uint64_t word;
  };
  Pointer* pointers = nullptr;
  uint32_t count = 0;
  uint32_t capacity = 0;
  uint64_t version = 0;
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

void drop_range(PointerTable* table, const Allocation& of, uint64_t offset, uint64_t bytes) {
  if (offset == 0 && bytes >= of.size) table->incomplete = false;
  ++table->version;
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

// Fills one allocation's table, under the lock.
struct Recording {
  const Allocation& to;
  uint64_t offset;  // of the payload in the allocation
  PointerTable* table;
  bool replace;
  uint64_t found = 0;
  uint32_t next = 0;  // without `replace`: where the word stands that was found when the same bytes were seen before

  static void visit(void* user, uint64_t at, uint64_t word) {
    auto& self = *static_cast<Recording*>(user);
    Allocation pointee;
    const bool live = find_allocation(word, &pointee);
    // Memory that was freed may come back at the same address.
    if (live ? pointee.origin == trace::Origin::host : !was_movable(word)) return;
    self.found += live ? 1 : 0;
    if (self.table == nullptr && (self.table = make_table(self.to)) == nullptr) return;
    if (self.replace || !self.has(self.offset + at, word)) add(self.table, self.offset + at, word);
  }
  bool has(uint64_t offset_of_word, uint64_t word) {
    for (uint32_t i = 0; i < table->count; ++i, ++next) {
      if (next >= table->count) next = 0;
      const PointerTable::Pointer& known = table->pointers[next];
      if (known.offset != offset_of_word || known.word != word) continue;
      ++next;
      return true;
    }
    return false;
  }
};

// All of the allocation was written anew: nothing older in it matters.
void mark_known(const Allocation& allocation) {
  if (allocation.written) set_written(allocation.address, false);
  if (allocation.unknown) set_unknown(allocation.address, false);
}

// The pointers of a range, moved by `shift`, as a list of their own: the copy may be within one allocation.
PointerTable::Pointer* moved(const PointerTable& from, uint64_t begin, uint64_t bytes, uint64_t shift,
                             uint32_t* count) {
  *count = 0;
  auto* list = static_cast<PointerTable::Pointer*>(std::malloc((from.count + 1) * sizeof *from.pointers));
  if (list == nullptr) return nullptr;
  for (uint32_t i = 0; i < from.count; ++i) {
    const PointerTable::Pointer pointer = from.pointers[i];
    if (pointer.offset < begin || pointer.offset + 8 > begin + bytes) continue;
    list[(*count)++] = {pointer.offset + shift, pointer.word};
  }
  return list;
}

void copy_pointers(const Allocation& to, uint64_t to_address, const Allocation& from, uint64_t from_address,
                   uint64_t bytes) {
  const TableLock lock;
  const PointerTable* source = table_of(from.id);
  if (source == nullptr) return;
  const bool incomplete = source->incomplete;
  const uint64_t begin = from_address - from.address;
  const uint64_t target = to_address - to.address;
  uint32_t count = 0;
  PointerTable::Pointer* const list = moved(*source, begin, bytes, target - begin, &count);
  PointerTable* table = count > 0 || incomplete || list == nullptr ? make_table(to) : table_of(to.id);
  if (table != nullptr) {
    drop_range(table, to, target, bytes);
    for (uint32_t i = 0; i < count; ++i) add(table, list[i].offset, list[i].word);
    table->incomplete = table->incomplete || incomplete || list == nullptr;
  }
  std::free(list);
}

// Adds what the accesses [begin, end) point to.
void expand(CommandBuilder& builder, uint32_t begin, uint32_t end) {
  const TableLock lock;
  for (uint32_t i = begin; i < end; ++i) {
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

}  // namespace

uint64_t record_payload(uint64_t address, const Payload& payload) noexcept {
  Allocation to;
  if (!find_allocation(address, &to)) return 0;
  const uint64_t offset = address - to.address;
  if (payload.replace && offset == 0 && payload.bytes >= to.size) mark_known(to);
  const TableLock lock;
  PointerTable* table = table_of(to.id);
  if (table != nullptr && payload.replace) drop_range(table, to, offset, payload.bytes);
  Recording recording{to, offset, table, payload.replace};
  find_words(payload.data, payload.bytes, (8 - address % 8) % 8, device_addresses(), payload.write_combined,
             &Recording::visit, &recording);
  return recording.found;
}

void mark_overwritten(uint64_t address, uint64_t bytes) noexcept {
  Allocation to;
  if (!find_allocation(address, &to)) return;
  if (address == to.address && bytes >= to.size) mark_known(to);
  if (!to.holds_pointers) return;
  const TableLock lock;
  if (PointerTable* table = table_of(to.id); table != nullptr) drop_range(table, to, address - to.address, bytes);
}

void mark_half_written(uint64_t address) noexcept {
  Allocation to;
  if (find_allocation(address, &to) && !to.written && to.size < kLargestLook) set_written(to.address, true);
}

void mark_unknown(uint64_t address) noexcept {
  Allocation to;
  if (find_allocation(address, &to) && !to.unknown) set_unknown(to.address, true);
}

void record_device_copy(uint64_t to_address, uint64_t from_address, uint64_t bytes) noexcept {
  Allocation to;
  Allocation from;
  if (!find_allocation(to_address, &to)) return;
  if (!find_allocation(from_address, &from)) {
    mark_overwritten(to_address, bytes);
    return mark_unknown(to_address);
  }
  if (from.holds_pointers) {
    copy_pointers(to, to_address, from, from_address, bytes);
  } else {
    mark_overwritten(to_address, bytes);
  }
  // What kernels wrote to large memory is not marked.
  if (!to.written && (from.written || from.size >= kLargestLook)) set_written(to.address, true);
  if (from.unknown) mark_unknown(to_address);
}

uint64_t pointees_version(uint64_t allocation) noexcept {
  const TableLock lock;
  const PointerTable* table = table_of(allocation);
  return table == nullptr ? 0 : table->version + 1;
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

void without_pointees(CommandBuilder& builder) noexcept {
  builder.named_accesses = builder.command.access_count;
  builder.named_bytes = builder.command.operand_bytes;
}

void add_pointees(CommandBuilder& builder, uint64_t reader) noexcept {
  without_pointees(builder);
  builder.reader = reader;
  // Pointees may hold pointers themselves: each round looks at those that the one before it has added.
  uint32_t end;
  for (uint32_t begin = 0, depth = 0; begin < builder.command.access_count; begin = end, ++depth) {
    end = builder.command.access_count;
    if (builder.unscanned && builder.command.issue != nullptr) look(builder, {begin, end, depth, reader});
    if (builder.holds_pointers) expand(builder, begin, end);
  }
}

void look_again(CommandBuilder& builder) noexcept {
  Command& command = builder.command;
  command.blind = false;
  command.access_count = builder.named_accesses;
  command.operand_bytes = builder.named_bytes;
  add_pointees(builder, builder.reader);
  if (builder.holds_pointers) command.kernel = 0;  // it reaches what no parameter names
}

}  // namespace reprise
