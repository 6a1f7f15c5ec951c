// How large chunks are. A driver takes as long to map a chunk of 8 MiB as one of 2 MiB (H200, driver 580: 24 and 21 us,
// and 15 us to unmap either; bench/gpu), and at 2 MiB that is as long as the link takes for its bytes. Larger chunks
// waste more at tensors' ends, and what is smaller than half of one is never moved alone (decision 0037). Callers: the
// dispatcher, where its budget is known as it starts; the planner of a recording; the report's advice.
#pragma once
#include <cstdint>

namespace reprise::footprint {

inline constexpr uint64_t kChunksInABudget = 1024;  // at least, where chunks are larger than need be
// Of a run the tensors are not known yet, so chunks are smaller; but not where each transfer maps, which takes by far
// the most time there.
inline constexpr uint64_t chunks_in_a_run(bool transfers_map) noexcept {
  return transfers_map ? kChunksInABudget : 2 * kChunksInABudget;
}
inline constexpr uint64_t kLargestChunk = uint64_t{32} << 20;

// The largest power of two times `granularity` of which `budget_bytes` hold `chunks` or more; `granularity` where none.
inline uint64_t chunk_bytes_for(uint64_t granularity, uint64_t budget_bytes, uint64_t chunks) noexcept {
  uint64_t bytes = granularity;
  while (bytes != 0 && 2 * bytes <= kLargestChunk && budget_bytes / (2 * bytes) >= chunks) bytes *= 2;
  return bytes;
}

// May memory be managed by chunks of so many bytes on a device with this granularity?
inline bool is_chunk(uint64_t bytes, uint64_t granularity) noexcept {
  const bool multiple = granularity != 0 && bytes >= granularity && bytes % granularity == 0;
  return multiple && (bytes / granularity & (bytes / granularity - 1)) == 0;
}

}  // namespace reprise::footprint
