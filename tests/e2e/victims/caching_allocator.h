// A caching allocator as frameworks have one: large blocks from below, cut to size, best fit, neighbours joined, whole
// blocks given back only when nothing else helps. The rules and sizes are those of PyTorch's native allocator (small
// and large pool, 2 and 20 MiB blocks), with one stream, scaled by `unit`. Callers: the fragmenting victim program, and
// bench/defragment, which counts.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace reprise {

class CachingAllocator {
 public:
  // Where blocks come from: 0 from `allocate` means that there is no more.
  struct Source {
    std::function<uint64_t(uint64_t bytes)> allocate;
    std::function<void(uint64_t address)> free;
  };

  // `unit` is 2 MiB in PyTorch.
  CachingAllocator(Source source, uint64_t unit) : source_(std::move(source)), unit_(unit) {}

  uint64_t allocate(uint64_t bytes);  // 0: out of memory
  void free(uint64_t address);

  uint64_t reserved() const { return reserved_; }
  uint64_t live() const { return live_; }

 private:
  struct Block {
    uint64_t size = 0;
    uint64_t segment = 0;  // where the block of the source starts
    bool small = false;
    bool free = false;
  };
  using Blocks = std::map<uint64_t, Block>;  // by address

  uint64_t rounded(uint64_t bytes) const;
  uint64_t segment_size(uint64_t bytes) const;
  uint64_t take(uint64_t bytes, bool small);
  bool add_segment(uint64_t bytes, bool small);
  void release_segments();
  void cut(Blocks::iterator block, uint64_t bytes);
  void join(Blocks::iterator left, Blocks::iterator right);

  const Source source_;
  const uint64_t unit_;
  Blocks blocks_;
  std::set<std::pair<uint64_t, uint64_t>> free_[2];  // (size, address) of the large and the small pool
  uint64_t reserved_ = 0;
  uint64_t live_ = 0;
};

}  // namespace reprise
