// Device memory that the program holds around what is managed: calls that make some or give some back, what it counts
// for, and what the program is told to be free (decisions 0061).
#include <algorithm>
#include <utility>

#include "preload/base/causes.h"
#include "preload/driver/driver.h"
#include "preload/driver/own_memory.h"
#include "replay/enforcer/enforcer.h"
#include "replay/issue/held_memory.h"

namespace reprise::replay {
namespace {

constexpr const char* kRoomBeside = phrase<Cause::taken_around>();
constexpr uint32_t kMostTold = 5;
constexpr int kLooks = 8;  // our chunks may come and go meanwhile

// The question takes the driver's lock: what a free gives back of another device is known without it.
std::optional<uint64_t> free_bytes_for(const BesideCall& call, bool ours) noexcept {
  return ours || call.given_back == 0 ? free_bytes_of(call.device) : std::nullopt;
}

}  // namespace

// Before memory is managed nothing of ours is on the device. What this process holds then NVML tells; else what calls
// were seen to take.
uint64_t Enforcer::held_by_program(CUdevice device) noexcept {
  const uint64_t taken = taken_before_[BesideLedgers::index(device)].load();
  return held_by_process(device, shared_.beside.of(device).now() + taken + graph_bytes(device));
}

// A context of the managed device must be current.
void Enforcer::look_around_ours() noexcept { look_around(shared_, dispatcher_->memory()); }

CUresult Enforcer::before_beside(BesideCall* call) noexcept {
  const bool ours = managing() && call->device == shared_.device;
  if (call->bytes != 0 && state_.load(std::memory_order_acquire) != State::off) {
    const uint64_t held = shared_.beside.of(call->device).now();
    const uint64_t budget = fixed_budget();
    const bool never = !ours && !managing() && !config_.audit && budget != 0 && call->kind != BesideKind::managed &&
                       held + call->bytes > budget;
    if (never) return refuse_beside(*call, held);
    if (ours && call->kind == BesideKind::graph) shared_.graphs.captured();
    const CUresult result = ours ? make_room_for(call) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS) return result;
  }
  call->ours = ours ? dispatcher_->memory().chunks.bytes() : 0;
  call->free = free_bytes_for(*call, ours);
  return CUDA_SUCCESS;
}

// Ours gives way before the driver is asked, so that the budget holds at every instant. What the driver pages by itself
// is never refused: it need not be on the device.
CUresult Enforcer::make_room_for(BesideCall* call) noexcept {
  Counters& counters = shared_.counters;
  const BudgetRule rule = budget_of(shared_);
  if (rule.bytes == kAll) return CUDA_SUCCESS;
  const uint64_t soon = shared_.around.bytes();
  const bool managed = call->kind == BesideKind::managed;
  if (rule.bytes != 0 && !managed && soon + call->bytes > rule.bytes) {
    return refuse_beside(*call, counters.outside_bytes.load());
  }
  const uint64_t granularity = shared_.granularity;
  const uint64_t wanted = (call->bytes + granularity - 1) / granularity * granularity;
  call->promised = rule.bytes != 0 ? std::min(wanted, rule.bytes - std::min(rule.bytes, soon)) : wanted;
  shared_.around.promise(call->promised);
  counters.given_bytes.fetch_add(call->promised);  // whoever looks before the call has ended finds it explained
  const uint64_t outside = shared_.around.bytes();
  const uint64_t peak = peak_beside_outside(shared_, counters.peak_footprint_bytes.load());
  if (dispatcher_->memory().chunks.bytes() + outside <= known_budget(rule, peak, outside)) return CUDA_SUCCESS;
  const CUresult result = run_errand(Errand::make_room, kRoomBeside);
  if (result == CUDA_SUCCESS || rule.bytes == 0 || managed) return CUDA_SUCCESS;
  shared_.around.promise_ends(call->promised, 0);
  counters.given_bytes.fetch_sub(call->promised);
  return refuse_beside(*call, counters.outside_bytes.load());
}

