// Pinned memory for small host-to-device copies whose source the program may change once the call returned. Program
// threads stage (under the submission lock), the dispatcher gives back when the copy is complete. First in, first out.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

#include "replay/memory/lanes/lanes.h"
#include "replay/queue/ring.h"

namespace reprise::replay {

class Staging {
 public:
  static constexpr uint64_t kLargest = 1u << 20;  // larger copies are not staged

  // Takes pinned memory; without it nothing is ever staged. A context must be current.
  void open(uint64_t bytes) noexcept;

  // Gives the memory back; nothing reads it any more.
  void close() noexcept;

  // Copies `bytes` from `source`. False when there is no room now.
  bool stage(const void* source, uint64_t bytes, uint64_t* token) noexcept;
  const void* data(uint64_t token) noexcept;
  // The copy that reads the token's bytes is complete with `use`.
  void release(uint64_t token, LaneUse use) noexcept;
  // Dispatcher: frees the bytes of the oldest copies that are complete.
  void reclaim(const Lanes& lanes) noexcept;

 private:
  struct StagedCopy {
    uint64_t offset = 0;
    bool released = false;
    LaneUse use;
  };
  std::mutex mutex_;
  unsigned char* memory_ = nullptr;
  Ring ring_;
  uint64_t first_token_ = 0;
  std::deque<StagedCopy> pieces_;  // in the order of the ring's
};

}  // namespace reprise::replay
