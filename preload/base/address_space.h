// How many addresses are reserved for tensors, in all: the most that the driver gives, and so many at least. They take
// no memory, but a process may have a limit (RLIMIT_AS). Callers: the dispatcher, `reprise doctor`.
#pragma once
#include <cstdint>

namespace reprise {

inline constexpr uint64_t kMostAddresses = uint64_t{8} << 40;
inline constexpr uint64_t kLeastAddresses = uint64_t{64} << 30;

}  // namespace reprise
