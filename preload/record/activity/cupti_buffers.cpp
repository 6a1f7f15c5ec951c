#include "preload/record/activity/cupti_buffers.h"

#include <sys/mman.h>

namespace reprise {

bool CuptiBuffers::create() noexcept {
  void* memory =
      ::mmap(nullptr, kCount * kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  for (uint32_t i = 0; i < kCount; ++i) all_[i].bytes = static_cast<uint8_t*>(memory) + i * kBytes;
  return true;
}

uint8_t* CuptiBuffers::take(size_t* bytes) noexcept {
  for (Buffer& buffer : all_) {
    bool expected = false;
    if (!buffer.taken.compare_exchange_strong(expected, true, std::memory_order_acquire)) continue;
    *bytes = kBytes;
    return buffer.bytes;
  }
  return nullptr;
}

void CuptiBuffers::complete(uint8_t* bytes, size_t valid) noexcept {
  const auto offset = reinterpret_cast<uintptr_t>(bytes) - reinterpret_cast<uintptr_t>(all_[0].bytes);
  if (bytes == nullptr || offset >= kCount * kBytes || offset % kBytes != 0 || valid > kBytes) return;
  Buffer& buffer = all_[offset / kBytes];
  if (!buffer.taken.load(std::memory_order_relaxed)) return;
  buffer.valid = valid;
  buffer.next = completed_.load(std::memory_order_relaxed);
  while (
      !completed_.compare_exchange_weak(buffer.next, &buffer, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

}  // namespace reprise
