// How much host memory there is for tensors that leave the device: what the machine has free, and what the control
// groups let this process have. Callers: the enforcer, tests.
#pragma once
#include <cstdint>

namespace reprise::replay {

// What this process may still take: MemAvailable of /proc/meminfo, and for its control group and each one above it, of
// version 1 or 2, the limit less what is used, of which cached files do not count, because they give way. `root` is
// in front of /proc and /sys.
uint64_t available_host_memory(const char* root = "") noexcept;

// What the host tier may hold: `wanted` if set, else 80 % of that.
uint64_t host_memory_cap(uint64_t wanted) noexcept;

}  // namespace reprise::replay
