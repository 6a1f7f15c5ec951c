// Names a call by what it is and what the calls before it were. Kinds of calls are few, and where sizes do not count no
// call of an iteration stands for its place in it. Caller: Repetition.
#pragma once
#include <array>
#include <cstdint>

namespace reprise::replay {

class RecentCalls {
 public:
  // The call's name: equal words behind equal ones have the same.
  uint64_t add(uint64_t word) noexcept {
    uint64_t& oldest = words_[next_];
    hash_ = hash_ * kBase + word - oldest * kDrop;
    oldest = word;
    next_ = (next_ + 1) % kCalls;
    return hash_;
  }

 private:
  static constexpr unsigned kCalls = 32;
  static constexpr uint64_t kBase = 0x9e3779b97f4a7c15ull;  // odd
  static constexpr uint64_t kDrop = [] {                    // kBase to the power of kCalls
    uint64_t power = 1;
    for (unsigned i = 0; i < kCalls; ++i) power *= kBase;
    return power;
  }();

  std::array<uint64_t, kCalls> words_{};
  unsigned next_ = 0;
  uint64_t hash_ = 0;
};

}  // namespace reprise::replay
