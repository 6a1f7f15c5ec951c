#include "preload/driver/free_memory.h"

#include <algorithm>

#include "preload/driver/driver.h"

namespace reprise {

uint64_t free_bytes() noexcept {
  size_t free = 0;
  size_t total = 0;
  return driver().cuMemGetInfo(&free, &total) == CUDA_SUCCESS ? free : 0;
}

uint64_t taken_by_call(uint64_t free_before, uint64_t free_after, uint64_t most) noexcept {
  return free_after == 0 ? 0 : std::min(free_before - std::min(free_before, free_after), most);
}

}  // namespace reprise
