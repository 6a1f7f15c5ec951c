#include "replay/memory/tiers/host.h"

#include <algorithm>

#include "preload/driver/driver.h"
#include "replay/base/threads.h"

namespace reprise::replay {
namespace {
constexpr uint64_t kSlabBytes = 64ull << 20;
constexpr uint64_t kLargestSlab = 1ull << 30;  // of one call of the driver: who waits for more is looked at after each
}  // namespace

void HostTier::open(uint64_t cap_bytes) noexcept {
  const std::lock_guard lock(mutex_);
  cap_ = cap_bytes / kSlotUnit * kSlotUnit;
  slots_.reset(kSlotUnit);
}

uint64_t HostTier::capacity() noexcept {
  const std::lock_guard lock(mutex_);
  return slots_.capacity();
}

bool HostTier::start(CUcontext context) noexcept {
  const std::lock_guard lock(thread_mutex_);
  stopping_ = false;
  wanted_ = 0;
  has_thread_ = start_thread("reprise-pin", [this, context] { run(context); });
  return has_thread_;
}

void HostTier::run(CUcontext context) noexcept {
  driver().cuCtxSetCurrent(context);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  driver().cuThreadExchangeStreamCaptureMode(&mode);
  std::unique_lock lock(thread_mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || wanted_ > capacity(); });
    if (stopping_) break;
    const uint64_t wanted = wanted_;
    lock.unlock();
    bool grown = true;
    {
      const std::lock_guard growing(grow_mutex_);
      if (const uint64_t now = capacity(); now < wanted) grown = grow(std::min(wanted - now, kLargestSlab));
    }
    lock.lock();
    if (!grown) {
      ++failures_;
      wanted_ = capacity();
    }
    changed_.notify_all();
  }
  has_thread_ = false;
  changed_.notify_all();
}

void HostTier::want(uint64_t bytes) noexcept {
  bytes = std::min(bytes, cap_);
  if (capacity() >= bytes) return;
  const std::lock_guard lock(thread_mutex_);
  if (!has_thread_ || wanted_ >= bytes) return;
  wanted_ = bytes;
  changed_.notify_all();
}

bool HostTier::reserve(uint64_t bytes) noexcept {
  if (capacity() >= bytes) return true;
  {
    std::unique_lock lock(thread_mutex_);
    const uint64_t failures = failures_;
    if (has_thread_) {
      wanted_ = std::max(wanted_, bytes);
      changed_.notify_all();
      changed_.wait(lock, [&] { return capacity() >= bytes || failures_ != failures || !has_thread_; });
      return capacity() >= bytes;
    }
  }
  const std::lock_guard lock(grow_mutex_);
  const uint64_t now = capacity();
  return now >= bytes || grow(bytes - now);
}

// At least `bytes` more: slabs as large as useful; smaller ones where the system has no large piece to pin.
bool HostTier::grow(uint64_t bytes) noexcept {
  uint64_t left = (bytes + kSlotUnit - 1) / kSlotUnit * kSlotUnit;
  while (left > 0) {
    const uint64_t room = cap_ - std::min(cap_, capacity());
    uint64_t size = std::min(std::max(left, kSlabBytes), room);
    if (size < std::min(left, kSlotUnit)) return false;
    void* slab = nullptr;
    while (size >= kSlotUnit && driver().cuMemHostAlloc(&slab, size, CU_MEMHOSTALLOC_PORTABLE) != CUDA_SUCCESS) {
      slab = nullptr;
      size = size / 2 / kSlotUnit * kSlotUnit;
    }
    if (slab == nullptr) return false;
    const std::lock_guard lock(mutex_);
    slabs_.push_back(slab);
    slots_.add_slab(reinterpret_cast<uint64_t>(slab), size);
    left -= std::min(left, size);
  }
  return true;
}

bool HostTier::allocate(uint64_t bytes, HostSlot* slot) noexcept {
  for (int attempt = 0; attempt < 2; ++attempt) {
    uint64_t missing;
    {
      const std::lock_guard lock(mutex_);
      if (slots_.allocate(bytes, slot)) return true;
      missing = slots_.rounded(bytes) - std::min(slots_.rounded(bytes), slots_.free_bytes());
    }
    const std::lock_guard lock(grow_mutex_);
    if (!grow(missing)) return false;
  }
  return false;
}

void HostTier::release(HostSlot* slot) noexcept {
  const std::lock_guard lock(mutex_);
  slots_.release(slot);
}

void HostTier::close() noexcept {
  {
    std::unique_lock lock(thread_mutex_);
    stopping_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !has_thread_; });
  }
  const std::lock_guard lock(mutex_);
  for (void* slab : slabs_) driver().cuMemFreeHost(slab);
  slabs_.clear();
  slots_.reset(kSlotUnit);
}

}  // namespace reprise::replay
