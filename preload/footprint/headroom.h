// What is kept free of a device for what the driver loads and makes later. Callers: the replay, which leaves it alone,
// and `reprise plan`, which says what has no room on the device that was recorded.
#pragma once
#include <algorithm>
#include <cstdint>

namespace reprise::footprint {

// 902 MiB of kernels were seen (spark-rapids-jni; first launches of cuDF).
inline uint64_t headroom_of(uint64_t device_bytes) { return std::min<uint64_t>(1u << 30, device_bytes / 32); }

}  // namespace reprise::footprint
