// What a device has free. Callers: what is taken by calls (taken.h), graphs' memory.
#pragma once
#include <cstdint>

namespace reprise {

// What the device has free for the current context, as all processes leave it; 0: not known.
uint64_t free_bytes() noexcept;

}  // namespace reprise
