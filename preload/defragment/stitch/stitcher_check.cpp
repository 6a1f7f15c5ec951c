// The rules that the structures keep, for tests. Records are found from where they are reachable.
#include "preload/defragment/stitch/stitcher.h"

namespace reprise::stitch {

class Stitcher::Check {
 public:
  explicit Check(const Stitcher* stitcher) noexcept : of_(*stitcher) {}
  const char* run() noexcept;

 private:
  const char* check_primitive(Index primitive, bool busy) noexcept;
  const char* check_stitched(Index stitched, bool live) noexcept;
  const char* check_live_one(const Live& live) noexcept;
  const char* check_live() noexcept;

  const Stitcher& of_;
  // What the primitive blocks have; everything else is compared with these sums.
  uint64_t primitives_ = 0;
  uint64_t chunks_ = 0;
  uint64_t busy_chunks_ = 0;
  uint64_t link_count_ = 0;
  uint64_t mapped_ = 0;
};

const char* Stitcher::Check::check_primitive(Index at, bool busy) noexcept {
  const PrimitiveBlock& primitive = of_.primitives_[at];
  if (primitive.busy != busy) return "a primitive block is busy if and only if it is not among the idle ones";
  uint32_t count = 0;
  for (Index chunk = primitive.first_chunk; chunk != kNone; chunk = of_.chunks_[chunk].next) ++count;
  if (count != primitive.size || count == 0) return "a primitive block has as many chunks as its size";
  const View& view = of_.views_[primitive.view];
  if (primitive.offset + primitive.size > view.chunks) return "a primitive block lies inside its view";
  Index previous = kNone;
  for (Index link = primitive.links; link != kNone; link = of_.links_[link].next_of_primitive) {
    if (of_.links_[link].primitive != at || of_.links_[link].previous_of_primitive != previous)
      return "links of a primitive block point back";
    previous = link;
    ++link_count_;
  }
  ++primitives_;
  chunks_ += count;
  mapped_ += count;
  busy_chunks_ += busy ? count : 0;
  return nullptr;
}

const char* Stitcher::Check::check_stitched(Index at, bool live) noexcept {
  const StitchedBlock& stitched = of_.stitched_[at];
  if (stitched.live != live) return "a stitched block is live if and only if it was handed out";
  uint32_t size = 0;
  uint32_t busy = 0;
  uint32_t count = 0;
  for (Index link = stitched.links; link != kNone; link = of_.links_[link].next_of_stitched) {
    if (of_.links_[link].stitched != at) return "links of a stitched block point back";
    size += of_.primitives_[of_.links_[link].primitive].size;
    busy += of_.primitives_[of_.links_[link].primitive].busy ? 1u : 0u;
    ++count;
  }
  if (size != stitched.size) return "a stitched block is as large as its primitives";
  if (busy != stitched.busy_primitives) return "a stitched block knows how many of its primitives are busy";
  if (live && busy != count) return "all primitives of a live stitched block are busy";
  bool listed = false;
  for (Index idle = of_.idle_stitched_.first(stitched.size); idle != kNone; idle = of_.idle_stitched_.next(idle))
    listed |= idle == at;
  if (listed != (busy == 0)) return "a stitched block is busy if and only if one of its primitives is";
  if (stitched.owns_view) mapped_ += size;
  return nullptr;
}

const char* Stitcher::Check::check_live_one(const Live& live) noexcept {
  if (!live.is_stitched) return check_primitive(live.block, true);
  const char* broken = check_stitched(live.block, true);
  for (Index link = of_.stitched_[live.block].links; link != kNone && broken == nullptr;
       link = of_.links_[link].next_of_stitched) {
    broken = check_primitive(of_.links_[link].primitive, true);
  }
  return broken;
}

const char* Stitcher::Check::check_live() noexcept {
  uint64_t bytes = 0;
  const char* broken = nullptr;
  of_.live_.for_each([&](const Live& live) {
    bytes += live.bytes;
    if (broken == nullptr) broken = check_live_one(live);
  });
  if (broken != nullptr) return broken;
  return bytes == of_.stats_.live_bytes ? nullptr : "live bytes are those of the live allocations";
}

const char* Stitcher::Check::run() noexcept {
  if (const char* broken = check_live(); broken != nullptr) return broken;
  for (uint32_t size = of_.idle_primitives_.at_least(1); size != 0; size = of_.idle_primitives_.at_least(size + 1)) {
    for (Index primitive = of_.idle_primitives_.first(size); primitive != kNone;
         primitive = of_.idle_primitives_.next(primitive)) {
      if (of_.primitives_[primitive].size != size) return "idle primitives are listed by their size";
      if (const char* broken = check_primitive(primitive, false); broken != nullptr) return broken;
    }
  }
  for (Index stitched = of_.unused_stitched_.first(0); stitched != kNone;
       stitched = of_.unused_stitched_.next(stitched)) {
    if (const char* broken = check_stitched(stitched, false); broken != nullptr) return broken;
  }
  if (primitives_ != of_.primitives_.used())
    return "every primitive block is idle or part of a live block, and of one only";
  if (link_count_ != of_.links_.used()) return "every link is a primitive block's";
  if (chunks_ + of_.chunks_.free_count() != of_.stats_.reserved_chunks)
    return "every chunk is a primitive block's or free";
  if (of_.chunks_.used() != of_.stats_.reserved_chunks) return "every chunk that exists is known";
  if (busy_chunks_ != of_.stats_.live_chunks) return "live chunks are those of busy primitives";
  if (mapped_ != of_.stats_.mapped_chunks)
    return "mapped are all primitive blocks, and stitched blocks apart from them";
  return nullptr;
}

const char* Stitcher::check() const noexcept { return Check(this).run(); }

}  // namespace reprise::stitch
