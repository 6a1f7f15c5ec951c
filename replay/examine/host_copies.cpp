#include "replay/examine/host_copies.h"

#include <new>

#include "preload/driver/driver.h"

namespace reprise::replay {

HostCopies::~HostCopies() {
  if (!pinned_) release();  // what is pinned ends with its context
}

bool HostCopies::reset(uint64_t bytes) noexcept {
  used_ = 0;
  if (bytes <= capacity_) return true;
  release();
  void* pinned = nullptr;
  pinned_ = driver().cuMemHostAlloc(&pinned, bytes, CU_MEMHOSTALLOC_PORTABLE) == CUDA_SUCCESS;
  memory_ = pinned_ ? static_cast<unsigned char*>(pinned) : new (std::nothrow) unsigned char[bytes];
  capacity_ = memory_ != nullptr ? bytes : 0;
  return memory_ != nullptr;
}

unsigned char* HostCopies::take(uint64_t bytes) noexcept {
  unsigned char* const taken = memory_ + used_;
  used_ += taken_by(bytes);
  return taken;
}

void HostCopies::release() noexcept {
  if (pinned_) {
    driver().cuMemFreeHost(memory_);
  } else {
    delete[] memory_;
  }
  memory_ = nullptr;
  capacity_ = used_ = 0;
  pinned_ = false;
}

}  // namespace reprise::replay
