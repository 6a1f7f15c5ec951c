#include "replay/queue/staging.h"

#include <cstring>

#include "preload/driver/driver.h"

namespace reprise::replay {

void Staging::open(uint64_t bytes) noexcept {
  void* memory = nullptr;
  if (driver().cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE) != CUDA_SUCCESS) return;
  memory_ = static_cast<unsigned char*>(memory);
  ring_.reset(bytes);
}

void Staging::close() noexcept {
  const std::lock_guard lock(mutex_);
  if (memory_ != nullptr) driver().cuMemFreeHost(memory_);
  memory_ = nullptr;
  first_token_ += pieces_.size();
  pieces_.clear();
}

bool Staging::stage(const void* source, uint64_t bytes, uint64_t* token) noexcept {
  const std::lock_guard lock(mutex_);
  uint64_t offset = 0;
  if (memory_ == nullptr || !ring_.take((bytes + 255) / 256 * 256, &offset)) return false;
  std::memcpy(memory_ + offset, source, bytes);
  pieces_.push_back({offset, false, {}});
  *token = first_token_ + pieces_.size() - 1;
  return true;
}

const void* Staging::data(uint64_t token) noexcept {
  const std::lock_guard lock(mutex_);
  return memory_ + pieces_[token - first_token_].offset;
}

void Staging::release(uint64_t token, LaneUse use) noexcept {
  const std::lock_guard lock(mutex_);
  StagedCopy& piece = pieces_[token - first_token_];
  piece.released = true;
  piece.use = use;
}

void Staging::reclaim(const Lanes& lanes) noexcept {
  const std::lock_guard lock(mutex_);
  while (!pieces_.empty() && pieces_.front().released && lanes.known_complete(pieces_.front().use)) {
    ring_.release_first();
    pieces_.pop_front();
    ++first_token_;
  }
}

}  // namespace reprise::replay
