// Times what runs on one stream of the current context, by the device's events: a host that is busy does not make the
// link slow. Callers: link.cpp, the replay's digests.
#pragma once
#include <cuda.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include "preload/driver/device_observer.h"
#include "preload/driver/driver.h"

namespace reprise {

class LinkTimer {
 public:
  explicit LinkTimer(CUstream stream) noexcept : stream_(stream) {
    if (driver().cuEventCreate(&begin_, CU_EVENT_DEFAULT) != CUDA_SUCCESS) begin_ = nullptr;
    if (driver().cuEventCreate(&end_, CU_EVENT_DEFAULT) != CUDA_SUCCESS) end_ = nullptr;
  }
  ~LinkTimer() {
    for (CUevent event : {begin_, end_}) {
      if (event != nullptr) driver().cuEventDestroy(event);
    }
  }
  LinkTimer(const LinkTimer&) = delete;
  LinkTimer& operator=(const LinkTimer&) = delete;

  CUstream stream() const noexcept { return stream_; }

  // Time of `copies` of `bytes`, behind `ahead` of them, which keep the device busy while the host gives it the others:
  // an event that is recorded on an idle device is of before they came. 0 when a call fails.
  template <typename Copy>
  uint64_t timed(uint64_t bytes, uint64_t copies, uint64_t ahead, Copy copy) const noexcept {
    if (begin_ == nullptr || end_ == nullptr) return 0;
    for (uint64_t i = 0; i < ahead; ++i) {
      if (copy(bytes) != CUDA_SUCCESS) return 0;
    }
    if (driver().cuEventRecord(begin_, stream_) != CUDA_SUCCESS) return 0;
    for (uint64_t i = 0; i < copies; ++i) {
      if (copy(bytes) != CUDA_SUCCESS) return 0;
    }
    float ms = 0;
    const bool good = driver().cuEventRecord(end_, stream_) == CUDA_SUCCESS &&
                      driver().cuEventSynchronize(end_) == CUDA_SUCCESS &&
                      driver().cuEventElapsedTime(&ms, begin_, end_) == CUDA_SUCCESS;
    return good ? std::max<uint64_t>(static_cast<uint64_t>(static_cast<double>(ms) * 1e6), 1) : 0;
  }

  // The least of several tries: what else host and device do makes copies slower, never faster. They go on until the
  // fastest has come again. 0 when a call fails.
  template <typename Copy>
  uint64_t least_ns(uint64_t bytes, uint64_t copies, uint64_t ahead, Copy copy) const noexcept {
    const Tries tries = tries_of(host_ns() + kPatience, 0, bytes, copies, ahead, copy);
    return tries.good() ? tries.least() : 0;
  }

  // Bytes per second of copies of up to `bytes`.
  template <typename Copy>
  uint64_t rate(uint64_t bytes, Copy copy) const noexcept {
    uint64_t piece = wake_up(bytes, copy);
    if (piece == 0) return 0;
    const uint64_t until = host_ns() + kPatience;
    Tries one = tries_of(until, kTimePerTry / 2, piece, 1, 1, copy);
    while (one.good() && one.least() < kTimePerTry / 2 && piece < bytes) {
      piece = std::min(2 * piece, bytes);
      one = tries_of(until, kTimePerTry / 2, piece, 1, 1, copy);
    }
    return one.good() ? best_rate(piece, one.least(), copy) : 0;
  }

 private:
  // Times of tries, of which a busy host makes any number late: the fastest is what a try takes when some more, which
  // are late by chance, are not late by as much.
  class Tries {
   public:
    void add(uint64_t ns) noexcept {
      times_[count_++] = ns;
      passed_ += ns;
      least_ = std::min(least_, ns);
    }
    uint64_t least() const noexcept { return least_; }
    bool good() const noexcept { return least_ != 0; }  // no call has failed
    bool full() const noexcept { return count_ == times_.size(); }
    bool agree() const noexcept {
      if (count_ < kLeastTries && passed_ < kTimeOfTries) return false;
      const auto alike = [this](uint64_t ns) { return ns - least_ <= least_ / 20; };
      return std::count_if(times_.begin(), times_.begin() + count_, alike) >= kAlike;
    }

