#include "replay/memory/home_chunks.h"

namespace reprise::replay {

// The chunk stands for a place, and exists.
bool HomeChunks::is_bound(ChunkIndex chunk) const noexcept {
  return chunk < places_.size() && places_[chunk] != 0 && chunk_at(places_[chunk]) == chunk;
}

ChunkIndex HomeChunks::chunk_at(Place place) const noexcept {
  const ChunkIndex chunk = place < chunks_.size() ? chunks_[place] : kNoChunk;
  return chunk != kNoChunk && places_[chunk] == place && pool_[chunk].handle != 0 ? chunk : kNoChunk;
}

bool HomeChunks::is_free_elsewhere(CUdeviceptr base, const std::vector<ChunkIndex>& chunks) {
  addresses_.home_of(base, &home_);
  if (home_.size() != chunks.size()) return false;
  bool elsewhere = false;
  for (size_t i = 0; i < home_.size(); ++i) {
    const ChunkIndex chunk = chunk_at(home_[i]);
    if (chunk == kNoChunk || !pool_.is_free(chunk)) return false;
    elsewhere = elsewhere || chunk != chunks[i];
  }
  return elsewhere;
}

// A place without a chunk gets one that stands for none, or a new one.
ChunkIndex HomeChunks::take_at(Place place, CUresult* refused) {
  ChunkIndex chunk = chunk_at(place);
  if (chunk != kNoChunk) {
    if (!pool_.is_free(chunk)) return kNoChunk;
    pool_.take(chunk);
    return chunk;
  }
  chunk = pool_.oldest_free();
  if (chunk == kNoChunk || is_bound(chunk)) {
    chunk = pool_.create(refused);
  } else {
    pool_.take(chunk);
  }
  if (chunk == kNoChunk) return kNoChunk;
  if (chunks_.size() <= place) chunks_.resize(place + 1, kNoChunk);
  if (places_.size() <= chunk) places_.resize(chunk + 1, 0);
  chunks_[place] = chunk;
  places_[chunk] = place;
  return chunk;
}

bool HomeChunks::take(CUdeviceptr base, uint64_t count, std::vector<ChunkIndex>* chunks, CUresult* refused) {
  addresses_.home_of(base, &home_);
  chunks->assign(count, kNoChunk);
  if (!pool_.exceeds_limit() && home_.size() == count) {
    for (uint64_t i = 0; i < count; ++i) (*chunks)[i] = take_at(home_[i], refused);
  }
  bool all = true;
  for (ChunkIndex& chunk : *chunks) {
    if (chunk == kNoChunk && all) chunk = pool_.take_free(refused);
    all = all && chunk != kNoChunk;
  }
  if (all) return true;
  for (const ChunkIndex chunk : *chunks) {
    if (chunk != kNoChunk) pool_.give_back(chunk);
  }
  chunks->clear();
  return false;
}

bool take_free(ChunkPool& pool, HomeChunks* homes, CUdeviceptr base, uint64_t count, std::vector<ChunkIndex>* chunks,
               CUresult* refused) noexcept {
  if (homes != nullptr) return homes->take(base, count, chunks, refused);
  while (chunks->size() < count) {
    const ChunkIndex chunk = pool.take_free(refused);
    if (chunk == kNoChunk) break;
    chunks->push_back(chunk);
  }
  if (chunks->size() == count) return true;
  for (const ChunkIndex chunk : *chunks) pool.give_back(chunk);
  chunks->clear();
  return false;
}

}  // namespace reprise::replay
