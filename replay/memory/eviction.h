// Who leaves first when room is made on demand. Caller: the pager.
#pragma once
#include <cstdint>
#include <vector>

#include "replay/memory/memory.h"

namespace reprise::replay {

// When a tensor is needed next, as somebody who looks ahead knows it: larger is later, UINT64_MAX: not known. nullptr:
// no tensor's is.
struct NextUse {
  uint64_t (*of)(void* user, const ResidentTensor& tensor) noexcept = nullptr;
  void* user = nullptr;
};

// What is resident and not pinned by this tick, the first to leave first: what the device is done with, needed furthest
// in the future, or longest unused where that is not known; blocks, in which many tensors live, last.
std::vector<ResidentTensor*> eviction_order(ManagedMemory& memory, uint64_t pinned, const NextUse& next_use) noexcept;

}  // namespace reprise::replay
