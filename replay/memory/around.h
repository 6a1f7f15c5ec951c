// What is held of the device around our chunks, and what is promised to calls that are about to take more of it: as one
// figure, so that nothing counts twice when the one becomes the other. Callers: the account
// (replay/issue/account.h) and calls of the program set it, from any thread; the limit of chunks and each new chunk
// are made against it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <mutex>

namespace reprise::replay {

class Around {
 public:
  // Held now, or soon.
  uint64_t bytes() const noexcept {
    const std::lock_guard lock(mutex_);
    return promised_ == 0 ? held_ : std::max(held_, held_before_ + promised_);
  }
  uint64_t held() const noexcept {
    const std::lock_guard lock(mutex_);
    return held_;
  }
  // As the driver says it, which may have kept promises that have not ended yet.
  void hold(uint64_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    held_ = bytes;
  }
  void promise(uint64_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    if (promised_ == 0) held_before_ = held_;
    promised_ += bytes;
  }
  // The call has taken `taken` of them, which are held by now.
  void promise_ends(uint64_t bytes, uint64_t taken) noexcept {
    const std::lock_guard lock(mutex_);
    promised_ -= std::min(promised_, bytes);
    held_before_ += std::min(bytes, taken);
  }

 private:
  mutable std::mutex mutex_;
  uint64_t held_ = 0;
  uint64_t promised_ = 0;
  uint64_t held_before_ = 0;  // when the first of the promises was given, and by those that have ended since
};

}  // namespace reprise::replay
