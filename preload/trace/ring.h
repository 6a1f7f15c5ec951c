// One thread's record buffer: the thread appends, the writer thread takes away. Lock-free, one producer, one consumer.
// Caller: the trace writer only. Memory is mapped once and touched as far as it is used.
#pragma once
#include <sys/mman.h>

#include <atomic>
#include <cstdint>

#include "preload/trace/format.h"

namespace reprise::trace {

class RecordRing {
 public:
  // `capacity` is a power of two. false: no memory.
  bool create(uint32_t capacity) noexcept {
    void* memory =
        ::mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    data_ = static_cast<char*>(memory);
    capacity_ = capacity;
    return true;
  }

  // Producer. Space for one record that does not wrap, or nullptr when there is none now. At most one is open.
  void* reserve(uint32_t bytes) noexcept {
    const uint64_t head = head_.load(std::memory_order_relaxed);
    const uint64_t tail = tail_.load(std::memory_order_acquire);
    const uint64_t offset = head & (capacity_ - 1);
    const uint64_t to_end = capacity_ - offset;
    uint64_t skip = 0;
    // Start over when the record would wrap, and whenever the ring is empty anyway: a calm thread then touches only the
    // first pages of its buffer.
    if (bytes > to_end || (head == tail && offset >= kCalmBytes)) skip = to_end;
    if (head + skip + bytes - tail > capacity_) return nullptr;
    if (skip >= sizeof(RecordHeader)) {
      auto* pad = reinterpret_cast<RecordHeader*>(data_ + offset);
      *pad = {kPadding, 0, static_cast<uint32_t>(skip), 0};
    }
    open_end_ = head + skip + bytes;
    open_ = reinterpret_cast<RecordHeader*>(data_ + ((head + skip) & (capacity_ - 1)));
    return open_;
  }

  // Producer. Publishes the reserved record; returns true when more than half of the ring is in use.
  bool commit() noexcept {
    const uint64_t end = open_end_;
    open_end_ = 0;
    head_.store(end, std::memory_order_release);
    return end - tail_.load(std::memory_order_relaxed) > capacity_ / 2;
  }
  bool reserved() const noexcept { return open_end_ != 0; }
  // Producer. The record that is open, as filled so far.
  const RecordHeader* open_record() const noexcept { return open_; }
  // Producer. Bytes not yet taken away.
  uint64_t used() const noexcept {
    return head_.load(std::memory_order_relaxed) - tail_.load(std::memory_order_acquire);
  }

  // Consumer. Hands records to `sink(const RecordHeader*) -> bool` in order until it answers false or none is left.
  // Returns false when the contents make no sense (the program wrote into them).
  template <typename Sink>
  bool drain(Sink&& sink) noexcept {
    uint64_t tail = tail_.load(std::memory_order_relaxed);
    const uint64_t head = head_.load(std::memory_order_acquire);
    bool sane = true;
    while (tail != head) {
      const uint64_t offset = tail & (capacity_ - 1);
      const uint64_t to_end = capacity_ - offset;
      if (to_end < sizeof(RecordHeader)) {
        tail += to_end;
        continue;
      }
      const auto* header = reinterpret_cast<const RecordHeader*>(data_ + offset);
      const uint64_t bytes = header->bytes;
      sane = bytes >= sizeof(RecordHeader) && bytes % 8 == 0 && bytes <= to_end && bytes <= head - tail;
      if (!sane) break;
      if (header->kind != kPadding && !sink(header)) break;
      tail += bytes;
    }
    tail_.store(tail, std::memory_order_release);
    return sane;
  }

 private:
  static constexpr RecordKind kPadding = RecordKind{0};
  static constexpr uint64_t kCalmBytes = 256 * 1024;

  char* data_ = nullptr;
  uint64_t capacity_ = 0;
  uint64_t open_end_ = 0;  // producer only; 0: nothing reserved
  RecordHeader* open_ = nullptr;
  alignas(64) std::atomic<uint64_t> head_{0};
  alignas(64) std::atomic<uint64_t> tail_{0};
};

}  // namespace reprise::trace
