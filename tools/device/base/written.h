// Which bytes of an allocation the program has ever written. What nothing wrote is no input of a kernel: it may be
// different in each run. Callers: copies, memsets, launches mark; the dataflow-hash executor asks.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace reprise::sim {

class WrittenBytes {
 public:
  using Interval = std::pair<uint64_t, uint64_t>;  // first byte, one past the last

  explicit WrittenBytes(uint64_t bytes) : bytes_(bytes) {}

  void mark(uint64_t begin, uint64_t end);
  void mark_all();
  // [begin, begin + bytes) is now what `from` was from `from_begin` on: an undefined byte that is copied stays one.
  void copy(uint64_t begin, const WrittenBytes& from, uint64_t from_begin, uint64_t bytes);

  bool complete() const { return complete_.load(std::memory_order_acquire); }
  // Sorted, with a gap between any two.
  std::vector<Interval> intervals() const;

 private:
  std::vector<Interval> within(uint64_t begin, uint64_t end) const;
  void add(uint64_t begin, uint64_t end);
  void remove(uint64_t begin, uint64_t end);
  void settle();

  const uint64_t bytes_;
  std::atomic<bool> complete_{false};
  mutable std::mutex mutex_;
  std::map<uint64_t, uint64_t> intervals_;
};

}  // namespace reprise::sim