   private:
    std::array<uint64_t, 128> times_{};
    uint32_t count_ = 0;
    uint64_t least_ = UINT64_MAX;
    uint64_t passed_ = 0;
  };

  static uint64_t host_ns() noexcept {
    return static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
  }

  // Until the fastest has come again, one took less than `enough`, or it is that late on the host.
  template <typename Copy>
  Tries tries_of(uint64_t until, uint64_t enough, uint64_t bytes, uint64_t copies, uint64_t ahead,
                 Copy copy) const noexcept {
    Tries tries;
    do {
      tries.add(timed(bytes, copies, ahead, copy));
    } while (tries.good() && tries.least() >= enough && !tries.agree() && !tries.full() && host_ns() < until);
    return tries;
  }

  // Of which one took `ns`. Where tries are late each time, smaller copies may not be: a simulated device sleeps while
  // a large one is under way, and wakes up late. They are slower by what each takes besides, so the fastest of all
  // counts.
  template <typename Copy>
  uint64_t best_rate(uint64_t piece, uint64_t ns, Copy copy) const noexcept {
    double best = static_cast<double>(piece) / static_cast<double>(ns);
    for (bool go_on = true; go_on; piece /= 2) {
      const double at_best = static_cast<double>(piece) / best;
      const uint64_t most = std::max<uint64_t>(kMostPerTry / piece, 1);
      const auto copies =
          static_cast<uint64_t>(std::clamp(static_cast<double>(kTimePerTry) / at_best, 1.0, static_cast<double>(most)));
      const uint64_t ahead = at_best > kTimePerTry ? 0 : (copies + 1) / 2;
      const Tries tries = tries_of(host_ns() + kPatience, 0, piece, copies, ahead, copy);
      if (!tries.good()) return 0;
      best = std::max(best, static_cast<double>(copies * piece) / static_cast<double>(tries.least()));
      go_on = !tries.agree() && piece >= 2 * kFirstPiece;
    }
    return static_cast<uint64_t>(best * 1e9);
  }

  // The first touch of the memory does not count, nor what passes while a link that was idle wakes up. Copies grow
  // until they take long enough: a slow link is measured with fewer bytes. The size that they came to; 0 when a call
  // fails.
  template <typename Copy>
  uint64_t wake_up(uint64_t bytes, Copy copy) const noexcept {
    uint64_t piece = std::min(bytes, kFirstPiece);
    uint64_t passed = 0;
    for (uint64_t moved = 0; moved < kBytesToWakeUp && passed < kTimeToWakeUp; moved += piece) {
      const uint64_t took = timed(piece, 1, 0, copy);
      if (took == 0) return 0;
      passed += took;
      if (took < kTimePerTry / 2) piece = std::min(2 * piece, bytes);
    }
    return piece;
  }

  // A try is shorter than what a busy host runs a thread for, so that some of them are not disturbed. Times in ns.
  static constexpr uint32_t kLeastTries = 32;
  static constexpr int64_t kAlike = 3;
  static constexpr uint64_t kTimePerTry = 500'000;
  static constexpr uint64_t kTimeOfTries = 40'000'000;
  static constexpr uint64_t kPatience = 100'000'000;
  static constexpr uint64_t kTimeToWakeUp = 20'000'000;
  static constexpr uint64_t kBytesToWakeUp = 64u << 20;
  static constexpr uint64_t kMostPerTry = 64u << 20;
  static constexpr uint64_t kFirstPiece = 64u << 10;

  const CUstream stream_;
  CUevent begin_ = nullptr;
  CUevent end_ = nullptr;
};

// How long it takes to unmap a chunk, to map it again and to grant access to it, which `remap()` does: by the host's
// clock, as it is the host that waits. The median; 0 when a call fails.
template <typename Remap>
uint64_t remap_ns(Remap remap) noexcept {
  const HostTime now_ns = host_time();
  std::array<uint64_t, 9> times{};
  for (uint64_t& time : times) {
    const uint64_t begin_ns = now_ns();
    if (remap() != CUDA_SUCCESS) return 0;
    time = now_ns() - begin_ns;
  }
  std::sort(times.begin(), times.end());
  return std::max<uint64_t>(times[times.size() / 2], 1);
}

}  // namespace reprise
