// Which chunks stand for the places of homes, as long as everything fits: a tensor gets the chunks that its range is
// still mapped onto. Where those are not free, because something had to leave or a plan was in force, it gets others.
// Callers: the pager and strict safety, on the dispatcher thread.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <vector>

#include "replay/memory/addresses/ranges.h"
#include "replay/memory/chunks.h"

namespace reprise::replay {

class HomeChunks {
 public:
  HomeChunks(ChunkPool* pool, Addresses* addresses) noexcept : pool_(*pool), addresses_(*addresses) {}

  // Does the range have a home that is free, and is none of it these chunks?
  bool is_free_elsewhere(CUdeviceptr base, const std::vector<ChunkIndex>& chunks);
  // Takes so many chunks, those of the range's home first. False: there are not as many, and none is taken.
  bool take(CUdeviceptr base, uint64_t count, std::vector<ChunkIndex>* chunks, CUresult* refused);

 private:
  bool is_bound(ChunkIndex chunk) const noexcept;
  ChunkIndex chunk_at(Place place) const noexcept;
  ChunkIndex take_at(Place place, CUresult* refused);

  ChunkPool& pool_;
  Addresses& addresses_;
  // Bound to each other are those that agree.
  std::vector<ChunkIndex> chunks_;  // by place
  std::vector<Place> places_;       // by chunk
  std::vector<Place> home_;         // of the range in question
};

// `homes`: nullptr where nobody keeps any. Takes chunks as above.
bool take_free(ChunkPool& pool, HomeChunks* homes, CUdeviceptr base, uint64_t count, std::vector<ChunkIndex>* chunks,
               CUresult* refused) noexcept;

}  // namespace reprise::replay
