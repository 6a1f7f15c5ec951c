#include "preload/tracking/interval_map.h"

namespace reprise {
namespace {

// Odd while a writer is at work. Stores between the two are releases, so a reader that sees one of them sees the odd
// version as well.
class Writing {
 public:
  explicit Writing(std::atomic<uint64_t>* version) noexcept : version_(version) {
    version_->fetch_add(1, std::memory_order_acq_rel);
  }
  ~Writing() { version_->fetch_add(1, std::memory_order_acq_rel); }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

 private:
  std::atomic<uint64_t>* version_;
};

}  // namespace

bool IntervalMap::position(uint64_t begin, Position* result) const noexcept {
  const Block* block = block_of(begin, &result->block);
  if (block == nullptr) return false;
  const uint32_t count = block->count.load(std::memory_order_relaxed);
  for (uint32_t at = 0; at < count; ++at) {
    if (block->entries[at].begin.load(std::memory_order_relaxed) != begin) continue;
    result->entry = at;
    return true;
  }
  return false;
}

bool IntervalMap::add_block(uint32_t at, Block* block) noexcept {
  Index* table = index_.load(std::memory_order_relaxed);
  const uint32_t count = block_count_.load(std::memory_order_relaxed);
  if (table == nullptr || count == table->capacity) {
    const uint32_t capacity = table == nullptr ? 16 : table->capacity * 2;
    auto* bigger = new (std::nothrow) Index{capacity, new (std::nothrow) std::atomic<Block*>[capacity]()};
    if (bigger == nullptr || bigger->blocks == nullptr) return false;
    for (uint32_t i = 0; i < count; ++i) {
      bigger->blocks[i].store(table->blocks[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
    index_.store(bigger, std::memory_order_release);  // the old one is leaked: a reader may be in it
    table = bigger;
  }
  for (uint32_t i = count; i > at; --i) {
    table->blocks[i].store(table->blocks[i - 1].load(std::memory_order_relaxed), std::memory_order_release);
  }
  table->blocks[at].store(block, std::memory_order_release);
  block_count_.store(count + 1, std::memory_order_release);
  return true;
}

bool IntervalMap::split(uint32_t index) noexcept {
  Block* block = index_.load(std::memory_order_relaxed)->blocks[index].load(std::memory_order_relaxed);
  auto* upper = new (std::nothrow) Block;
  if (upper == nullptr) return false;
  constexpr uint32_t kHalf = kBlockEntries / 2;
  for (uint32_t i = kHalf; i < kBlockEntries; ++i) copy(&upper->entries[i - kHalf], block->entries[i]);
  upper->count.store(kBlockEntries - kHalf, std::memory_order_relaxed);
  if (!add_block(index + 1, upper)) {
    delete upper;
    return false;
  }
  block->count.store(kHalf, std::memory_order_release);
  return true;
}

void IntervalMap::widen(const Interval& interval) noexcept {
  const uint64_t span = span_.load(std::memory_order_relaxed);
  const uint64_t low = low_.load(std::memory_order_relaxed);
  const uint64_t new_low = span == 0 || interval.begin < low ? interval.begin : low;
  const uint64_t high = span == 0 || interval.end > low + span ? interval.end : low + span;
  // The span first: whichever of the two a reader sees old, its range contains everything that was there before.
  span_.store(high - new_low, std::memory_order_release);
  if (new_low != low) low_.store(new_low, std::memory_order_release);
}

bool IntervalMap::insert(const Interval& interval) noexcept {
  const Writing writing(&version_);
  uint32_t index = 0;
  const Block* found = block_of(interval.begin, &index);
  if (found == nullptr) {  // before everything, or the first one
    if (block_count_.load(std::memory_order_relaxed) == 0) {
      auto* fresh = new (std::nothrow) Block;
      if (fresh == nullptr || !add_block(0, fresh)) return false;
    }
    index = 0;
  }
  auto* blocks = index_.load(std::memory_order_relaxed)->blocks;
  Block* block = blocks[index].load(std::memory_order_relaxed);
  if (block->count.load(std::memory_order_relaxed) == kBlockEntries) {
    if (!split(index)) return false;
    blocks = index_.load(std::memory_order_relaxed)->blocks;
    Block* upper = blocks[index + 1].load(std::memory_order_relaxed);
    if (interval.begin > upper->entries[0].begin.load(std::memory_order_relaxed)) block = upper;
  }
  uint32_t at = block->count.load(std::memory_order_relaxed);
  while (at > 0 && block->entries[at - 1].begin.load(std::memory_order_relaxed) > interval.begin) {
    copy(&block->entries[at], block->entries[at - 1]);
    --at;
  }
  store(&block->entries[at], interval);
  block->count.fetch_add(1, std::memory_order_release);
  widen(interval);
  return true;
}

bool IntervalMap::erase(uint64_t begin, Interval* erased) noexcept {
  Position where;
  if (!position(begin, &where)) return false;
  const Writing writing(&version_);
  Index* table = index_.load(std::memory_order_relaxed);
  Block* block = table->blocks[where.block].load(std::memory_order_relaxed);
  load(block->entries[where.entry], erased);
  const uint32_t count = block->count.load(std::memory_order_relaxed);
  for (uint32_t i = where.entry; i + 1 < count; ++i) copy(&block->entries[i], block->entries[i + 1]);
  block->count.store(count - 1, std::memory_order_release);
  if (count > 1) return true;
  // An empty block leaves the index (a block always has a first entry); it is leaked like everything a reader may see.
  const uint32_t blocks = block_count_.load(std::memory_order_relaxed);
  for (uint32_t i = where.block; i + 1 < blocks; ++i) {
    table->blocks[i].store(table->blocks[i + 1].load(std::memory_order_relaxed), std::memory_order_release);
  }
  block_count_.store(blocks - 1, std::memory_order_release);
  return true;
}

bool IntervalMap::set_marks(uint64_t begin, uint64_t marks) noexcept {
  Position where;
  if (!position(begin, &where)) return false;
  const Writing writing(&version_);
  Block* block = index_.load(std::memory_order_relaxed)->blocks[where.block].load(std::memory_order_relaxed);
  block->entries[where.entry].marks.store(marks, std::memory_order_release);
  return true;
}

bool IntervalMap::first_after(uint64_t address, Interval* result) const noexcept {
  const Index* table = index_.load(std::memory_order_relaxed);
  const uint32_t blocks = block_count_.load(std::memory_order_relaxed);
  uint32_t index = 0;
  if (block_of(address, &index) == nullptr) index = 0;
  for (; index < blocks; ++index) {
    const Block* block = table->blocks[index].load(std::memory_order_relaxed);
    const uint32_t count = block->count.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < count; ++i) {
      load(block->entries[i], result);
      if (result->end > address) return true;
    }
  }
  return false;
}

}  // namespace reprise
