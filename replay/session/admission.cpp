#include "replay/session/admission.h"

#include <algorithm>

#include "preload/base/causes.h"

namespace reprise::replay {
namespace {

// How much earlier than it is needed host memory is pinned.
constexpr uint64_t kLeastAhead = 64ull << 20;
constexpr uint64_t kMostAhead = 1ull << 30;

}  // namespace

uint64_t Admission::limit_bytes() const noexcept {
  return shared_.counters.limit_chunks.load(std::memory_order_relaxed) * shared_.chunk_bytes;
}

uint64_t Admission::room_chunks() const noexcept {
  const BudgetRule rule = shared_.account.rule();
  if (rule.bytes == 0) return rule.fraction >= 1 ? UINT64_MAX : 0;
  const uint64_t outside = shared_.counters.outside_bytes.load(std::memory_order_relaxed);
  return chunk_limit(rule, shared_.chunk_bytes, outside, 0, 0);
}

// All bytes that do not fit on the device need a place on the host, and one call's tensors may still be offloaded while
// the next call's are reloaded: `moving`.
uint64_t Admission::host_bytes_for(uint64_t more, uint64_t moving) const noexcept {
  const uint64_t live = plans_.follower().live().in_chunks() + more;
  const uint64_t limit = limit_bytes();
  return live <= limit ? 0 : std::min(live, live - limit + moving);
}

// Makes room on the host for `more`. 0: there is; else what it would have to hold, by the limit as it was then.
uint64_t Admission::missing_host_bytes(uint64_t more) noexcept {
  const uint64_t moving = shared_.counters.largest_working_set.load(std::memory_order_relaxed) * shared_.chunk_bytes;
  const uint64_t bytes = host_bytes_for(more, moving);
  if (bytes == 0 || shared_.host->reserve(bytes)) return 0;
  const uint64_t least = host_bytes_for(more, 0);
  return least == 0 || shared_.host->reserve(least) ? 0 : least;
}

// Pinning 1 GiB takes a third of a second and more. Other threads go on meanwhile: it is waited for without the lock,
// and begun before it is needed.
void Admission::pin_ahead(uint64_t more) noexcept {
  uint64_t needed = 0;
  uint64_t soon = 0;
  {
    const std::lock_guard lock(shared_.submit_mutex);
    // A plan's slots are made when it begins; where all fits there are none.
    if (plans_.follower().following() || config_.budget.fraction >= 1) return;
    const uint64_t moving = shared_.counters.largest_working_set.load(std::memory_order_relaxed) * shared_.chunk_bytes;
    more = std::max(shared_.addresses.chunk_count(more), 1u) * shared_.chunk_bytes;
    needed = host_bytes_for(more, moving);
    soon = host_bytes_for(more + std::clamp(limit_bytes() / 4, kLeastAhead, kMostAhead), moving);
  }
  if (soon == 0) return;
  shared_.host->want(soon);
  if (needed > 0) shared_.host->reserve(needed);
}

// A tensor comes to the device as a whole. One that never can is refused when it is allocated, as a device of that size
// does it: programs that look for the largest batch that fits catch that error, and not the one of a launch.
bool Admission::can_be_used(uint64_t bytes) noexcept {
  constexpr uint32_t kMostTold = 5;
  const uint64_t outside = shared_.counters.outside_bytes.load(std::memory_order_relaxed);
  const RoomFigures room = shared_.account.room.get();
  const uint64_t taken = room.elsewhere + outside;
  const bool tells = shared_.counters.shortages.load() < kMostTold;
  if (room.total != 0 && bytes > room.total - std::min(room.total, taken)) {  // with any budget
    shared_.counters.shortages.fetch_add(1);
    if (!tells) return false;
    shared_.account.room.write(shared_.run_log);
    say<Cause::allocation_above_room>(bytes, who_has_the_rest(room), how_to_get_room(room, bytes + outside));
    return false;
  }
  const BudgetRule rule = shared_.account.rule();
  const uint64_t budget = rule.bytes - std::min(rule.bytes, outside);
  if (rule.bytes == 0 || bytes <= budget) return true;
  if (shared_.counters.shortages.fetch_add(1) >= kMostTold) return false;
  shared_.account.told_least(bytes + outside);
  say<Cause::allocation_above_budget>(bytes, budget, bytes + outside);
  RunLogLine line(run_log::shortage::line);
  line.add(run_log::shortage::call, std::string("An allocation"))
      .add(run_log::shortage::needed_bytes, bytes)
      .add(run_log::shortage::least_bytes, bytes + outside);
  shared_.run_log.write(line);
  return false;
}

CUresult Admission::refuse(const AllocateCall& call, uint64_t missing_host_bytes) noexcept {
  // The limit may have moved since the host's memory was asked for.
  const uint64_t chunks = std::max(shared_.addresses.chunk_count(call.size), 1u);
  const uint64_t live = plans_.follower().live().in_chunks() + chunks * shared_.chunk_bytes;
  const uint64_t limit = missing_host_bytes == 0 ? limit_bytes() : live - missing_host_bytes;
  shared_.account.refused.store(true, std::memory_order_relaxed);
  say<Cause::allocation_above_tiers>(call.size, live, limit, shared_.host->cap());
  if (missing_host_bytes != 0) {
    RunLogLine line(run_log::host_full::line);
    line.add(run_log::host_full::needed_bytes, missing_host_bytes)
        .add(run_log::host_full::host_bytes, shared_.host->cap());
    shared_.run_log.write(line);
  }
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// Might the call need more than the budget can ever hold? Then its thread waits for the answer, so that it is this call
// that answers CUDA_ERROR_OUT_OF_MEMORY, with nothing done, and the program may go on. Too often is right: each access
// counts its whole allocation and a chunk for what is rounded. A percentage is never less than what a call needs.
bool Admission::may_not_fit(const Command& command) const noexcept {
  if (shared_.account.fixed_budget() == 0) return false;
  const uint64_t most = command.operand_bytes + command.access_count * shared_.chunk_bytes;
  const uint64_t outside = shared_.counters.outside_bytes.load(std::memory_order_relaxed);
  return most > chunk_limit(shared_.account.rule(), shared_.chunk_bytes, outside, 0, 0) * shared_.chunk_bytes;
}

}  // namespace reprise::replay
