// Paces looks at the device, which wakes no thread when it ends something. Sleeps are short right after an event and
// grow to an eighth of the time since it: an end is seen at most an eighth late, and a long wait costs little processor
// time. Callers: the dispatcher's loop and LookAhead's waits.
#pragma once
#include <time.h>

#include <algorithm>
#include <cstdint>

namespace reprise::replay {

class PollPace {
 public:
  // Something has happened.
  void reset() noexcept { waited_ns_ = 0; }
  // The next sleep, in nanoseconds.
  uint64_t next() noexcept {
    const uint64_t sleep = std::clamp(waited_ns_ / 8, kLeast, kMost);
    waited_ns_ += sleep;
    return sleep;
  }
  void sleep() noexcept {
    const timespec span{0, static_cast<long>(next())};
    nanosleep(&span, nullptr);
  }

 private:
  static constexpr uint64_t kLeast = 20'000, kMost = 200'000;

  uint64_t waited_ns_ = 0;  // since something has happened
};

}  // namespace reprise::replay
