#include "replay/enforcer/enforced_memory.h"

#include <algorithm>
#include <utility>

#include "preload/base/causes.h"
#include "preload/driver/driver.h"

namespace reprise::replay {
namespace {

constexpr const char* kShortOfMemory = phrase<Cause::driver_is_short>();

CUresult allocate_by_driver(const AllocateCall& call, CUstream stream, CUdeviceptr* address) noexcept {
  if (call.origin == trace::Origin::async) return driver().cuMemAllocAsync(address, call.size, stream);
  if (call.origin == trace::Origin::pool) {
    return driver().cuMemAllocFromPoolAsync(address, call.size, call.pool, stream);
  }
  return driver().cuMemAlloc(address, call.size);
}

}  // namespace

CUresult EnforcedMemory::context_end(CUcontext context, void (*freed)(CUdeviceptr) noexcept) noexcept {
  Session* const session = sessions_.now();
  if (session == nullptr) return CUDA_SUCCESS;
  if (context == session->shared().context) return sessions_.close(session, &order_.per_thread(), freed);
  order_.per_thread().forget(context);
  return session->orders().run_errand(Errand::end_context, phrase<Cause::a_context_ended>(), context);
}

CUresult EnforcedMemory::allocate(const AllocateCall& call, CUdeviceptr* address) noexcept {
  Session* session = sessions_.now();
  if (session == nullptr && sessions_.open(call.context, call.device)) session = sessions_.now();
  if (session != nullptr && call.context == session->shared().context) {
    return session->allocate(call, order_.stand_in(call.stream), address);
  }
  // Another device, or a driver without virtual memory management: counted, not managed. The runtime asks without a
  // context first in a thread that has none, and is refused.
  const CUresult result = allocate_by_driver(call, order_.stand_in(call.stream), address);
  if (result == CUDA_SUCCESS) beside_.allocated_elsewhere(call, sessions_.of(call.device) != nullptr);
  return result;
}

CUresult EnforcedMemory::release(const FreeCall& call) noexcept {
  Session* const last = sessions_.last();
  if (last == nullptr || !last->shared().arena_all.contains(call.address)) return release_by_driver(call);
  Session* const session = sessions_.now();
  // After the end there is nothing to free.
  return session != nullptr ? session->release(call, order_.stand_in(call.stream)) : CUDA_SUCCESS;
}

// Memory that is not ours: of another device, of before, of pools of their own kind, managed. Work that uses it may
// still be deferred.
CUresult EnforcedMemory::release_by_driver(const FreeCall& call) noexcept {
  Session* const session = sessions_.now();
  if (session != nullptr) session->orders().drain();
  const CUresult result = call.stream_ordered ? driver().cuMemFreeAsync(call.address, order_.stand_in(call.stream))
                                              : driver().cuMemFree(call.address);
  return session != nullptr ? session->orders().seen(result) : result;
}

bool EnforcedMemory::makes(CUdeviceptr address) const noexcept {
  Session* const session = sessions_.now();
  return session != nullptr && session->shared().arena_all.contains(address);
}

CUresult EnforcedMemory::peer_allowed(CUdevice device, CUdevice peer) noexcept {
  const bool known = device >= 0 && peer >= 0 && peer < 64 && static_cast<size_t>(device) < common_.peers.size();
  if (!known || device == peer) return CUDA_SUCCESS;
  std::atomic<uint64_t>& peers = common_.peers[static_cast<size_t>(device)];
  const uint64_t before = peers.fetch_or(uint64_t{1} << peer);
  const uint64_t after = before | uint64_t{1} << peer;
  Session* const session = sessions_.of(device);
  if (after == before || session == nullptr) return CUDA_SUCCESS;
  return session->orders().run_errand(Errand::allow_peers, phrase<Cause::one_more_device>(), nullptr, after);
}

bool EnforcedMemory::make_headroom(uint64_t bytes) noexcept {
  Session* const session = sessions_.now();
  if (session == nullptr) return false;
  return session->orders().run_errand(Errand::headroom, kShortOfMemory, nullptr, bytes) == CUDA_SUCCESS;
}

bool EnforcedMemory::make_more_headroom(int refusal) noexcept {
  Session* const session = sessions_.now();
  if (session == nullptr || common_.captures.load() > 0) return false;
  const auto count = static_cast<uint64_t>(refusal);
  return session->orders().run_errand(Errand::more_headroom, kShortOfMemory, nullptr, count) == CUDA_SUCCESS;
}

CUresult EnforcedMemory::before_beside(BesideCall* call) noexcept {
  return beside_.before(call, sessions_.of(call->device), sessions_.state() == Sessions::State::closed);
}

void EnforcedMemory::after_beside(const BesideCall& call, CUresult result) noexcept {
  beside_.after(call, result, sessions_.of(call.device));
}

void EnforcedMemory::graph_memory(uint32_t instantiated) noexcept {
  account_.graphs.instantiated(instantiated);
  Session* const session = sessions_.now();
  if (session != nullptr && free_bytes_of(session->shared().device)) account_.look_at_graphs(session->memory());
}

// While the dispatcher works, what is free changes by our own chunks: then nothing is counted. Before memory is managed
// there are none.
MemoryHandler::BeforeTaking EnforcedMemory::before_taking() noexcept {
  CUdevice device = 0;
  Session* const session = sessions_.now();
  if (session == nullptr && sessions_.state() != Sessions::State::closed) return {};
  const uint64_t submitted = session != nullptr ? session->shared().command_log.tail() : 0;
  const bool quiet = session == nullptr || session->shared().command_log.head() == submitted;
  if (!quiet || driver().cuCtxGetDevice(&device) != CUDA_SUCCESS) return {};
  if (session != nullptr && device != session->shared().device) return {};
  return {look_before_call(device, graph_bytes(device)), submitted};
}

void EnforcedMemory::after_taking(const BeforeTaking& before) noexcept {
  CUdevice device = 0;
  if (before.look.free == 0 || driver().cuCtxGetDevice(&device) != CUDA_SUCCESS) return;
  const TakenByCall taken = taken_by_call(before.look, device, graph_bytes(device));
  if (taken.bytes == 0) return;
  if (sessions_.state() == Sessions::State::closed) {
    common_.taken_before[BesideLedgers::index(device)].fetch_add(taken.bytes);
    return;
  }
  Session* const session = sessions_.now();
  if (session == nullptr || session->shared().command_log.tail() != before.submitted) return;
  account_.counters.given_bytes.fetch_add(taken.bytes, std::memory_order_relaxed);
  account_.look_around(session->memory());
}

// Within a budget in bytes the program sees a device of that size. Within a percentage, or with a given plan, it sees
// the device that it was recorded on, so that it sizes itself as it did then.
bool EnforcedMemory::tells_budget(CUdevice device) const noexcept {
  if (account_.fixed_budget() == 0 || config_.plan != nullptr || sessions_.state() == Sessions::State::off)
    return false;
  return sessions_.now() == nullptr || sessions_.of(device) != nullptr;
}

CUresult EnforcedMemory::total_memory(size_t* bytes, CUdevice device) noexcept {
  const CUresult result = driver().cuDeviceTotalMem(bytes, device);
  if (result == CUDA_SUCCESS && tells_budget(device)) *bytes = std::min<size_t>(*bytes, account_.fixed_budget());
  return result;
}

// Within a budget of bytes what is told to be free can be had: as one allocation or as several, and used by one call.
bool EnforcedMemory::told_memory(CUdevice device, uint64_t* free_bytes, uint64_t* total_bytes) noexcept {
  if (!tells_budget(device)) return false;
  const Counters& counters = account_.counters;
  const auto less = [](uint64_t a, uint64_t b) { return a - std::min(a, b); };
  const uint64_t budget = account_.fixed_budget();
  *total_bytes = std::min(*total_bytes, budget);
  Session* const session = sessions_.of(device);
  if (session == nullptr) {
    *free_bytes = std::min(*free_bytes, less(budget, common_.held_on(device)));
    return true;
  }
  const uint64_t chunk = session->shared().chunk_bytes;
  const uint64_t left = std::min(less(budget, account_.around.bytes()), counters.room_bytes.load());
  *free_bytes = less(left / chunk * chunk, counters.in_chunks_bytes.load(std::memory_order_relaxed));
  return true;
}

// Without such a budget as without us: what we hold would be free, what the program has asked for would not, and others
// hold what they hold.
CUresult EnforcedMemory::memory_info(size_t* free_bytes, size_t* total_bytes) noexcept {
  constexpr int kLooks = 8;  // our chunks may come and go meanwhile
  const CUresult result = driver().cuMemGetInfo(free_bytes, total_bytes);
  if (result != CUDA_SUCCESS || sessions_.state() == Sessions::State::off) return result;
  CUdevice device = 0;
  Session* const session = sessions_.now();
  if (driver().cuCtxGetDevice(&device) != CUDA_SUCCESS || (session != nullptr && device != session->shared().device)) {
    return result;
  }
  if (told_memory(device, free_bytes, total_bytes)) return result;
  uint64_t ours = session != nullptr ? session->memory().chunks.bytes() : 0;
  for (int i = 0; session != nullptr && i < kLooks; ++i) {
    const Outside::Answer answer = Outside::ask();
    const uint64_t before = std::exchange(ours, session->memory().chunks.bytes());
    *free_bytes = answer.free;
    if (before == ours) break;
  }
  const uint64_t left = std::min<uint64_t>(*total_bytes, *free_bytes + ours);
  *free_bytes = left - std::min(left, account_.counters.footprint_bytes.load(std::memory_order_relaxed));
  return CUDA_SUCCESS;
}

}  // namespace reprise::replay
