// Requests: BestFit's choice, handing out, taking back. What happens to blocks: blocks.cpp.
#include "preload/defragment/stitch/stitcher.h"

#include <algorithm>

namespace reprise::stitch {
namespace {

// How many blocks of the right size are looked at for one that no pending work uses.
constexpr int kLookedAt = 8;

}  // namespace

bool Stitcher::open(Memory* memory, const Limits& limits) noexcept {
  return open_blocks(memory, limits) && live_.open(limits.chunks, limits.chunk_bytes);
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

bool Stitcher::ready_stitched(const StitchedBlock& stitched, Tag tag) const noexcept {
  for (Index link = stitched.links; link != kNone; link = links_[link].next_of_stitched) {
    if (!ready(primitives_[links_[link].primitive], tag)) return false;
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

// S1. A PrimitiveBlock is preferred to a StitchedBlock, whose PrimitiveBlocks then stay idle for other requests.
bool Stitcher::take_exact(uint32_t size, Tag tag, Live* block) noexcept {
  const Index primitive = pick(idle_primitives_, size, [&](Index at) { return ready(primitives_[at], tag); });
  const Index stitched = pick(idle_stitched_, size, [&](Index at) { return ready_stitched(stitched_[at], tag); });
  if (primitive == kNone && stitched == kNone) return false;
  const bool rather_stitched = primitive == kNone || (stitched != kNone && !ready(primitives_[primitive], tag) &&
                                                      ready_stitched(stitched_[stitched], tag));
  block->is_stitched = rather_stitched;
  block->block = rather_stitched ? stitched : primitive;
  if (!rather_stitched) {
    idle_primitives_.erase(primitive, size);
    return true;
  }
  for (Index link = stitched_[stitched].links; link != kNone; link = links_[link].next_of_stitched) {
    idle_primitives_.erase(links_[link].primitive, primitives_[links_[link].primitive].size);
  }
  return true;
}

// S2: a larger PrimitiveBlock, split.
bool Stitcher::take_larger(uint32_t size, Live* block) noexcept {
  const uint32_t larger = idle_primitives_.at_least(std::max(size + 1, limits_.stitched_from));
  if (larger == 0) return false;
  const Index primitive = idle_primitives_.first(larger);
  idle_primitives_.erase(primitive, larger);
  const Index rest = split(primitive, size);
  insert_whole(primitive, rest);
  *block = Live{};
  block->block = primitive;
  return true;
}

// Takes idle PrimitiveBlocks out of their index into gathered_ until they make up `size`, the largest first, then the
// one that fits the remainder best; what is too much of that is split off. Returns the chunks gathered, at most `size`.
uint32_t Stitcher::gather(uint32_t size, uint32_t* primitives) noexcept {
  uint32_t have = 0;
  while (have < size) {
    const uint32_t needed = size - have;
    uint32_t found = idle_primitives_.largest();
    if (found < limits_.stitched_from || found == 0) break;
    if (found > needed) found = idle_primitives_.at_least(std::max(needed, limits_.stitched_from));
    const Index primitive = idle_primitives_.first(found);
    idle_primitives_.erase(primitive, found);
    if (found > needed) {
      const Index rest = split(primitive, needed);
      insert_whole(primitive, rest);
    }
    gathered_[(*primitives)++] = primitive;
    have += primitives_[primitive].size;
  }
  return have;
}

// The gathered PrimitiveBlocks are not used after all: idle again.
void Stitcher::scatter(uint32_t primitives) noexcept {
  for (uint32_t i = 0; i < primitives; ++i) idle_primitives_.insert(gathered_[i], primitives_[gathered_[i]].size);
}

// S3 and S4: several PrimitiveBlocks stitched, with new chunks where they do not suffice.
Result Stitcher::take_several(uint32_t size, Live* block, State* state) noexcept {
  uint32_t primitives = 0;
  const uint32_t have = gather(size, &primitives);
  *state = have == size ? State::multiple : State::insufficient;
  Result result = Result::ok;
  if (have < size) {
    Index grown = kNone;
    result = grow(size - have, have, &grown);
    if (result == Result::ok) gathered_[primitives++] = grown;
  }
  *block = Live{};
  block->block = gathered_[0];
  if (result == Result::ok && primitives > 1) {
    block->is_stitched = true;
    result = stitch(primitives, size, &block->block);
  }
  if (result != Result::ok) scatter(primitives);
  return result;
}

void Stitcher::await(const PrimitiveBlock& primitive, Tag tag, Grant* grant) noexcept {
  if (ready(primitive, tag)) return;
  for (uint32_t i = 0; i < grant->wait_count; ++i) {
    if (grant->waits[i] == primitive.tag) return;
  }
  if (primitive.tag == kUnknownWork || grant->wait_count == Grant::kMaxWaits) {
    grant->wait_for_all = true;
  } else {
    grant->waits[grant->wait_count++] = primitive.tag;
  }
}

void Stitcher::hand_out(const Live& block, uint64_t bytes, Tag tag, Grant* grant) noexcept {
  Live live = block;
  uint32_t size = 0;
  const auto use = [&](Index primitive) {
    await(primitives_[primitive], tag, grant);
    set_busy(primitive, true);
    size += primitives_[primitive].size;
  };
  if (block.is_stitched) {
    StitchedBlock& stitched = stitched_[block.block];
    for (Index link = stitched.links; link != kNone; link = links_[link].next_of_stitched) use(links_[link].primitive);
    stitched.live = true;
    unused_stitched_.erase(0, block.block);
    live.address = address_of(stitched.view, stitched.offset);
  } else {
    use(block.block);
    live.address = address_of(primitives_[block.block].view, primitives_[block.block].offset);
  }
  live.bytes = bytes;
  live_.remember(live);
  grant->address = live.address;
  stats_.live_bytes += bytes;
  stats_.live_chunks += size;
  stats_.peak_live_bytes = std::max(stats_.peak_live_bytes, stats_.live_bytes);
  stats_.peak_live_chunks = std::max(stats_.peak_live_chunks, stats_.live_chunks);
}

void Stitcher::free_primitive(Index at, Tag tag) noexcept {
  PrimitiveBlock& primitive = primitives_[at];
  primitive.tag = tag;
  primitive.epoch = pending_.now();
  stats_.live_chunks -= primitive.size;
  set_busy(at, false);
  idle_primitives_.insert(at, primitive.size);
}

bool Stitcher::release(uint64_t address, Tag tag) noexcept {
  Live live;
  if (!live_.forget(address, &live)) return false;
  pending_.freed(tag);
  stats_.live_bytes -= live.bytes;
  if (!live.is_stitched) {
    free_primitive(live.block, tag);
    return true;
  }
  StitchedBlock& stitched = stitched_[live.block];
  for (Index link = stitched.links; link != kNone; link = links_[link].next_of_stitched)
    free_primitive(links_[link].primitive, tag);
  stitched.live = false;
  unused_stitched_.push(0, live.block);
  return true;
}

}  // namespace reprise::stitch
