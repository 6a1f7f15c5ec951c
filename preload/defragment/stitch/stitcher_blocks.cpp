// What happens to blocks: Split, Stitch, StitchFree, Alloc, and taking apart.
#include <algorithm>

#include "preload/defragment/stitch/stitcher.h"

namespace reprise::stitch {
namespace {

// One idle chunk to so many used ones is kept below the fragmentation limit before new memory is taken.
constexpr uint64_t kIdleShare = 8;

}  // namespace

uint64_t Stitcher::address_of(Index view, uint32_t offset) const noexcept {
  return views_[view].address + offset * limits_.chunk_bytes;
}

// `after` is the seam's link behind which the new one goes; kNone: at the front.
void Stitcher::add_link(Index piece, Index seam, Index after) noexcept {
  const Index at = links_.take();
  Link& link = links_[at];
  link.piece = piece;
  link.seam = seam;
  Index& place = after == kNone ? seams_[seam].links : links_[after].next_of_seam;
  link.next_of_seam = place;
  place = at;
  link.next_of_piece = pieces_[piece].links;
  if (link.next_of_piece != kNone) links_[link.next_of_piece].previous_of_piece = at;
  pieces_[piece].links = at;
}

// The piece keeps its first `size` chunks, the rest becomes a piece of its own, which is returned, idle. Both stay
// where they are mapped: no driver call. Seams that had the piece have both.
Index Stitcher::split(Index at, uint32_t size) noexcept {
  const auto links_needed = [&] {
    uint32_t count = 2;  // and those of note_whole()
    for (Index link = pieces_[at].links; link != kNone; link = links_[link].next_of_piece) ++count;
    return count;
  };
  while (links_.available() < links_needed() && stitch_free()) {
  }
  const Index rest_at = pieces_.take();
  Piece& piece = pieces_[at];
  Piece& rest = pieces_[rest_at];
  rest.view = piece.view;
  rest.offset = piece.offset + size;
  rest.size = piece.size - size;
  rest.tag = piece.tag;
  rest.epoch = piece.epoch;
  ++views_[piece.view].users;
  Index last = piece.first_chunk;
  for (uint32_t i = 1; i < size; ++i) last = chunks_[last].next;
  rest.first_chunk = chunks_[last].next;
  chunks_[last].next = kNone;
  piece.size = size;
  for (Index link = piece.links; link != kNone; link = links_[link].next_of_piece) {
    add_link(rest_at, links_[link].seam, link);
  }
  idle_pieces_.insert(rest_at, rest.size);
  ++stats_.splits;
  return rest_at;
}

// What was one piece stays available at its old size, as a seam over both parts where they are mapped anyway.
void Stitcher::note_whole(Index first, Index second) noexcept {
  if (seams_.available() == 0) stitch_free();
  const Index at = seams_.take();
  if (at == kNone) return;
  Seam& seam = seams_[at];
  seam.view = pieces_[first].view;
  seam.offset = pieces_[first].offset;
  seam.size = pieces_[first].size + pieces_[second].size;
  ++views_[seam.view].users;
  add_link(second, at, kNone);
  add_link(first, at, kNone);
  idle_seams_.insert(at, seam.size);
  unused_seams_.push(0, at);
}

// Maps the chunks of gathered_[0, pieces) at one range.
Result Stitcher::stitch(uint32_t pieces, uint32_t size, Index* made) noexcept {
  while ((seams_.available() == 0 || links_.available() < pieces) && stitch_free()) {
  }
  if (seams_.available() == 0 || links_.available() < pieces) return Result::out_of_memory;
  uint32_t count = 0;
  for (uint32_t i = 0; i < pieces; ++i) {
    for (Index chunk = pieces_[gathered_[i]].first_chunk; chunk != kNone; chunk = chunks_[chunk].next) {
      handles_[count++] = chunks_[chunk].handle;
    }
  }
  Index view = kNone;
  if (const Result result = map(size, &view); result != Result::ok) return result;
  const Index at = seams_.take();
  Seam& seam = seams_[at];
  seam.view = view;
  seam.size = size;
  seam.owns_view = true;
  for (uint32_t i = pieces; i-- > 0;) add_link(gathered_[i], at, kNone);
  idle_seams_.insert(at, size);
  unused_seams_.push(0, at);
  ++stats_.stitches;
  stats_.stitched_chunks += size;
  *made = at;
  return Result::ok;
}

// Maps handles_[0, count). Mappings are limited, by us and by the driver: seams that are not handed out give way.
Result Stitcher::map(uint32_t count, Index* view) noexcept {
  while (stats_.mapped_chunks + count > limits_.mapped_chunks && stitch_free()) {
  }
  const Index at = views_.take();
  if (at == kNone) return Result::out_of_memory;
  Result result = memory_->map(handles_.data(), count, &views_[at].address);
  while (result != Result::ok && unused_seams_.first(0) != kNone) {
    for (uint32_t dropped = seams_.used() / 2 + 1; dropped > 0 && stitch_free(); --dropped) {
    }
    result = memory_->map(handles_.data(), count, &views_[at].address);
  }
  if (result != Result::ok) {
    views_.give(at);
    return result;
  }
  views_[at].chunks = count;
  views_[at].users = 1;
  stats_.mapped_chunks += count;
  *view = at;
  return Result::ok;
}

// StitchFree: the seam that was not used for longest. One that is not handed out may go even while a piece of it is
// busy: nobody has its addresses.
bool Stitcher::stitch_free() noexcept {
  const Index oldest = unused_seams_.last(0);
  if (oldest == kNone) return false;
  drop_seam(oldest);
  ++stats_.stitch_frees;
  return true;
}

void Stitcher::drop_seam(Index at) noexcept {
  Seam& seam = seams_[at];
  for (Index link = seam.links; link != kNone;) {
    const Link gone = links_[link];
    Index& place =
        gone.previous_of_piece == kNone ? pieces_[gone.piece].links : links_[gone.previous_of_piece].next_of_piece;
    place = gone.next_of_piece;
    if (gone.next_of_piece != kNone) links_[gone.next_of_piece].previous_of_piece = gone.previous_of_piece;
    links_.give(link);
    link = gone.next_of_seam;
  }
  if (seam.busy_pieces == 0) idle_seams_.erase(at, seam.size);
  unused_seams_.erase(0, at);
  if (seam.owns_view) {
    settle_first();
    memory_->unmap(views_[seam.view].address, seam.size);
    stats_.mapped_chunks -= seam.size;
  }
  leave_view(seam.view);
  seams_.give(at);
}

void Stitcher::leave_view(Index at) noexcept {
  View& view = views_[at];
  if (--view.users != 0) return;
  memory_->unreserve(view.address, view.chunks);
  views_.give(at);
}

// Work that was freed under may still go through these addresses.
void Stitcher::settle_first() noexcept {
  if (last_pending_ <= settled_) return;
  memory_->settle();
  settled(mark());
}

// Takes apart one idle piece, the largest.
void Stitcher::recycle(uint32_t size) noexcept {
  dissolve(idle_pieces_.first(size));
  ++stats_.recycled_pieces;
}

// Alloc: a piece of free chunks, existing or new. The idle pieces that are left are below the fragmentation limit:
// nothing can be made of them but free chunks. That is done when there are many of them, or when the device has no
// chunks left.
Result Stitcher::grow(uint32_t size, uint32_t gathered, Index* made) noexcept {
  Result result = Result::ok;
  const auto many_left = [&] {
    const uint64_t used = stats_.live_chunks + gathered;
    return stats_.reserved_chunks - used - free_chunk_count_ > used / kIdleShare;
  };
  while (free_chunk_count_ < size && many_left()) recycle(idle_pieces_.largest());
  while (free_chunk_count_ < size && chunks_.available() != 0) {
    uint64_t handle = 0;
    result = memory_->create(&handle);
    if (result != Result::ok) break;
    const Index chunk = chunks_.take();
    chunks_[chunk].handle = handle;
    chunks_[chunk].next = free_chunks_;
    free_chunks_ = chunk;
    ++free_chunk_count_;
    ++stats_.reserved_chunks;
  }
  while (free_chunk_count_ < size) {
    const uint32_t largest = idle_pieces_.largest();
    if (largest == 0) break;
    recycle(largest);
  }
  if (free_chunk_count_ < size) {
    destroy_free_chunks();
    return result != Result::ok ? result : Result::out_of_memory;
  }
  Index last = free_chunks_;
  for (uint32_t i = 0; i < size; ++i) {
    const Index chunk = i == 0 ? free_chunks_ : chunks_[last].next;
    handles_[i] = chunks_[chunk].handle;
    last = chunk;
  }
  Index view = kNone;
  result = map(size, &view);
  if (result != Result::ok) {
    destroy_free_chunks();
    return result;
  }
  const Index at = pieces_.take();
  Piece& piece = pieces_[at];
  piece.view = view;
  piece.size = size;
  piece.first_chunk = free_chunks_;
  free_chunks_ = chunks_[last].next;
  chunks_[last].next = kNone;
  free_chunk_count_ -= size;
  stats_.peak_reserved_chunks = std::max(stats_.peak_reserved_chunks, stats_.reserved_chunks);
  *made = at;
  return Result::ok;
}

// An idle piece becomes free chunks: nothing may map them any more.
void Stitcher::dissolve(Index at) noexcept {
  Piece& piece = pieces_[at];
  idle_pieces_.erase(at, piece.size);
  while (piece.links != kNone) {
    drop_seam(links_[piece.links].seam);
    ++stats_.stitch_frees;
  }
  settle_first();
  memory_->unmap(address_of(piece.view, piece.offset), piece.size);
  stats_.mapped_chunks -= piece.size;
  leave_view(piece.view);
  Index last = piece.first_chunk;
  while (chunks_[last].next != kNone) last = chunks_[last].next;
  chunks_[last].next = free_chunks_;
  free_chunks_ = piece.first_chunk;
  free_chunk_count_ += piece.size;
  pieces_.give(at);
}

void Stitcher::destroy_free_chunks() noexcept {
  while (free_chunks_ != kNone) {
    const Index chunk = free_chunks_;
    free_chunks_ = chunks_[chunk].next;
    memory_->destroy(chunks_[chunk].handle);
    chunks_.give(chunk);
    --free_chunk_count_;
    --stats_.reserved_chunks;
  }
}

uint64_t Stitcher::trim() noexcept {
  const uint64_t before = stats_.reserved_chunks;
  for (uint32_t size = idle_pieces_.largest(); size != 0; size = idle_pieces_.largest()) {
    dissolve(idle_pieces_.first(size));
  }
  destroy_free_chunks();
  return (before - stats_.reserved_chunks) * limits_.chunk_bytes;
}

}  // namespace reprise::stitch
