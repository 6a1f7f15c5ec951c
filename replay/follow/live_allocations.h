// What the program has allocated and not freed, in the order of allocation, and what that takes of a device. Caller:
// the plan follower, under the submission lock.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <map>

#include "preload/footprint/footprint.h"
#include "preload/trace/format.h"

namespace reprise::replay {

struct LiveAllocation {
  CUdeviceptr address = 0;
  uint64_t size = 0;
  trace::Origin origin = trace::Origin::alloc;
};

class LiveAllocations {
 public:
  using Map = std::map<uint64_t, LiveAllocation>;  // by allocation id, which grows

  // Chunks have this size from now on, and the driver's own allocations that granularity; nothing is alive.
  void open(uint64_t chunk_bytes, uint64_t granularity) noexcept;
  void add(uint64_t id, const LiveAllocation& allocation) noexcept;
  void remove(uint64_t id) noexcept;

  const Map& all() const noexcept { return all_; }
  size_t count() const noexcept { return all_.size(); }
  uint64_t bytes() const noexcept { return bytes_; }  // as the program asked
  // Bytes of the device: without Reprise, and in chunks if no tensor is away.
  uint64_t footprint() const noexcept { return footprint_.bytes(); }
  uint64_t in_chunks() const noexcept { return (in_chunks_.is_open() ? in_chunks_ : footprint_).bytes(); }

 private:
  Map all_;
  uint64_t bytes_ = 0;
  footprint::Footprint footprint_;
  footprint::Footprint in_chunks_;  // open where chunks are larger than the driver's
};

}  // namespace reprise::replay
