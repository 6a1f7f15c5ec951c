#include "preload/defragment/stitch/blocks.h"

#include <algorithm>

namespace reprise::stitch {
namespace {

// One idle chunk to so many used ones is kept below the fragmentation limit before new memory is taken.
constexpr uint64_t kIdleShare = 8;

}  // namespace

bool StitchBlocks::open_blocks(Memory* memory, const Limits& limits) noexcept {
  memory_ = memory;
  limits_ = limits;
  limits_.stitched_from = std::max(limits.stitched_from, 1u);
  const uint32_t chunks = limits.chunks;
  // A live StitchedBlock has two PrimitiveBlocks at least, so at most chunks / 2 are live; the rest of the table holds
  // StitchedBlocks that can be dropped.
  const uint32_t stitched_blocks = chunks / 2 + std::max(limits.stitched_blocks, 1u);
  // PrimitiveBlocks share no chunk, so there are at most as many as chunks. A PrimitiveBlock belongs to one live
  // StitchedBlock at most, so dropping those that are not live always makes room for links.
  return chunks != 0 && chunks_.open(chunks) && views_.open(chunks + stitched_blocks) && primitives_.open(chunks) &&
         stitched_.open(stitched_blocks) && links_.open(chunks * 4) && idle_primitives_.open(chunks, chunks) &&
         idle_stitched_.open(stitched_blocks, chunks) && unused_stitched_.open(stitched_blocks, 1) &&
         gathered_.open(chunks) && handles_.open(chunks);
}

uint64_t StitchBlocks::address_of(Index view, uint32_t offset) const noexcept {
  return views_[view].address + offset * limits_.chunk_bytes;
}

// `after` is the stitched block's link behind which the new one goes; kNone: at the front.
void StitchBlocks::add_link(Index primitive, Index stitched, Index after) noexcept {
  const Index at = links_.take();
  Link& link = links_[at];
  link.primitive = primitive;
  link.stitched = stitched;
  Index& place = after == kNone ? stitched_[stitched].links : links_[after].next_of_stitched;
  link.next_of_stitched = place;
  place = at;
  link.next_of_primitive = primitives_[primitive].links;
  if (link.next_of_primitive != kNone) links_[link.next_of_primitive].previous_of_primitive = at;
  primitives_[primitive].links = at;
}

// The PrimitiveBlock keeps its first `size` chunks, the rest becomes a PrimitiveBlock of its own, which is returned,
// idle. Both stay where they are mapped: no driver call. StitchedBlocks that had the PrimitiveBlock have both.
Index StitchBlocks::split(Index at, uint32_t size) noexcept {
  const auto links_needed = [&] {
    uint32_t count = 2;  // and those of insert_whole()
    for (Index link = primitives_[at].links; link != kNone; link = links_[link].next_of_primitive) ++count;
    return count;
  };
  while (links_.available() < links_needed() && stitch_free()) {
  }
  const Index rest_at = primitives_.take();
  PrimitiveBlock& primitive = primitives_[at];
  PrimitiveBlock& rest = primitives_[rest_at];
  rest.view = primitive.view;
  rest.offset = primitive.offset + size;
  rest.size = primitive.size - size;
  rest.tag = primitive.tag;
  rest.epoch = primitive.epoch;
  ++views_[primitive.view].users;
  Index last = primitive.first_chunk;
  for (uint32_t i = 1; i < size; ++i) last = chunks_[last].next;
  rest.first_chunk = chunks_[last].next;
  chunks_[last].next = kNone;
  primitive.size = size;
  for (Index link = primitive.links; link != kNone; link = links_[link].next_of_primitive) {
    add_link(rest_at, links_[link].stitched, link);
  }
  idle_primitives_.insert(rest_at, rest.size);
  ++stats_.splits;
  return rest_at;
}

// What was one PrimitiveBlock stays available at its old size: as a StitchedBlock over both halves, at the addresses
// where they are mapped anyway.
void StitchBlocks::insert_whole(Index first, Index second) noexcept {
  if (stitched_.available() == 0) stitch_free();
  const Index at = stitched_.take();
  if (at == kNone) return;
  StitchedBlock& stitched = stitched_[at];
  stitched.view = primitives_[first].view;
  stitched.offset = primitives_[first].offset;
  stitched.size = primitives_[first].size + primitives_[second].size;
  ++views_[stitched.view].users;
  add_link(second, at, kNone);
  add_link(first, at, kNone);
  idle_stitched_.insert(at, stitched.size);
  unused_stitched_.push(0, at);
}

// Maps the chunks of gathered_[0, primitive blocks) at one range.
Result StitchBlocks::stitch(uint32_t primitives, uint32_t size, Index* made) noexcept {
  while ((stitched_.available() == 0 || links_.available() < primitives) && stitch_free()) {
  }
  if (stitched_.available() == 0 || links_.available() < primitives) return Result::out_of_memory;
  uint32_t count = 0;
  for (uint32_t i = 0; i < primitives; ++i) {
    for (Index chunk = primitives_[gathered_[i]].first_chunk; chunk != kNone; chunk = chunks_[chunk].next) {
      handles_[count++] = chunks_[chunk].handle;
    }
  }
  Index view = kNone;
  if (const Result result = map(size, &view); result != Result::ok) return result;
  const Index at = stitched_.take();
  StitchedBlock& stitched = stitched_[at];
  stitched.view = view;
  stitched.size = size;
  stitched.owns_view = true;
  for (uint32_t i = primitives; i-- > 0;) add_link(gathered_[i], at, kNone);
  idle_stitched_.insert(at, size);
  unused_stitched_.push(0, at);
  ++stats_.stitches;
  stats_.stitched_chunks += size;
  *made = at;
  return Result::ok;
}

// Maps handles_[0, count). Mappings are limited, by Limits and by the driver: StitchedBlocks that are not handed out
// are dropped until there is room.
Result StitchBlocks::map(uint32_t count, Index* view) noexcept {
  while (stats_.mapped_chunks + count > limits_.mapped_chunks && stitch_free()) {
  }
  const Index at = views_.take();
  if (at == kNone) return Result::out_of_memory;
  Result result = memory_->map(handles_.data(), count, &views_[at].address);
  while (result != Result::ok && unused_stitched_.first(0) != kNone) {
    for (uint32_t dropped = stitched_.used() / 2 + 1; dropped > 0 && stitch_free(); --dropped) {
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

// StitchFree: drops the StitchedBlock that was not used for longest. One that is not handed out may go even while a
// PrimitiveBlock of it is busy: the program does not have its addresses.
bool StitchBlocks::stitch_free() noexcept {
  const Index oldest = unused_stitched_.last(0);
  if (oldest == kNone) return false;
  drop_stitched(oldest);
  ++stats_.stitch_frees;
  return true;
}

void StitchBlocks::drop_stitched(Index at) noexcept {
  StitchedBlock& stitched = stitched_[at];
  for (Index link = stitched.links; link != kNone;) {
    const Link gone = links_[link];
    Index& place = gone.previous_of_primitive == kNone ? primitives_[gone.primitive].links
                                                       : links_[gone.previous_of_primitive].next_of_primitive;
    place = gone.next_of_primitive;
    if (gone.next_of_primitive != kNone)
      links_[gone.next_of_primitive].previous_of_primitive = gone.previous_of_primitive;
    links_.give(link);
    link = gone.next_of_stitched;
  }
  if (stitched.busy_primitives == 0) idle_stitched_.erase(at, stitched.size);
  unused_stitched_.erase(0, at);
  if (stitched.owns_view) {
    settle_first();
    memory_->unmap(views_[stitched.view].address, stitched.size);
    stats_.mapped_chunks -= stitched.size;
  }
  leave_view(stitched.view);
  stitched_.give(at);
}

void StitchBlocks::leave_view(Index at) noexcept {
  View& view = views_[at];
  if (--view.users != 0) return;
  memory_->unreserve(view.address, view.chunks);
  views_.give(at);
}

// Memory may have been freed while work still used it through these addresses: that work has to end first.
void StitchBlocks::settle_first() noexcept {
  if (!pending_.any()) return;
  memory_->settle();
  pending_.settled(pending_.mark());
}

// Takes apart one idle PrimitiveBlock of `size` chunks.
void StitchBlocks::recycle(uint32_t size) noexcept {
  dissolve(idle_primitives_.first(size));
  ++stats_.recycled_primitives;
}

// Alloc: a PrimitiveBlock of free chunks, existing or new. The idle PrimitiveBlocks that are left are below the
// fragmentation limit: they can serve only as free chunks, and are taken apart when there are many of them or when the
// device has no chunks left.
Result StitchBlocks::grow(uint32_t size, uint32_t gathered, Index* made) noexcept {
  Result result = Result::ok;
  const auto many_left = [&] {
    const uint64_t used = stats_.live_chunks + gathered;
    return stats_.reserved_chunks - used - chunks_.free_count() > used / kIdleShare;
  };
  while (chunks_.free_count() < size && many_left()) recycle(idle_primitives_.largest());
  while (chunks_.free_count() < size && chunks_.available() != 0) {
    uint64_t handle = 0;
    result = memory_->create(&handle);
    if (result != Result::ok) break;
    const Index chunk = chunks_.take();
    chunks_[chunk].handle = handle;
    chunks_.add_free(chunk, chunk, 1);
    ++stats_.reserved_chunks;
  }
  while (chunks_.free_count() < size) {
    const uint32_t largest = idle_primitives_.largest();
    if (largest == 0) break;
    recycle(largest);
  }
  if (chunks_.free_count() < size) {
    destroy_free_chunks();
    return result != Result::ok ? result : Result::out_of_memory;
  }
  Index last = chunks_.first_free();
  for (uint32_t i = 0; i < size; ++i) {
    const Index chunk = i == 0 ? chunks_.first_free() : chunks_[last].next;
    handles_[i] = chunks_[chunk].handle;
    last = chunk;
  }
  Index view = kNone;
  result = map(size, &view);
  if (result != Result::ok) {
    destroy_free_chunks();
    return result;
  }
  const Index at = primitives_.take();
  PrimitiveBlock& primitive = primitives_[at];
  primitive.view = view;
  primitive.size = size;
  primitive.first_chunk = chunks_.first_free();
  chunks_.take_free(last, size);
  stats_.peak_reserved_chunks = std::max(stats_.peak_reserved_chunks, stats_.reserved_chunks);
  *made = at;
  return Result::ok;
}

// An idle PrimitiveBlock becomes free chunks: no mapping of them may be left.
void StitchBlocks::dissolve(Index at) noexcept {
  PrimitiveBlock& primitive = primitives_[at];
  idle_primitives_.erase(at, primitive.size);
  while (primitive.links != kNone) {
    drop_stitched(links_[primitive.links].stitched);
    ++stats_.stitch_frees;
  }
  settle_first();
  memory_->unmap(address_of(primitive.view, primitive.offset), primitive.size);
  stats_.mapped_chunks -= primitive.size;
  leave_view(primitive.view);
  Index last = primitive.first_chunk;
  while (chunks_[last].next != kNone) last = chunks_[last].next;
  chunks_.add_free(primitive.first_chunk, last, primitive.size);
  primitives_.give(at);
}

void StitchBlocks::destroy_free_chunks() noexcept {
  while (chunks_.free_count() != 0) {
    const Index chunk = chunks_.first_free();
    chunks_.take_free(chunk, 1);
    memory_->destroy(chunks_[chunk].handle);
    chunks_.give(chunk);
    --stats_.reserved_chunks;
  }
}

uint64_t StitchBlocks::give_back_idle() noexcept {
  const uint64_t before = stats_.reserved_chunks;
  for (uint32_t size = idle_primitives_.largest(); size != 0; size = idle_primitives_.largest()) {
    dissolve(idle_primitives_.first(size));
  }
  destroy_free_chunks();
  return before - stats_.reserved_chunks;
}

void StitchBlocks::set_busy(Index at, bool busy) noexcept {
  PrimitiveBlock& primitive = primitives_[at];
  primitive.busy = busy;
  for (Index link = primitive.links; link != kNone; link = links_[link].next_of_primitive) {
    const Index stitched = links_[link].stitched;
    if (busy && stitched_[stitched].busy_primitives++ == 0) idle_stitched_.erase(stitched, stitched_[stitched].size);
    if (!busy && --stitched_[stitched].busy_primitives == 0) idle_stitched_.insert(stitched, stitched_[stitched].size);
  }
}

}  // namespace reprise::stitch
