// Which bytes of a ring are taken: contiguous pieces, given back in the order in which they were taken. Pure
// bookkeeping; caller: staging.
#pragma once
#include <cstdint>
#include <deque>

namespace reprise::replay {

class Ring {
 public:
  // `bytes` in all, none of them taken.
  void reset(uint64_t bytes) noexcept {
    bytes_ = bytes;
    next_ = used_ = 0;
    pieces_.clear();
  }
  // Offset of `bytes` contiguous ones. False when they are not free now: a piece never goes over the end of the ring,
  // and what is skipped there is taken until the piece is given back.
  bool take(uint64_t bytes, uint64_t* offset) noexcept {
    if (pieces_.empty()) next_ = 0;  // an empty ring takes whatever it can hold
    const bool wraps = bytes > bytes_ - next_;
    const uint64_t skipped = wraps ? bytes_ - next_ : 0;
    if (bytes == 0 || used_ + skipped + bytes > bytes_) return false;
    *offset = wraps ? 0 : next_;
    next_ = *offset + bytes;
    used_ += skipped + bytes;
    pieces_.push_back(skipped + bytes);
    return true;
  }
  // Gives the oldest piece back. There is one.
  void release_first() noexcept {
    used_ -= pieces_.front();
    pieces_.pop_front();
  }

 private:
  uint64_t bytes_ = 0;
  uint64_t next_ = 0;  // behind the newest piece; bytes_ when that ends with the ring
  uint64_t used_ = 0;
  std::deque<uint64_t> pieces_;  // bytes of each, oldest first, with those skipped before it
};

}  // namespace reprise::replay
