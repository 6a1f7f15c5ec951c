// Which virtual ranges are mapped onto which chunks. A chunk may be mapped by many ranges at once (aliased views): a
// mapping outlives the residency of the tensor behind it, so that coming back costs no driver call. Dispatcher only.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <map>
#include <vector>

#include "replay/memory/chunks.h"
#include "replay/memory/lanes.h"
#include "replay/memory/uses.h"

namespace reprise::replay {

struct Mapping {
  std::vector<ChunkIndex> chunks;  // in address order
  LaneUses uses;                   // work that went through these addresses; complete before they are unmapped
};

class Mappings {
 public:
  void open(ChunkPool* chunks, Lanes* lanes, CUdevice device) noexcept;

  // The mapping that starts at `base`, or nullptr.
  Mapping* find(CUdeviceptr base) noexcept;
  // Maps [base, base + chunks) for reading and writing. On an error nothing is mapped there. Nothing may be before.
  CUresult map(CUdeviceptr base, std::vector<ChunkIndex> chunks) noexcept;
  // Waits for the uses, then unmaps.
  CUresult unmap(CUdeviceptr base) noexcept;
  // Unmaps everything that overlaps [base, base + bytes) but a mapping of exactly that range.
  CUresult make_room(CUdeviceptr base, uint64_t bytes) noexcept;
  // Unmaps everything that maps this chunk.
  CUresult unmap_chunk(ChunkIndex chunk) noexcept;

  uint64_t mapped_chunks() const noexcept { return mapped_chunks_; }
  uint64_t driver_calls() const noexcept { return driver_calls_; }  // map, unmap and set-access so far
  const std::map<CUdeviceptr, Mapping>& all() const noexcept { return mappings_; }

 private:
  CUresult set_access(CUdeviceptr base, uint64_t bytes) noexcept;
  CUresult unmap_range(CUdeviceptr base, uint64_t chunks) noexcept;

  ChunkPool* chunks_ = nullptr;
  Lanes* lanes_ = nullptr;
  CUmemAccessDesc access_{};
  std::map<CUdeviceptr, Mapping> mappings_;
  uint64_t mapped_chunks_ = 0;
  uint64_t driver_calls_ = 0;
};

}  // namespace reprise::replay
