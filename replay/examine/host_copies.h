// Memory of the host for what the operands of one launch held. Pinned, so that it comes and goes at the link's speed;
// pageable where the driver gives none. Kept from one launch to the next: pinning takes long. Caller: trials.
#pragma once
#include <cstdint>

namespace reprise::replay {

class HostCopies {
 public:
  HostCopies() noexcept = default;
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;
  ~HostCopies();

  // What a copy of so many bytes takes.
  static constexpr uint64_t taken_by(uint64_t bytes) noexcept { return (bytes + kUnit - 1) / kUnit * kUnit; }

  // Room for `bytes` in all; what was taken before is gone. False: there is no memory. Our context must be current.
  bool reset(uint64_t bytes) noexcept;
  // Never more than there is room for.
  unsigned char* take(uint64_t bytes) noexcept;
  // Gives the memory back: nothing is being copied to or from it. A context must be current, if any was when it was
  // taken.
  void release() noexcept;

 private:
  static constexpr uint64_t kUnit = 4096;

  unsigned char* memory_ = nullptr;
  uint64_t capacity_ = 0;
  uint64_t used_ = 0;
  bool pinned_ = false;
};

}  // namespace reprise::replay
