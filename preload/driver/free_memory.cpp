#include "preload/driver/free_memory.h"

#include "preload/driver/driver.h"

namespace reprise {

uint64_t free_bytes() noexcept {
  size_t free = 0;
  size_t total = 0;
  return driver().cuMemGetInfo(&free, &total) == CUDA_SUCCESS ? free : 0;
}

}  // namespace reprise
