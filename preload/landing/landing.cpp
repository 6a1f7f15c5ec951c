#include "preload/landing/landing.h"

#include <time.h>

#include <algorithm>
#include <cstdlib>

#include "preload/driver/driver.h"

namespace reprise {
namespace {

constexpr uint32_t kMostFailures = 4;  // contexts that went away, and the like
constexpr long kFirstNap = 2'000;      // ns
constexpr long kLongestNap = 200'000;
constexpr uint64_t kCatchUp = 5'000'000;

void nap(long nanoseconds) {
  const timespec time{0, nanoseconds};
  nanosleep(&time, nullptr);
}

}  // namespace

// What was given up may still land there.
Landing::~Landing() {
  if (memory_ == nullptr || given_up_) return;
  driver().cuMemHostUnregister(memory_);
  std::free(memory_);
}

uint64_t Landing::now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

bool Landing::claim(uint64_t deadline_ns) noexcept {
  while (busy_.exchange(true, std::memory_order_acquire)) {
    if (now_ns() >= deadline_ns) return false;
    nap(kFirstNap);
  }
  mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  driver().cuThreadExchangeStreamCaptureMode(&mode_);
  // What was given up may be done by now, or nearly.
  if (given_up_ && !wait(std::min(deadline_ns, now_ns() + kCatchUp)) && given_up_) {
    release();
    return false;
  }
  return true;
}

void Landing::release() noexcept {
  driver().cuThreadExchangeStreamCaptureMode(&mode_);
  busy_.store(false, std::memory_order_release);
}

// The memory is ours and registered, not the driver's: it stays when a context goes away.
bool Landing::open() noexcept {
  if (stream_ != nullptr) return true;
  if (failures_ == kMostFailures) return false;
  if (memory_ == nullptr) memory_ = static_cast<unsigned char*>(std::aligned_alloc(4096, bytes_));
  if (memory_ == nullptr) return false;
  const CUresult pinned = driver().cuMemHostRegister(memory_, bytes_, CU_MEMHOSTREGISTER_PORTABLE);
  const bool usable = pinned == CUDA_SUCCESS || pinned == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  if (!usable || driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
      driver().cuEventCreate(&point_, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS ||
      driver().cuEventCreate(&before_, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    close();
  }
  return stream_ != nullptr;
}

// The handles may be of a context that is gone: they are left to it.
void Landing::close() noexcept {
  leave();
  ++failures_;
}

void Landing::leave() noexcept {
  stream_ = nullptr;
  point_ = nullptr;
  before_ = nullptr;
  given_up_ = false;
}

CUresult Landing::order_after(CUstream stream) noexcept {
  const CUresult result = driver().cuEventRecord(before_, stream);
  return result == CUDA_SUCCESS ? driver().cuStreamWaitEvent(stream_, before_, 0) : result;
}

CUresult Landing::mark() noexcept { return driver().cuEventRecord(point_, stream_); }

bool Landing::wait(uint64_t deadline_ns) noexcept {
  given_up_ = false;
  for (long pause = kFirstNap;; pause = pause < kLongestNap ? pause * 2 : pause) {
    const CUresult result = driver().cuEventQuery(point_);
    if (result == CUDA_SUCCESS) return true;
    if (result != CUDA_ERROR_NOT_READY) {
      close();
      return false;
    }
    if (now_ns() >= deadline_ns) {
      given_up_ = true;
      return false;
    }
    nap(pause);
  }
}

}  // namespace reprise