CUresult Enforcer::refuse_beside(const BesideCall& call, uint64_t held) noexcept {
  refused_.store(true, std::memory_order_relaxed);
  if (shared_.counters.shortages.fetch_add(1) >= kMostTold) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t least = held + call.bytes;
  say<Cause::unmovable_above_budget>(call.name, call.bytes, fixed_budget() - std::min(fixed_budget(), held), least);
  RunLogLine line(run_log::shortage::line);
  line.add(run_log::shortage::call, std::string(call.name))
      .add(run_log::shortage::needed_bytes, call.bytes)
      .add(run_log::shortage::least_bytes, least);
  shared_.run_log.write(line);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// By the driver, whatever of ours was given back for it.
void Enforcer::tell_refused(const BesideCall& call) noexcept {
  refused_.store(true, std::memory_order_relaxed);
  if (shared_.counters.shortages.fetch_add(1) >= kMostTold) return;
  const RoomFigures room = shared_.room.get();
  shared_.room.write(shared_.run_log);
  say<Cause::unmovable_above_room>(call.name, call.bytes, dispatcher_->memory().chunks.bytes(),
                                   shared_.counters.outside_bytes.load(), who_has_the_rest(room),
                                   how_to_get_room(room, shared_.counters.outside_bytes.load() + call.bytes));
}

// The driver has made it: Reprise manages one device, or none.
void Enforcer::allocated_elsewhere(const AllocateCall& call) noexcept {
  shared_.beside.of(call.device).made(BesideKind::elsewhere, call.size);
  if (!managing() || call.device != shared_.device) return;
  shared_.counters.given_bytes.fetch_add(call.size);
  shared_.counters.look_again.store(true);
}

void Enforcer::after_beside(const BesideCall& call, CUresult result) noexcept {
  Counters& counters = shared_.counters;
  const bool ours = managing() && call.device == shared_.device;
  const uint64_t chunks = ours ? dispatcher_->memory().chunks.bytes() : 0;
  const std::optional<uint64_t> free = free_bytes_for(call, ours);
  BesideLedger& ledger = shared_.beside.of(call.device);
  uint64_t made = 0;
  if (result == CUDA_SUCCESS && call.bytes != 0) {
    made = made_by_call(call, free, chunks);
    ledger.made(call.kind, made);
  } else if (result == CUDA_SUCCESS) {
    ledger.given_back(call.kind, given_back_by_call(call, free, chunks));
  }
  if (!ours) return;
  if (result == CUDA_ERROR_OUT_OF_MEMORY && call.bytes != 0) tell_refused(call);
  const uint64_t given = call.kind == BesideKind::graph ? 0 : made;  // of graphs the driver tells
  if (given > call.promised) counters.given_bytes.fetch_add(given - call.promised);
  if (free) {
    look_around_ours();
  } else {
    shared_.around.hold(counters.outside_bytes.fetch_add(made) + made);
  }
  if (call.promised != 0) shared_.around.promise_ends(call.promised, made);
  if (call.promised > given) counters.given_bytes.fetch_sub(call.promised - given);
  counters.look_again.store(true);
}

// One line a kind, and what is of no call; at its most each.
void Enforcer::write_unmanaged() noexcept {
  const auto write = [this](const std::string& what, uint64_t count, uint64_t bytes) {
    RunLogLine line(run_log::unmanaged::line);
    line.add(run_log::unmanaged::what, what)
        .add(run_log::unmanaged::count, count)
        .add(run_log::unmanaged::bytes, bytes);
    shared_.run_log.write(line);
  };
  for (size_t kind = 0; kind < kBesideKinds; ++kind) {
    BesideLedger::Figures others;
    for (CUdevice device = 0; device <= BesideLedgers::kDevices; ++device) {
      const BesideLedger::Figures row = shared_.beside.of(device).figures(static_cast<BesideKind>(kind));
      if (device == shared_.device && row.count != 0) {
        write(words_of(static_cast<BesideKind>(kind)), row.count, row.most);
      } else if (device != shared_.device) {
        others.count += row.count;
        others.most += row.most;
      }
    }
    if (others.count != 0) {
      write(std::string(words_of(static_cast<BesideKind>(kind))) + " on another device", others.count, others.most);
    }
  }
  const uint64_t of_graphs = shared_.graphs.most_bytes();
  if (of_graphs != 0) write(words_of(BesideKind::graph), shared_.graphs.allocations(), of_graphs);
  if (const uint64_t own = held_by_driver(shared_); own != 0) write(kDriversOwn, 1, own);
}

// What there is of device memory while the program holds `held` of it. A context must be current.
void Enforcer::set_budget(uint64_t held) noexcept {
  shared_.budget = {config_.budget.bytes, config_.budget.fraction, config_.plan_chunk_bytes};
  if (config_.budget.free) free_budget_.store(shared_.budget.bytes = Outside::ask().free + held);
  if (config_.audit) shared_.budget = {kAll, 0, 0};  // what the driver gives
}

// 0: a percentage, or not known yet.
uint64_t Enforcer::fixed_budget() const noexcept {
  return config_.budget.free ? free_budget_.load() : config_.budget.bytes;
}

// Of a run within so many bytes the device is one of that size. Of a percentage, and where a plan is given, it is the
// one that the program was recorded on, so that it sizes itself as it did then.
bool Enforcer::tells_budget() const noexcept {
  return fixed_budget() != 0 && config_.plan == nullptr && state_.load(std::memory_order_acquire) != State::off;
}

CUresult Enforcer::total_memory(size_t* bytes, CUdevice device) noexcept {
  const CUresult result = driver().cuDeviceTotalMem(bytes, device);
  if (result != CUDA_SUCCESS || !tells_budget() || (managing() && device != shared_.device)) return result;
  *bytes = std::min<size_t>(*bytes, fixed_budget());
  return CUDA_SUCCESS;
}

// Within a budget of bytes what is told to be free can be had: as one allocation or as several, and used by one call.
bool Enforcer::told_memory(CUdevice device, uint64_t* free_bytes, uint64_t* total_bytes) noexcept {
  if (!tells_budget() || (managing() && device != shared_.device)) return false;
  const Counters& counters = shared_.counters;
  const auto less = [](uint64_t a, uint64_t b) { return a - std::min(a, b); };
  const uint64_t budget = fixed_budget();
  *total_bytes = std::min(*total_bytes, budget);
  if (!managing()) {
    *free_bytes = std::min(*free_bytes, less(budget, held_by_program(device)));
    return true;
  }
  const uint64_t chunk = shared_.chunk_bytes;
  const uint64_t left = std::min(less(budget, shared_.around.bytes()), counters.room_bytes.load());
  *free_bytes = less(left / chunk * chunk, counters.in_chunks_bytes.load(std::memory_order_relaxed));
  return true;
}

// Without such a budget as without us: what we hold would be free, what the program has asked for would not, and others
// hold what they hold.
CUresult Enforcer::memory_info(size_t* free_bytes, size_t* total_bytes) noexcept {
  const CUresult result = driver().cuMemGetInfo(free_bytes, total_bytes);
  if (result != CUDA_SUCCESS || state_.load(std::memory_order_acquire) == State::off) return result;
  CUdevice device = 0;
  if (driver().cuCtxGetDevice(&device) != CUDA_SUCCESS || (managing() && device != shared_.device)) return result;
  if (told_memory(device, free_bytes, total_bytes)) return result;
  uint64_t ours = managing() ? dispatcher_->memory().chunks.bytes() : 0;
  for (int i = 0; managing() && i < kLooks; ++i) {
    const Outside::Answer answer = Outside::ask();
    const uint64_t before = std::exchange(ours, dispatcher_->memory().chunks.bytes());
    *free_bytes = answer.free;
    if (before == ours) break;
  }
  const uint64_t left = std::min<uint64_t>(*total_bytes, *free_bytes + ours);
  *free_bytes = left - std::min(left, shared_.counters.footprint_bytes.load(std::memory_order_relaxed));
  return CUDA_SUCCESS;
}

}  // namespace reprise::replay
