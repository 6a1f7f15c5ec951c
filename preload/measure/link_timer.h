// Times what runs on one stream of the current context, by the device's events: a host that is busy does not make the
// link slow. Callers: link.cpp, the replay's digests.
#pragma once
#include <cuda.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

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

  // Time of copies of `bytes` that add up to at least `total`; 0 when a call fails.
  template <typename Copy>
  uint64_t timed(uint64_t bytes, uint64_t total, Copy copy) const noexcept {
    if (begin_ == nullptr || end_ == nullptr) return 0;
    if (driver().cuEventRecord(begin_, stream_) != CUDA_SUCCESS) return 0;
    for (uint64_t moved = 0; moved < total; moved += bytes) {
      if (copy(bytes) != CUDA_SUCCESS) return 0;
    }
    float ms = 0;
    const bool good = driver().cuEventRecord(end_, stream_) == CUDA_SUCCESS &&
                      driver().cuEventSynchronize(end_) == CUDA_SUCCESS &&
                      driver().cuEventElapsedTime(&ms, begin_, end_) == CUDA_SUCCESS;
    return good ? std::max<uint64_t>(static_cast<uint64_t>(static_cast<double>(ms) * 1e6), 1) : 0;
  }

  // The least of several tries: what else host and device do makes copies slower, never faster.
  template <typename Copy>
  uint64_t least_ns(uint64_t bytes, uint64_t total, Copy copy) const noexcept {
    uint64_t least = UINT64_MAX;
    uint64_t passed = 0;
    for (int tries = 0; tries < kLeastTries || (tries < kMostTries && passed < kTimeOfTries); ++tries) {
      const uint64_t took = timed(bytes, total, copy);
      if (took == 0) return 0;
      least = std::min(least, took);
      passed += took;
    }
    return least;
  }

  // Bytes per second of copies of up to `bytes`.
  template <typename Copy>
  uint64_t rate(uint64_t bytes, Copy copy) const noexcept {
    // The first touch of the memory does not count, nor what passes while a link that was idle wakes up. Copies grow
    // until they take long enough: a slow link is measured with fewer bytes.
    uint64_t piece = std::min(bytes, kFirstPiece);
    uint64_t fastest = UINT64_MAX;  // of a piece
    uint64_t passed = 0;
    for (uint64_t moved = 0; moved < kBytesToWakeUp && passed < kTimeToWakeUp; moved += piece) {
      const uint64_t took = timed(piece, piece, copy);
      if (took == 0) return 0;
      passed += took;
      fastest = std::min(fastest, took);
      if (piece == bytes || fastest >= kTimePerTry / 2) continue;
      piece = std::min(2 * piece, bytes);
      fastest = UINT64_MAX;
    }
    if (fastest == UINT64_MAX) fastest = kTimePerTry;
    const uint64_t copies = std::clamp<uint64_t>(kTimePerTry / fastest, 1, std::max<uint64_t>(kMostPerTry / piece, 1));
    const uint64_t ns = least_ns(piece, copies * piece, copy);
    return ns == 0 ? 0 : static_cast<uint64_t>(static_cast<double>(copies * piece) * 1e9 / static_cast<double>(ns));
  }

 private:
  // A try is shorter than what a busy host runs a thread for, so that some of them are not disturbed. Times in ns.
  static constexpr int kLeastTries = 3;
  static constexpr int kMostTries = 32;
  static constexpr uint64_t kTimePerTry = 500'000;
  static constexpr uint64_t kTimeOfTries = 40'000'000;
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
  std::array<uint64_t, 9> times{};
  for (uint64_t& time : times) {
    const auto begin = std::chrono::steady_clock::now();
    if (remap() != CUDA_SUCCESS) return 0;
    time = static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  return std::max<uint64_t>(times[times.size() / 2], 1);
}

}  // namespace reprise
