// A map from handles (or hashes) to words for look-ups on the hot path: readers take no lock, writers one mutex. Tables
// that were outgrown are kept, so a reader never touches freed memory, and used again. Callers: streams, functions and
// descriptors here, graphs and pointees of access, module hooks, cuGetProcAddress.
#pragma once
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <new>

namespace reprise {

class HandleMap {
 public:
  constexpr HandleMap() = default;
  HandleMap(const HandleMap&) = delete;
  HandleMap& operator=(const HandleMap&) = delete;

  // 0: not there. Key 0 is never there.
  uint64_t find(uint64_t key) const noexcept {
    for (;;) {
      const SlotTable* table = table_.load(std::memory_order_acquire);
      if (table == nullptr || key == 0) return 0;
      const uint64_t filling = table->filling.load(std::memory_order_acquire);
      const uint64_t value = find_in(*table, key);
      if (table->as_it_was(filling)) return value;
    }
  }

  // Sets or replaces; value 0 erases. false: out of memory, nothing changed.
  bool set(uint64_t key, uint64_t value) noexcept {
    if (key == 0) return false;
    pthread_mutex_lock(&mutex_);
    const bool done = set_locked(key, value);
    pthread_mutex_unlock(&mutex_);
    return done;
  }
  void erase(uint64_t key) noexcept {
    if (find(key) != 0) set(key, 0);
  }

  // Keys ever inserted since the last growth; an upper bound of what is there.
  uint64_t used() const noexcept { return used_.load(std::memory_order_relaxed); }

  // Calls visit(key, value) for everything there. Entries that come or go meanwhile may be missed; if the map grows
  // meanwhile, the others may come twice.
  template <typename Visit>
  void each(Visit visit) const {
    while (!each_of(table_.load(std::memory_order_acquire), visit)) {
    }
  }

 private:
  struct Slot {
    std::atomic<uint64_t> key{0};
    std::atomic<uint64_t> value{0};  // 0 with a key: erased, the key stays so that probing goes on
  };
  struct SlotTable {
    uint64_t mask;
    Slot* slots;
    SlotTable* older;                  // all of them, from the newest on
    std::atomic<uint64_t> filling{0};  // odd while it is emptied and filled anew
    // What was read since `filling` was read is of one filling. A slot that was changed since then was stored behind
    // the new `filling`, and read with acquire.
    bool as_it_was(uint64_t then) const noexcept {
      return then % 2 == 0 && filling.load(std::memory_order_acquire) == then;
    }
  };

  static uint64_t find_in(const SlotTable& table, uint64_t key) noexcept {
    for (uint64_t at = start(key);; ++at) {
      const Slot& slot = table.slots[at & table.mask];
      const uint64_t found = slot.key.load(std::memory_order_acquire);
      if (found == key) return slot.value.load(std::memory_order_acquire);
      if (found == 0) return 0;
    }
  }

  // false: the table was filled anew meanwhile.
  template <typename Visit>
  static bool each_of(const SlotTable* table, Visit visit) {
    if (table == nullptr) return true;
    const uint64_t filling = table->filling.load(std::memory_order_acquire);
    for (uint64_t at = 0; at <= table->mask; ++at) {
      const uint64_t key = table->slots[at].key.load(std::memory_order_acquire);
      const uint64_t value = table->slots[at].value.load(std::memory_order_acquire);
      if (!table->as_it_was(filling)) return false;
      if (key != 0 && value != 0) visit(key, value);
    }
    return true;
  }

  // Handles are aligned pointers: their low bits say nothing.
  static uint64_t start(uint64_t key) noexcept { return (key * 0x9e3779b97f4a7c15ull) >> 32; }

  static void put(SlotTable* table, uint64_t key, uint64_t value) noexcept {
    uint64_t at = start(key) & table->mask;
    while (table->slots[at].key.load(std::memory_order_relaxed) != 0) at = (at + 1) & table->mask;
    table->slots[at].value.store(value, std::memory_order_release);
    table->slots[at].key.store(key, std::memory_order_release);
  }

  // One that is not in use, empty for readers that still look into it: `filling` is odd.
  SlotTable* empty_table(uint64_t size) noexcept {
    for (SlotTable* table = newest_; table != nullptr; table = table->older) {
      if (table->mask != size - 1 || table == table_.load(std::memory_order_relaxed)) continue;
      table->filling.fetch_add(1, std::memory_order_relaxed);
      for (uint64_t at = 0; at < size; ++at) {
        table->slots[at].key.store(0, std::memory_order_release);
        table->slots[at].value.store(0, std::memory_order_release);
      }
      return table;
    }
    auto* slots = new (std::nothrow) Slot[size];
    auto* table = slots == nullptr ? nullptr : new (std::nothrow) SlotTable{size - 1, slots, newest_, 1};
    if (table == nullptr) {
      delete[] slots;
      return nullptr;
    }
    newest_ = table;
    return table;
  }

  bool grow() noexcept {
    uint64_t live = 0;
    each([&](uint64_t, uint64_t) { ++live; });
    uint64_t size = 64;
    while (size < live * 4) size *= 2;
    SlotTable* const table = empty_table(size);
    if (table == nullptr) return false;
    each([&](uint64_t key, uint64_t value) { put(table, key, value); });
    table->filling.fetch_add(1, std::memory_order_release);
    used_.store(live, std::memory_order_relaxed);
    table_.store(table, std::memory_order_release);
    return true;
  }

  bool set_locked(uint64_t key, uint64_t value) noexcept {
    SlotTable* table = table_.load(std::memory_order_relaxed);
    if (table != nullptr) {
      for (uint64_t at = start(key);; ++at) {
        Slot& slot = table->slots[at & table->mask];
        const uint64_t found = slot.key.load(std::memory_order_relaxed);
        if (found == key) {
          slot.value.store(value, std::memory_order_release);
          return true;
        }
        if (found == 0) break;
      }
    }
    if (value == 0) return true;
    if (table == nullptr || (used() + 1) * 2 > table->mask) {
      if (!grow()) return false;
      table = table_.load(std::memory_order_relaxed);
    }
    put(table, key, value);
    used_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  std::atomic<SlotTable*> table_{nullptr};
  SlotTable* newest_ = nullptr;
  std::atomic<uint64_t> used_{0};
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

}  // namespace reprise
