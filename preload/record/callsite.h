// Call stacks as small ids. Caller: the Recorder. A repeated call is answered from a table without walking the stack;
// new stacks are turned into text on the trace's writer thread. Fixed memory, lock-free, noexcept.
#pragma once
#include <atomic>
#include <cstdint>

#include "preload/trace/writer.h"

namespace reprise {

class CallSites {
 public:
  static constexpr uint32_t kMaxFrames = 64;
  static constexpr uint32_t kMaxStacks = 16384;

  // nullptr: no memory. Never destroyed. With `hide_own` the innermost frames that lie in this library are left out.
  static CallSites* create(bool hide_own) noexcept;

  // Id of the calling thread's stack, 0 when there is no room for another. `key` is what repeats when the call repeats
  // and `frame` an address in the caller's stack frame: a known pair is answered without walking the stack but at its
  // 1st, 2nd, 4th, 8th ... time, so two paths of equal depth to the same call may be told apart late. About 10 ns for
  // a known pair; a walk costs 7 ns per frame with libunwind, 130 ns with the compiler's unwinder.
  uint32_t id(uint64_t key, const void* frame) noexcept;

  // Writes a record for each new stack until `deadline_ns` (CLOCK_MONOTONIC); true: there are more. One thread at a
  // time: the writer's background work.
  bool write_new(trace::Writer& writer, uint64_t deadline_ns) noexcept;

  const char* unwinder() const noexcept { return unwinder_; }

 private:
  using Walk = int (*)(void** frames, int capacity);
  struct KnownPair {  // a pair that was seen
    std::atomic<uint64_t> key;
    std::atomic<uint32_t> site;
    std::atomic<uint32_t> count;
  };
  struct Stack {
    std::atomic<uint32_t> ready;
    uint32_t count;
    void* frames[kMaxFrames];
  };
  struct Seen {  // a stack that was seen
    std::atomic<uint64_t> hash;
    std::atomic<uint32_t> site;
  };
  static constexpr uint32_t kKnown = 1u << 16;
  static constexpr uint32_t kSeen = 1u << 15;
  static constexpr uint32_t kProbes = 16;
  static constexpr uint32_t kMostModules = 256;  // frames of others stay without a line

  CallSites() = default;
  KnownPair* find_known(uint64_t key) noexcept;
  uint32_t walk() noexcept;
  uint32_t id_of(void* const* frames, uint32_t count) noexcept;
  uint32_t describe(const Stack& stack) noexcept;
  bool write_modules(trace::Writer& writer, const Stack& stack) noexcept;

  Walk walk_ = nullptr;
  const char* unwinder_ = "";
  uint64_t own_begin_ = 0;  // empty range: hide nothing
  uint64_t own_end_ = 0;
  KnownPair* known_ = nullptr;
  Seen* seen_ = nullptr;
  Stack* stacks_ = nullptr;  // index = id - 1
  std::atomic<uint32_t> stack_count_{0};
  uint32_t written_ = 0;                    // writer thread only
  char* text_ = nullptr;                    // writer thread only
  const void* modules_[kMostModules] = {};  // where files are loaded that the trace names; writer thread only
  uint32_t module_count_ = 0;
};

}  // namespace reprise
