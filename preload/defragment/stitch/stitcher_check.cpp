// The rules that the structures keep, for tests. Records are found from where they are reachable.
#include "preload/defragment/stitch/stitcher.h"

namespace reprise::stitch {

// Counts what one piece contributes; everything else is compared with these sums.
struct Stitcher::Sums {
  uint64_t pieces = 0;
  uint64_t chunks = 0;
  uint64_t busy_chunks = 0;
  uint64_t links = 0;
  uint64_t mapped = 0;
};

const char* Stitcher::check_piece(Index at, bool busy, Sums* sums) const noexcept {
  const Piece& piece = pieces_[at];
  if (piece.busy != busy) return "a piece is busy if and only if it is not among the idle ones";
  uint32_t count = 0;
  for (Index chunk = piece.first_chunk; chunk != kNone; chunk = chunks_[chunk].next) ++count;
  if (count != piece.size || count == 0) return "a piece has as many chunks as its size";
  const View& view = views_[piece.view];
  if (piece.offset + piece.size > view.chunks) return "a piece lies inside its view";
  Index previous = kNone;
  for (Index link = piece.links; link != kNone; link = links_[link].next_of_piece) {
    if (links_[link].piece != at || links_[link].previous_of_piece != previous) return "links of a piece point back";
    previous = link;
    ++sums->links;
  }
  ++sums->pieces;
  sums->chunks += count;
  sums->mapped += count;
  sums->busy_chunks += busy ? count : 0;
  return nullptr;
}

const char* Stitcher::check_seam(Index at, bool live, Sums* sums) const noexcept {
  const Seam& seam = seams_[at];
  if (seam.live != live) return "a seam is live if and only if it was handed out";
  uint32_t size = 0;
  uint32_t busy = 0;
  uint32_t count = 0;
  for (Index link = seam.links; link != kNone; link = links_[link].next_of_seam) {
    if (links_[link].seam != at) return "links of a seam point back";
    size += pieces_[links_[link].piece].size;
    busy += pieces_[links_[link].piece].busy ? 1u : 0u;
    ++count;
  }
  if (size != seam.size) return "a seam is as large as its pieces";
  if (busy != seam.busy_pieces) return "a seam knows how many of its pieces are busy";
  if (live && busy != count) return "all pieces of a live seam are busy";
  bool listed = false;
  for (Index idle = idle_seams_.first(seam.size); idle != kNone; idle = idle_seams_.next(idle)) listed |= idle == at;
  if (listed != (busy == 0)) return "a seam is busy if and only if one of its pieces is";
  if (seam.owns_view) sums->mapped += size;
  return nullptr;
}

const char* Stitcher::check_live(Sums* sums) const noexcept {
  uint64_t bytes = 0;
  for (uint64_t slot = 0; slot <= live_mask_; ++slot) {
    const Live& live = live_[slot];
    if (live.address == 0) continue;
    bytes += live.bytes;
    const char* broken = nullptr;
    if (live.is_seam) {
      broken = check_seam(live.block, true, sums);
      for (Index link = seams_[live.block].links; link != kNone && broken == nullptr;
           link = links_[link].next_of_seam) {
        broken = check_piece(links_[link].piece, true, sums);
      }
    } else {
      broken = check_piece(live.block, true, sums);
    }
    if (broken != nullptr) return broken;
  }
  return bytes == stats_.live_bytes ? nullptr : "live bytes are those of the live allocations";
}

const char* Stitcher::check() const noexcept {
  Sums sums;
  if (const char* broken = check_live(&sums); broken != nullptr) return broken;
  for (uint32_t size = idle_pieces_.at_least(1); size != 0; size = idle_pieces_.at_least(size + 1)) {
    for (Index piece = idle_pieces_.first(size); piece != kNone; piece = idle_pieces_.next(piece)) {
      if (pieces_[piece].size != size) return "idle pieces are listed by their size";
      if (const char* broken = check_piece(piece, false, &sums); broken != nullptr) return broken;
    }
  }
  for (Index seam = unused_seams_.first(0); seam != kNone; seam = unused_seams_.next(seam)) {
    if (const char* broken = check_seam(seam, false, &sums); broken != nullptr) return broken;
  }
  if (sums.pieces != pieces_.used()) return "every piece is idle or part of a live block, and of one only";
  if (sums.links != links_.used()) return "every link is a piece's";
  if (sums.chunks + free_chunk_count_ != stats_.reserved_chunks) return "every chunk is a piece's or free";
  if (chunks_.used() != stats_.reserved_chunks) return "every chunk that exists is known";
  if (sums.busy_chunks != stats_.live_chunks) return "live chunks are those of busy pieces";
  if (sums.mapped != stats_.mapped_chunks) return "mapped are all pieces, and seams apart from them";
  return nullptr;
}

}  // namespace reprise::stitch
