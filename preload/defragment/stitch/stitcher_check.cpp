// The rules that the structures keep, for tests. Records are found from where they are reachable.
#include "preload/defragment/stitch/stitcher.h"

namespace reprise::stitch {

// Counts what one primitive block contributes; everything else is compared with these sums.
struct Stitcher::Sums {
  uint64_t primitives = 0;
  uint64_t chunks = 0;
  uint64_t busy_chunks = 0;
  uint64_t links = 0;
  uint64_t mapped = 0;
};

const char* Stitcher::check_primitive(Index at, bool busy, Sums* sums) const noexcept {
  const PrimitiveBlock& primitive = primitives_[at];
  if (primitive.busy != busy) return "a primitive block is busy if and only if it is not among the idle ones";
  uint32_t count = 0;
  for (Index chunk = primitive.first_chunk; chunk != kNone; chunk = chunks_[chunk].next) ++count;
  if (count != primitive.size || count == 0) return "a primitive block has as many chunks as its size";
  const View& view = views_[primitive.view];
  if (primitive.offset + primitive.size > view.chunks) return "a primitive block lies inside its view";
  Index previous = kNone;
  for (Index link = primitive.links; link != kNone; link = links_[link].next_of_primitive) {
    if (links_[link].primitive != at || links_[link].previous_of_primitive != previous)
      return "links of a primitive block point back";
    previous = link;
    ++sums->links;
  }
  ++sums->primitives;
  sums->chunks += count;
  sums->mapped += count;
  sums->busy_chunks += busy ? count : 0;
  return nullptr;
}

const char* Stitcher::check_stitched(Index at, bool live, Sums* sums) const noexcept {
  const StitchedBlock& stitched = stitched_[at];
  if (stitched.live != live) return "a stitched block is live if and only if it was handed out";
  uint32_t size = 0;
  uint32_t busy = 0;
  uint32_t count = 0;
  for (Index link = stitched.links; link != kNone; link = links_[link].next_of_stitched) {
    if (links_[link].stitched != at) return "links of a stitched block point back";
    size += primitives_[links_[link].primitive].size;
    busy += primitives_[links_[link].primitive].busy ? 1u : 0u;
    ++count;
  }
  if (size != stitched.size) return "a stitched block is as large as its primitives";
  if (busy != stitched.busy_primitives) return "a stitched block knows how many of its primitives are busy";
  if (live && busy != count) return "all primitives of a live stitched block are busy";
  bool listed = false;
  for (Index idle = idle_stitched_.first(stitched.size); idle != kNone; idle = idle_stitched_.next(idle))
    listed |= idle == at;
  if (listed != (busy == 0)) return "a stitched block is busy if and only if one of its primitives is";
  if (stitched.owns_view) sums->mapped += size;
  return nullptr;
}

const char* Stitcher::check_live(Sums* sums) const noexcept {
  uint64_t bytes = 0;
  for (uint64_t slot = 0; slot <= live_mask_; ++slot) {
    const Live& live = live_[slot];
    if (live.address == 0) continue;
    bytes += live.bytes;
    const char* broken = nullptr;
    if (live.is_stitched) {
      broken = check_stitched(live.block, true, sums);
      for (Index link = stitched_[live.block].links; link != kNone && broken == nullptr;
           link = links_[link].next_of_stitched) {
        broken = check_primitive(links_[link].primitive, true, sums);
      }
    } else {
      broken = check_primitive(live.block, true, sums);
    }
    if (broken != nullptr) return broken;
  }
  return bytes == stats_.live_bytes ? nullptr : "live bytes are those of the live allocations";
}

const char* Stitcher::check() const noexcept {
  Sums sums;
  if (const char* broken = check_live(&sums); broken != nullptr) return broken;
  for (uint32_t size = idle_primitives_.at_least(1); size != 0; size = idle_primitives_.at_least(size + 1)) {
    for (Index primitive = idle_primitives_.first(size); primitive != kNone;
         primitive = idle_primitives_.next(primitive)) {
      if (primitives_[primitive].size != size) return "idle primitives are listed by their size";
      if (const char* broken = check_primitive(primitive, false, &sums); broken != nullptr) return broken;
    }
  }
  for (Index stitched = unused_stitched_.first(0); stitched != kNone; stitched = unused_stitched_.next(stitched)) {
    if (const char* broken = check_stitched(stitched, false, &sums); broken != nullptr) return broken;
  }
  if (sums.primitives != primitives_.used())
    return "every primitive block is idle or part of a live block, and of one only";
  if (sums.links != links_.used()) return "every link is a primitive block's";
  if (sums.chunks + free_chunk_count_ != stats_.reserved_chunks) return "every chunk is a primitive block's or free";
  if (chunks_.used() != stats_.reserved_chunks) return "every chunk that exists is known";
  if (sums.busy_chunks != stats_.live_chunks) return "live chunks are those of busy primitives";
  if (sums.mapped != stats_.mapped_chunks)
    return "mapped are all primitive blocks, and stitched blocks apart from them";
  return nullptr;
}

}  // namespace reprise::stitch
