// Requests: BestFit's choice, handing out, taking back. What happens to blocks: stitcher_blocks.cpp.
#include "preload/defragment/stitch/stitcher.h"

#include <algorithm>

namespace reprise::stitch {
namespace {

// How many blocks of the right size are looked at for one that nobody still works on.
constexpr int kLookedAt = 8;

uint64_t power_of_two_from(uint64_t count) noexcept {
  uint64_t power = 1;
  while (power < count) power *= 2;
  return power;
}

}  // namespace

bool Stitcher::open(Memory* memory, const Limits& limits) noexcept {
  memory_ = memory;
  limits_ = limits;
  limits_.stitched_from = std::max(limits.stitched_from, 1u);
  const uint32_t chunks = limits.chunks;
  // A live seam has two pieces at least, so that the rest of the table is always for seams that can be dropped.
  const uint32_t seams = chunks / 2 + std::max(limits.seams, 1u);
  const uint64_t slots = power_of_two_from(uint64_t{chunks} * 2 + 2);
  live_mask_ = slots - 1;
  // Pieces share no chunk, so there are at most as many as chunks; a live seam's pieces are no other live seam's, so
  // dropping seams always makes room for links.
  return chunks != 0 && chunks_.open(chunks) && views_.open(chunks + seams) && pieces_.open(chunks) &&
         seams_.open(seams) && links_.open(chunks * 4) && idle_pieces_.open(chunks, chunks) &&
         idle_seams_.open(seams, chunks) && unused_seams_.open(seams, 1) && gathered_.open(chunks) &&
         handles_.open(chunks) && live_.open(slots);
}

uint32_t Stitcher::chunks_of(uint64_t bytes) const noexcept {
  const uint64_t count = bytes / limits_.chunk_bytes + (bytes % limits_.chunk_bytes != 0 ? 1 : 0);
  return count <= limits_.chunks ? static_cast<uint32_t>(count) : 0;
}

Result Stitcher::allocate(uint64_t bytes, Tag tag, Grant* grant) noexcept {
  *grant = Grant{};
  const uint32_t size = chunks_of(bytes);
  Result result = size != 0 ? Result::ok : Result::out_of_memory;
  Live block;
  if (size == 0) {
    grant->state = State::out_of_memory;
  } else if (take_exact(size, tag, &block)) {
    grant->state = State::exact;
  } else if (take_larger(size, &block)) {
    grant->state = State::single;
  } else {
    result = take_several(size, &block, &grant->state);
    if (result != Result::ok) grant->state = State::out_of_memory;
  }
  ++stats_.states[static_cast<int>(grant->state)];
  if (result == Result::ok) hand_out(block, bytes, tag, grant);
  return result;
}

bool Stitcher::ready(const Piece& piece, Tag tag) const noexcept {
  const bool pending = piece.tag != kIdle && piece.epoch > settled_;
  return !pending || (piece.tag == tag && tag != kUnknownWork);
}

bool Stitcher::ready_seam(const Seam& seam, Tag tag) const noexcept {
  for (Index link = seam.links; link != kNone; link = links_[link].next_of_seam) {
    if (!ready(pieces_[links_[link].piece], tag)) return false;
  }
  return true;
}

template <typename Ready>
Index Stitcher::pick(const SizeIndex& index, uint32_t size, Ready is_ready) const noexcept {
  Index block = index.first(size);
  for (int i = 0; i < kLookedAt && block != kNone; ++i, block = index.next(block)) {
    if (is_ready(block)) return block;
  }
  return index.first(size);
}

// S1. A piece goes before a seam: the seam's pieces stay whole for others.
bool Stitcher::take_exact(uint32_t size, Tag tag, Live* block) noexcept {
  const Index piece = pick(idle_pieces_, size, [&](Index at) { return ready(pieces_[at], tag); });
  const Index seam = pick(idle_seams_, size, [&](Index at) { return ready_seam(seams_[at], tag); });
  if (piece == kNone && seam == kNone) return false;
  const bool rather_seam =
      piece == kNone || (seam != kNone && !ready(pieces_[piece], tag) && ready_seam(seams_[seam], tag));
  block->is_seam = rather_seam;
  block->block = rather_seam ? seam : piece;
  if (!rather_seam) {
    idle_pieces_.erase(piece, size);
    return true;
  }
  for (Index link = seams_[seam].links; link != kNone; link = links_[link].next_of_seam) {
    idle_pieces_.erase(links_[link].piece, pieces_[links_[link].piece].size);
  }
  return true;
}

// S2.
bool Stitcher::take_larger(uint32_t size, Live* block) noexcept {
  const uint32_t larger = idle_pieces_.at_least(std::max(size + 1, limits_.stitched_from));
  if (larger == 0) return false;
  const Index piece = idle_pieces_.first(larger);
  idle_pieces_.erase(piece, larger);
  const Index rest = split(piece, size);
  note_whole(piece, rest);
  *block = Live{};
  block->block = piece;
  return true;
}

// Takes idle pieces out of their index into gathered_ until they make up `size`, the largest first, then the one that
// fits the remainder best; what is too much of that is split off. Returns the chunks gathered, at most `size`.
uint32_t Stitcher::gather(uint32_t size, uint32_t* pieces) noexcept {
  uint32_t have = 0;
  while (have < size) {
    const uint32_t needed = size - have;
    uint32_t found = idle_pieces_.largest();
    if (found < limits_.stitched_from || found == 0) break;
    if (found > needed) found = idle_pieces_.at_least(std::max(needed, limits_.stitched_from));
    const Index piece = idle_pieces_.first(found);
    idle_pieces_.erase(piece, found);
    if (found > needed) {
      const Index rest = split(piece, needed);
      note_whole(piece, rest);
    }
    gathered_[(*pieces)++] = piece;
    have += pieces_[piece].size;
  }
  return have;
}

// None of it was used: idle again.
void Stitcher::scatter(uint32_t pieces) noexcept {
  for (uint32_t i = 0; i < pieces; ++i) idle_pieces_.insert(gathered_[i], pieces_[gathered_[i]].size);
}

// S3 and S4.
Result Stitcher::take_several(uint32_t size, Live* block, State* state) noexcept {
  uint32_t pieces = 0;
  const uint32_t have = gather(size, &pieces);
  *state = have == size ? State::multiple : State::insufficient;
  Result result = Result::ok;
  if (have < size) {
    Index grown = kNone;
    result = grow(size - have, have, &grown);
    if (result == Result::ok) gathered_[pieces++] = grown;
  }
  *block = Live{};
  block->block = gathered_[0];
  if (result == Result::ok && pieces > 1) {
    block->is_seam = true;
    result = stitch(pieces, size, &block->block);
  }
  if (result != Result::ok) scatter(pieces);
  return result;
}

void Stitcher::await(const Piece& piece, Tag tag, Grant* grant) noexcept {
  if (ready(piece, tag)) return;
  for (uint32_t i = 0; i < grant->wait_count; ++i) {
    if (grant->waits[i] == piece.tag) return;
  }
  if (piece.tag == kUnknownWork || grant->wait_count == Grant::kMaxWaits) {
    grant->wait_for_all = true;
  } else {
    grant->waits[grant->wait_count++] = piece.tag;
  }
}

void Stitcher::set_busy(Index at, bool busy) noexcept {
  Piece& piece = pieces_[at];
  piece.busy = busy;
  for (Index link = piece.links; link != kNone; link = links_[link].next_of_piece) {
    const Index seam = links_[link].seam;
    if (busy && seams_[seam].busy_pieces++ == 0) idle_seams_.erase(seam, seams_[seam].size);
    if (!busy && --seams_[seam].busy_pieces == 0) idle_seams_.insert(seam, seams_[seam].size);
  }
}

void Stitcher::hand_out(const Live& block, uint64_t bytes, Tag tag, Grant* grant) noexcept {
  Live live = block;
  uint32_t size = 0;
  const auto use = [&](Index piece) {
    await(pieces_[piece], tag, grant);
    set_busy(piece, true);
    size += pieces_[piece].size;
  };
  if (block.is_seam) {
    Seam& seam = seams_[block.block];
    for (Index link = seam.links; link != kNone; link = links_[link].next_of_seam) use(links_[link].piece);
    seam.live = true;
    unused_seams_.erase(0, block.block);
    live.address = address_of(seam.view, seam.offset);
  } else {
    use(block.block);
    live.address = address_of(pieces_[block.block].view, pieces_[block.block].offset);
  }
  live.bytes = bytes;
  remember(live);
  grant->address = live.address;
  stats_.live_bytes += bytes;
  stats_.live_chunks += size;
  stats_.peak_live_bytes = std::max(stats_.peak_live_bytes, stats_.live_bytes);
  stats_.peak_live_chunks = std::max(stats_.peak_live_chunks, stats_.live_chunks);
}

void Stitcher::free_piece(Index at, Tag tag) noexcept {
  Piece& piece = pieces_[at];
  piece.tag = tag;
  piece.epoch = epoch_;
  stats_.live_chunks -= piece.size;
  set_busy(at, false);
  idle_pieces_.insert(at, piece.size);
}

bool Stitcher::release(uint64_t address, Tag tag) noexcept {
  Live live;
  if (!forget(address, &live)) return false;
  if (tag != kIdle) last_pending_ = epoch_;
  stats_.live_bytes -= live.bytes;
  if (!live.is_seam) {
    free_piece(live.block, tag);
    return true;
  }
  Seam& seam = seams_[live.block];
  for (Index link = seam.links; link != kNone; link = links_[link].next_of_seam) free_piece(links_[link].piece, tag);
  seam.live = false;
  unused_seams_.push(0, live.block);
  return true;
}

void Stitcher::settled(uint32_t mark) noexcept { settled_ = std::max(settled_, mark); }

uint64_t Stitcher::slot_of(uint64_t address) const noexcept {
  return (address / limits_.chunk_bytes * 0x9e3779b97f4a7c15ull >> 20) & live_mask_;
}

void Stitcher::remember(const Live& live) noexcept {
  uint64_t slot = slot_of(live.address);
  while (live_[slot].address != 0) slot = (slot + 1) & live_mask_;
  live_[slot] = live;
}

// Those behind move up, so that a search never meets a hole.
bool Stitcher::forget(uint64_t address, Live* live) noexcept {
  uint64_t hole = slot_of(address);
  while (live_[hole].address != address) {
    if (live_[hole].address == 0) return false;
    hole = (hole + 1) & live_mask_;
  }
  *live = live_[hole];
  for (uint64_t slot = (hole + 1) & live_mask_; live_[slot].address != 0; slot = (slot + 1) & live_mask_) {
    const uint64_t wanted = slot_of(live_[slot].address);
    if (((slot - wanted) & live_mask_) < ((slot - hole) & live_mask_)) continue;
    live_[hole] = live_[slot];
    hole = slot;
  }
  live_[hole] = Live{};
  return true;
}

}  // namespace reprise::stitch
