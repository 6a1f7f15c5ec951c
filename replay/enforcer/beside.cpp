#include "replay/enforcer/beside.h"

#include <algorithm>
#include <optional>

#include "preload/base/causes.h"

namespace reprise::replay {
namespace {

constexpr const char* kRoomBeside = phrase<Cause::taken_around>();
constexpr uint32_t kMostTold = 5;

// The question takes the driver's lock: what a free gives back of another device is known without it.
std::optional<uint64_t> free_bytes_for(const BesideCall& call, bool ours) noexcept {
  return ours || call.given_back == 0 ? free_bytes_of(call.device) : std::nullopt;
}

}  // namespace

CUresult BesideCalls::before(BesideCall* call, Session* session, bool before_any) noexcept {
  if (call->bytes != 0) {
    const uint64_t held = common_.beside.of(call->device).now();
    const uint64_t budget = account_.fixed_budget();
    const bool never =
        before_any && !config_.audit && budget != 0 && call->kind != BesideKind::managed && held + call->bytes > budget;
    if (never) return refuse(*call, held);
    if (session != nullptr && call->kind == BesideKind::graph) account_.graphs.captured();
    const CUresult result = session != nullptr ? make_room_for(call, session) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS) return result;
  }
  call->ours = session != nullptr ? session->memory().chunks.bytes() : 0;
  call->free = free_bytes_for(*call, session != nullptr);
  return CUDA_SUCCESS;
}

// Ours gives way before the driver is asked, so that the budget holds at every instant. What the driver pages by itself
// is never refused: it need not be on the device.
CUresult BesideCalls::make_room_for(BesideCall* call, Session* session) noexcept {
  Counters& counters = account_.counters;
  const BudgetRule rule = account_.rule();
  if (rule.bytes == kAll) return CUDA_SUCCESS;
  const uint64_t soon = account_.around.bytes();
  const bool managed = call->kind == BesideKind::managed;
  if (rule.bytes != 0 && !managed && soon + call->bytes > rule.bytes) {
    return refuse(*call, counters.outside_bytes.load());
  }
  const uint64_t granularity = session->shared().granularity;
  const uint64_t wanted = (call->bytes + granularity - 1) / granularity * granularity;
  call->promised = rule.bytes != 0 ? std::min(wanted, rule.bytes - std::min(rule.bytes, soon)) : wanted;
  account_.around.promise(call->promised);
  counters.given_bytes.fetch_add(call->promised);  // whoever looks before the call has ended finds it explained
  const uint64_t outside = account_.around.bytes();
  const uint64_t peak = account_.peak_beside_outside(counters.peak_footprint_bytes.load());
  if (session->memory().chunks.bytes() + outside <= budget_in_bytes(rule, peak, outside)) return CUDA_SUCCESS;
  const CUresult result = session->orders().run_errand(Errand::make_room, kRoomBeside);
  if (result == CUDA_SUCCESS || rule.bytes == 0 || managed) return CUDA_SUCCESS;
  account_.around.promise_ends(call->promised, 0);
  counters.given_bytes.fetch_sub(call->promised);
  return refuse(*call, counters.outside_bytes.load());
}

CUresult BesideCalls::refuse(const BesideCall& call, uint64_t held) noexcept {
  account_.refused.store(true, std::memory_order_relaxed);
  if (account_.counters.shortages.fetch_add(1) >= kMostTold) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t least = held + call.bytes;
  account_.told_least(least);
  const uint64_t left = account_.fixed_budget() - std::min(account_.fixed_budget(), held);
  say<Cause::unmovable_above_budget>(call.name, call.bytes, left, least);
  RunLogLine line(run_log::shortage::line);
  line.add(run_log::shortage::call, std::string(call.name))
      .add(run_log::shortage::needed_bytes, call.bytes)
      .add(run_log::shortage::least_bytes, least);
  common_.run_log.write(line);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// By the driver, whatever of ours was given back for it.
void BesideCalls::tell_refused(const BesideCall& call, Session* session) noexcept {
  account_.refused.store(true, std::memory_order_relaxed);
  if (account_.counters.shortages.fetch_add(1) >= kMostTold) return;
  const RoomFigures room = account_.room.get();
  account_.room.write(common_.run_log);
  const uint64_t outside = account_.counters.outside_bytes.load();
  say<Cause::unmovable_above_room>(call.name, call.bytes, session->memory().chunks.bytes(), outside,
                                   who_has_the_rest(room), how_to_get_room(room, outside + call.bytes));
}

void BesideCalls::allocated_elsewhere(const AllocateCall& call, bool managed) noexcept {
  common_.beside.of(call.device).made(BesideKind::elsewhere, call.size);
  if (!managed) return;
  account_.counters.given_bytes.fetch_add(call.size);
  account_.counters.look_again.store(true);
}

void BesideCalls::after(const BesideCall& call, CUresult result, Session* session) noexcept {
  Counters& counters = account_.counters;
  const bool ours = session != nullptr;
  const uint64_t chunks = ours ? session->memory().chunks.bytes() : 0;
  const std::optional<uint64_t> free = free_bytes_for(call, ours);
  BesideLedger& ledger = common_.beside.of(call.device);
  if (free && !ours) ledger.saw_free(*free);
  uint64_t made = 0;
  if (result == CUDA_SUCCESS && call.bytes != 0) {
    made = made_by_call(call, free, chunks);
    ledger.made(call.kind, made);
  } else if (result == CUDA_SUCCESS) {
    ledger.given_back(call.kind, given_back_by_call(call, free, chunks));
  }
  if (!ours) return;
  if (result == CUDA_ERROR_OUT_OF_MEMORY && call.bytes != 0) tell_refused(call, session);
  const uint64_t given = call.kind == BesideKind::graph ? 0 : made;  // of graphs the driver tells
  if (given > call.promised) counters.given_bytes.fetch_add(given - call.promised);
  if (free) {
    account_.look_around(session->memory());
  } else {
    account_.around.hold(counters.outside_bytes.fetch_add(made) + made);
  }
  if (call.promised != 0) account_.around.promise_ends(call.promised, made);
  if (call.promised > given) counters.given_bytes.fetch_sub(call.promised - given);
  counters.look_again.store(true);
}

}  // namespace reprise::replay
