#include "tests/e2e/victims/caching_allocator.h"

#include <algorithm>
#include <iterator>

namespace reprise {
namespace {

uint64_t round_up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

uint64_t CachingAllocator::rounded(uint64_t bytes) const {
  return round_up(std::max<uint64_t>(bytes, 1), unit_ / 4096);
}

// Small requests share blocks of one unit, middling ones blocks of ten; large ones get their own.
uint64_t CachingAllocator::segment_size(uint64_t bytes) const {
  if (bytes <= unit_ / 2) return unit_;
  if (bytes < unit_ * 5) return unit_ * 10;
  return round_up(bytes, unit_);
}

uint64_t CachingAllocator::allocate(uint64_t bytes) {
  const uint64_t size = rounded(bytes);
  const bool small = size <= unit_ / 2;
  uint64_t address = take(size, small);
  if (address == 0 && add_segment(size, small)) address = take(size, small);
  if (address != 0) live_ += blocks_[address].size;
  return address;
}

uint64_t CachingAllocator::take(uint64_t bytes, bool small) {
  auto& pool = free_[small ? 1 : 0];
  const auto found = pool.lower_bound({bytes, 0});
  if (found == pool.end()) return 0;
  const auto block = blocks_.find(found->second);
  pool.erase(found);
  block->second.free = false;
  // What is left is worth keeping: anything in the small pool, more than half a unit in the large one.
  const uint64_t left = block->second.size - bytes;
  if (small ? left >= unit_ / 4096 : left > unit_ / 2) cut(block, bytes);
  return block->first;
}

void CachingAllocator::cut(Blocks::iterator block, uint64_t bytes) {
  Block rest = block->second;
  rest.size -= bytes;
  rest.free = true;
  block->second.size = bytes;
  free_[rest.small ? 1 : 0].insert({rest.size, block->first + bytes});
  blocks_.emplace(block->first + bytes, rest);
}

bool CachingAllocator::add_segment(uint64_t bytes, bool small) {
  const uint64_t size = segment_size(bytes);
  uint64_t address = source_.allocate(size);
  if (address == 0) {
    release_segments();
    address = source_.allocate(size);
  }
  if (address == 0) return false;
  blocks_.emplace(address, Block{size, address, small, true});
  free_[small ? 1 : 0].insert({size, address});
  reserved_ += size;
  return true;
}

// Those of which no part is used.
void CachingAllocator::release_segments() {
  for (auto block = blocks_.begin(); block != blocks_.end();) {
    const auto next = std::next(block);
    const bool whole = block->second.segment == block->first &&
                       (next == blocks_.end() || next->second.segment != block->second.segment);
    if (whole && block->second.free) {
      free_[block->second.small ? 1 : 0].erase({block->second.size, block->first});
      reserved_ -= block->second.size;
      source_.free(block->first);
      blocks_.erase(block);
    }
    block = next;
  }
}

void CachingAllocator::join(Blocks::iterator left, Blocks::iterator right) {
  auto& pool = free_[left->second.small ? 1 : 0];
  pool.erase({left->second.size, left->first});
  pool.erase({right->second.size, right->first});
  left->second.size += right->second.size;
  blocks_.erase(right);
  pool.insert({left->second.size, left->first});
}

void CachingAllocator::free(uint64_t address) {
  auto block = blocks_.find(address);
  live_ -= block->second.size;
  block->second.free = true;
  free_[block->second.small ? 1 : 0].insert({block->second.size, address});
  const auto joins = [&](Blocks::iterator left, Blocks::iterator right) {
    return left->second.free && right->second.free && left->second.segment == right->second.segment;
  };
  if (const auto next = std::next(block); next != blocks_.end() && joins(block, next)) join(block, next);
  if (block == blocks_.begin()) return;
  if (const auto before = std::prev(block); joins(before, block)) join(before, block);
}

}  // namespace reprise
