// A device made of maps, which notices what a real one would suffer in silence: a chunk with two owners, addresses
// taken down under work, memory destroyed that is still mapped. Caller: the stitcher's tests.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "preload/defragment/stitch/stitcher.h"

namespace reprise::stitch {

class ModelMemory final : public Memory {
 public:
  static constexpr uint64_t kChunk = 1 << 20;

  uint64_t capacity = 0;           // chunks that may exist
  uint64_t mappable = UINT64_MAX;  // chunks that may be mapped at once
  bool fails = false;              // create() answers `failed`
  std::string broken;              // the first rule that was broken

  Result create(uint64_t* handle) noexcept override {
    if (fails) return Result::failed;
    if (existing_.size() >= capacity) return Result::out_of_memory;
    *handle = next_handle_++;
    existing_.insert(*handle);
    return Result::ok;
  }
  void destroy(uint64_t handle) noexcept override {
    for (const auto& [page, mapped] : pages_) {
      if (mapped == handle) breaks("destroyed while it is mapped");
    }
    if (pending_chunks_.count(handle) != 0) breaks("destroyed while work is pending");
    if (existing_.erase(handle) == 0) breaks("destroyed twice");
  }
  Result map(const uint64_t* handles, uint32_t count, uint64_t* address) noexcept override {
    if (pages_.size() + count > mappable) return Result::out_of_memory;
    *address = next_address_;
    next_address_ += (count + 1 + maps * maps * 7919 % 1009) * kChunk;  // as irregular as a real one
    reserved_[*address] = count;
    for (uint32_t i = 0; i < count; ++i) {
      if (existing_.count(handles[i]) == 0) breaks("mapped what does not exist");
      pages_[*address + i * kChunk] = handles[i];
    }
    ++maps;
    return Result::ok;
  }
  void unmap(uint64_t address, uint32_t count) noexcept override {
    for (uint32_t i = 0; i < count; ++i) {
      if (pages_.erase(address + i * kChunk) == 0) breaks("unmapped what is not mapped");
      if (pending_pages_.count(address + i * kChunk) != 0) breaks("unmapped under pending work");
      if (live_pages_.count(address + i * kChunk) != 0) breaks("unmapped while the program has it");
    }
  }
  void unreserve(uint64_t address, uint32_t count) noexcept override {
    const auto found = reserved_.find(address);
    if (found == reserved_.end() || found->second != count) return breaks("gave back what was not reserved");
    reserved_.erase(found);
    const auto page = pages_.lower_bound(address);
    if (page != pages_.end() && page->first < address + count * kChunk) breaks("gave back what is mapped");
  }
  void settle() noexcept override {
    ++settles;
    all_over();
  }

  void all_over() {
    pending_chunks_.clear();
    pending_pages_.clear();
  }
  // What the program does with a grant: takes all of its chunks, which no other live grant may have.
  void taken(const Grant& grant, uint64_t chunks, Tag tag) {
    for (uint64_t i = 0; i < chunks; ++i) {
      const uint64_t page = grant.address + i * kChunk;
      const auto found = pages_.find(page);
      if (found == pages_.end()) return breaks("handed out what is not mapped");
      if (!owned_.insert(found->second).second) breaks("a chunk has two owners");
      live_pages_.insert(page);
      const auto pending = pending_chunks_.find(found->second);
      if (pending == pending_chunks_.end()) continue;
      bool waits = grant.wait_for_all || (pending->second == tag && tag != kUnknownWork);
      for (uint32_t w = 0; w < grant.wait_count; ++w) waits |= grant.waits[w] == pending->second;
      if (!waits) breaks("handed out before its work is over");
      pending_chunks_.erase(pending);
    }
  }
  void given_back(uint64_t address, uint64_t chunks, Tag tag) {
    for (uint64_t i = 0; i < chunks; ++i) {
      const uint64_t page = address + i * kChunk;
      owned_.erase(pages_[page]);
      live_pages_.erase(page);
      if (tag == kIdle) continue;
      pending_chunks_[pages_[page]] = tag;
      pending_pages_.insert(page);
    }
  }
  uint64_t existing() const { return existing_.size(); }
  uint64_t owned() const { return owned_.size(); }
  uint64_t mapped() const { return pages_.size(); }
  uint64_t ranges() const { return reserved_.size(); }

  uint64_t maps = 0;
  uint64_t settles = 0;

 private:
  void breaks(const char* rule) {
    if (broken.empty()) broken = rule;
  }
  std::set<uint64_t> existing_;
  std::map<uint64_t, uint64_t> pages_;     // address -> handle
  std::map<uint64_t, uint32_t> reserved_;  // address -> chunks
  std::set<uint64_t> owned_;               // handles that the program has
  std::set<uint64_t> live_pages_;
  std::map<uint64_t, Tag> pending_chunks_;
  std::set<uint64_t> pending_pages_;
  uint64_t next_handle_ = 1;
  uint64_t next_address_ = kChunk;
};

}  // namespace reprise::stitch
