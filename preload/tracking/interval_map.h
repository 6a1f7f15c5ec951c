// Disjoint address ranges, sorted, in blocks of at most kBlockEntries. One writer at a time (the caller locks); readers
// run beside it and retry when a version counter says that they were disturbed. Blocks are never freed, so a disturbed
// reader sees nonsense at worst and throws it away. All words are atomics: there is no data race to reason about.
// Caller: allocations.
#pragma once
#include <atomic>
#include <cstdint>
#include <new>

namespace reprise {

struct Interval {
  uint64_t begin;
  uint64_t end;
  uint64_t value;
  uint64_t marks;
};

class IntervalMap {
 public:
  constexpr IntervalMap() = default;

  // The interval that contains `word`.
  bool find(uint64_t word, Interval* result) const noexcept {
    if (word - low_.load(std::memory_order_acquire) >= span_.load(std::memory_order_relaxed)) return false;
    for (;;) {
      const uint64_t before = version_.load(std::memory_order_acquire);
      if ((before & 1) == 0) {
        const bool found = search(word, result);
        if (version_.load(std::memory_order_relaxed) == before) return found;
      }
      __builtin_ia32_pause();
    }
  }

  // Writers. insert() expects that nothing overlaps; false: out of memory.
  bool insert(const Interval& interval) noexcept;
  bool erase(uint64_t begin, Interval* erased) noexcept;
  bool set_marks(uint64_t begin, uint64_t marks) noexcept;
  // The first interval that ends behind `address`.
  bool first_after(uint64_t address, Interval* result) const noexcept;

  // The range of all intervals ever seen.
  uint64_t low() const noexcept { return low_.load(std::memory_order_acquire); }
  uint64_t span() const noexcept { return span_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kBlockEntries = 64;
  struct AtomicInterval {
    std::atomic<uint64_t> begin{0};
    std::atomic<uint64_t> end{0};
    std::atomic<uint64_t> value{0};
    std::atomic<uint64_t> marks{0};
  };
  struct Block {
    std::atomic<uint32_t> count{0};
    AtomicInterval entries[kBlockEntries];
  };
  struct Index {
    uint32_t capacity;
    std::atomic<Block*>* blocks;
  };
  struct Position {
    uint32_t block;
    uint32_t entry;
  };

  static void load(const AtomicInterval& entry, Interval* result) noexcept {
    result->begin = entry.begin.load(std::memory_order_acquire);
    result->end = entry.end.load(std::memory_order_acquire);
    result->value = entry.value.load(std::memory_order_acquire);
    result->marks = entry.marks.load(std::memory_order_acquire);
  }
  static void store(AtomicInterval* entry, const Interval& interval) noexcept {
    entry->begin.store(interval.begin, std::memory_order_release);
    entry->end.store(interval.end, std::memory_order_release);
    entry->value.store(interval.value, std::memory_order_release);
    entry->marks.store(interval.marks, std::memory_order_release);
  }
  static void copy(AtomicInterval* to, const AtomicInterval& from) noexcept {
    Interval interval;
    load(from, &interval);
    store(to, interval);
  }

  // The last block that starts at or before `word`, clamped so that a disturbed reader stays inside the arrays.
  const Block* block_of(uint64_t word, uint32_t* index) const noexcept;
  bool search(uint64_t word, Interval* result) const noexcept;
  bool position(uint64_t begin, Position* result) const noexcept;
  bool split(uint32_t block) noexcept;
  bool add_block(uint32_t at, Block* block) noexcept;
  void widen(const Interval& interval) noexcept;

  std::atomic<uint64_t> version_{0};
  std::atomic<uint64_t> low_{0};  // every interval ever seen lies in [low_, low_ + span_)
  std::atomic<uint64_t> span_{0};
  std::atomic<Index*> index_{nullptr};
  std::atomic<uint32_t> block_count_{0};
};

inline const IntervalMap::Block* IntervalMap::block_of(uint64_t word, uint32_t* index) const noexcept {
  const Index* table = index_.load(std::memory_order_acquire);
  if (table == nullptr) return nullptr;
  uint32_t count = block_count_.load(std::memory_order_acquire);
  if (count > table->capacity) count = table->capacity;
  const std::atomic<Block*>* const blocks = table->blocks;
  uint32_t low = 0;
  uint32_t high = count;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    const Block* block = blocks[middle].load(std::memory_order_acquire);
    if (block == nullptr) return nullptr;
    if (block->entries[0].begin.load(std::memory_order_acquire) <= word) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return nullptr;
  *index = low - 1;
  return blocks[low - 1].load(std::memory_order_acquire);
}

inline bool IntervalMap::search(uint64_t word, Interval* result) const noexcept {
  uint32_t index = 0;
  const Block* block = block_of(word, &index);
  if (block == nullptr) return false;
  uint32_t low = 0;
  uint32_t high = block->count.load(std::memory_order_acquire);
  if (high > kBlockEntries) high = kBlockEntries;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (block->entries[middle].begin.load(std::memory_order_acquire) <= word) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return false;
  load(block->entries[low - 1], result);
  return word < result->end;
}

}  // namespace reprise
