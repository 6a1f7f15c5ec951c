// Storage of the stitching allocator: open() reserves room for the most records there can be, pages that are not used
// cost nothing, and nothing is allocated while the program runs. Caller: Stitcher.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <type_traits>

namespace reprise::stitch {

using Index = uint32_t;
inline constexpr Index kNone = 0xffffffff;

// A fixed array of zeros; false from open(): no memory.
template <typename Value>
class Array {
 public:
  static_assert(std::is_trivially_destructible_v<Value>);
  Array() noexcept = default;
  ~Array() { std::free(values_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  bool open(uint64_t count) noexcept {
    values_ = static_cast<Value*>(std::calloc(count, sizeof(Value)));  // large ones come from mmap: pages on demand
    return values_ != nullptr;
  }
  Value& operator[](uint64_t at) noexcept { return values_[at]; }
  const Value& operator[](uint64_t at) const noexcept { return values_[at]; }
  Value* data() noexcept { return values_; }

 private:
  Value* values_ = nullptr;
};

// Records that come and go, named by their place.
template <typename Record>
class Table {
 public:
  bool open(uint32_t capacity) noexcept {
    capacity_ = capacity;
    return records_.open(capacity) && free_.open(capacity);
  }
  // A record in its initial state, or kNone.
  Index take() noexcept {
    if (used_ == capacity_) return kNone;
    ++used_;
    const Index index = free_count_ != 0 ? free_[--free_count_] : next_++;
    records_[index] = Record{};
    return index;
  }
  void give(Index index) noexcept {
    --used_;
    free_[free_count_++] = index;
  }
  Record& operator[](Index index) noexcept { return records_[index]; }
  const Record& operator[](Index index) const noexcept { return records_[index]; }
  uint32_t available() const noexcept { return capacity_ - used_; }
  uint32_t used() const noexcept { return used_; }

 private:
  Array<Record> records_;
  Array<Index> free_;
  uint32_t capacity_ = 0;
  uint32_t used_ = 0;
  uint32_t free_count_ = 0;
  Index next_ = 0;
};

// Lists of records, each in at most one of them: newest first.
class Lists {
 public:
  bool open(uint32_t records, uint32_t lists) noexcept {
    return previous_.open(records) && next_.open(records) && first_.open(lists) && last_.open(lists);
  }
  // Stored plus one, so that zero means none.
  Index first(uint32_t list) const noexcept { return first_[list] - 1; }
  Index last(uint32_t list) const noexcept { return last_[list] - 1; }
  Index next(Index record) const noexcept { return next_[record] - 1; }
  bool empty(uint32_t list) const noexcept { return first_[list] == 0; }

  void push(uint32_t list, Index record) noexcept {
    const uint32_t old = first_[list];
    previous_[record] = 0;
    next_[record] = old;
    (old != 0 ? previous_[old - 1] : last_[list]) = record + 1;
    first_[list] = record + 1;
  }
  // Before the first record of a higher number, as far as a bounded search finds it.
  void insert(uint32_t list, Index record) noexcept {
    uint32_t before = 0;
    uint32_t after = first_[list];
    for (int i = 0; i < kSearched && after != 0 && after - 1 < record; ++i) {
      before = after;
      after = next_[after - 1];
    }
    previous_[record] = before;
    next_[record] = after;
    (before != 0 ? next_[before - 1] : first_[list]) = record + 1;
    (after != 0 ? previous_[after - 1] : last_[list]) = record + 1;
  }
  void erase(uint32_t list, Index record) noexcept {
    const uint32_t before = previous_[record];
    const uint32_t after = next_[record];
    (before != 0 ? next_[before - 1] : first_[list]) = after;
    (after != 0 ? previous_[after - 1] : last_[list]) = before;
  }

 private:
  static constexpr int kSearched = 64;
  Array<uint32_t> previous_;
  Array<uint32_t> next_;
  Array<uint32_t> first_;
  Array<uint32_t> last_;
};

// Idle blocks by size; of one size those with low numbers first, so that the choice depends on what is idle and not on
// what happened before. Else an iteration that repeats would take other blocks each time, and stitch others.
class SizeIndex {
 public:
  bool open(uint32_t blocks, uint32_t largest) noexcept {
    words_ = largest / 64 + 1;
    return lists_.open(blocks, largest + 1) && present_.open(words_);
  }
  void insert(Index block, uint32_t size) noexcept {
    lists_.insert(size, block);
    present_[size / 64] |= uint64_t{1} << size % 64;
  }
  void erase(Index block, uint32_t size) noexcept {
    lists_.erase(size, block);
    if (lists_.empty(size)) present_[size / 64] &= ~(uint64_t{1} << size % 64);
  }
  Index first(uint32_t size) const noexcept { return lists_.first(size); }
  Index next(Index block) const noexcept { return lists_.next(block); }

  // The smallest size from `size` on of which there is a block; 0: none.
  uint32_t at_least(uint32_t size) const noexcept {
    uint32_t word = size / 64;
    if (word >= words_) return 0;
    uint64_t bits = present_[word] & ~uint64_t{0} << size % 64;
    while (bits == 0 && ++word < words_) bits = present_[word];
    return bits != 0 ? word * 64 + static_cast<uint32_t>(__builtin_ctzll(bits)) : 0;
  }
  uint32_t largest() const noexcept {
    for (uint32_t word = words_; word-- > 0;) {
      if (present_[word] != 0) return word * 64 + 63 - static_cast<uint32_t>(__builtin_clzll(present_[word]));
    }
    return 0;
  }

 private:
  Lists lists_;
  Array<uint64_t> present_;
  uint32_t words_ = 0;
};

}  // namespace reprise::stitch
