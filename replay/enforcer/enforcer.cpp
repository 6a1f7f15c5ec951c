#include "replay/enforcer/enforcer.h"

#include <algorithm>
#include <new>
#include <utility>

#include "analyzer/plan/plan.h"
#include "preload/base/causes.h"
#include "preload/calls/enforcer_factory.h"
#include "preload/driver/device_observer.h"
#include "preload/driver/driver.h"

namespace reprise::replay {
namespace {

constexpr uint64_t kFinishMilliseconds = 20'000;
constexpr const char* kShortOfMemory = phrase<Cause::driver_is_short>();

CUresult allocate_by_driver(const AllocateCall& call, CUstream stream, CUdeviceptr* address) noexcept {
  if (call.origin == trace::Origin::async) return driver().cuMemAllocAsync(address, call.size, stream);
  if (call.origin == trace::Origin::pool) {
    return driver().cuMemAllocFromPoolAsync(address, call.size, call.pool, stream);
  }
  return driver().cuMemAlloc(address, call.size);
}

}  // namespace

Enforcer::Enforcer(const Config& config, Recorder* recorder) noexcept : config_(config), recorder_(recorder) {
  // The launcher has removed an older one, and each program that this one starts has its lines there, too.
  const bool launched = config.launched() && !config.audit;
  common_.run_log.open(config.run_log, launched ? RunLogWriter::Others::write_there : RunLogWriter::Others::none);
}

// The first allocation of the program: from here on all calls go through the command log. Called without locks.
bool Enforcer::open(CUcontext context, CUdevice device) noexcept {
  const std::lock_guard lock(open_mutex_);
  if (state() != State::closed) return state() == State::open;
  const bool is_first = session_ == nullptr;
  if (is_first) {
    find_device_observer();
    common_.activity.store(choose_activity_source(config_.activity));
    common_.recording.store(recorder_ != nullptr && common_.activity.load() != nullptr);
  }
  ended_ = std::exchange(session_, nullptr);
  session_ = std::make_unique<Session>(config_, recorder_, &common_, &account_, ended_.get());
  if (const CUresult result = session_->open(context, device); result != CUDA_SUCCESS) {
    report_.not_opened(*session_, result, is_first);
    state_.store(State::off, std::memory_order_release);
    return false;
  }
  if (is_first) report_.opened(*session_);
  session_->begin_to_plan();
  last_.store(session_.get(), std::memory_order_release);
  state_.store(State::open, std::memory_order_release);
  return true;
}

CUresult Enforcer::context_end(CUcontext context, void (*freed)(CUdeviceptr) noexcept) noexcept {
  Session* const session = this->session();
  if (session == nullptr) return CUDA_SUCCESS;
  if (context == session->shared().context) return close(session, freed);
  per_thread_.forget(context);
  return session->orders().run_errand(Errand::end_context, phrase<Cause::a_context_ended>(), context);
}

// Everything is given back, and the next allocation opens afresh.
CUresult Enforcer::close(Session* session, void (*freed)(CUdeviceptr) noexcept) noexcept {
  const std::lock_guard lock(open_mutex_);
  if (this->session() != session) return CUDA_SUCCESS;
  if (const CUresult result = session->end(); result != CUDA_SUCCESS) return result;
  state_.store(State::closed, std::memory_order_release);
  per_thread_.forget(session->shared().context);
  for (const CUdeviceptr address : session->leave()) {
    observe_freed(address, 0);
    freed(address);
  }
  return CUDA_SUCCESS;
}

Session* Enforcer::session_of(CUdevice device) const noexcept {
  Session* const session = this->session();
  return session != nullptr && session->shared().device == device ? session : nullptr;
}

CUresult Enforcer::allocate(const AllocateCall& call, CUdeviceptr* address) noexcept {
  Session* session = this->session();
  if (session == nullptr && open(call.context, call.device)) session = this->session();
  if (session != nullptr && call.context == session->shared().context) {
    return session->allocate(call, stand_in(call.stream), address);
  }
  // Another device, or a driver without virtual memory management: counted, not managed. The runtime asks without a
  // context first in a thread that has none, and is refused.
  const CUresult result = allocate_by_driver(call, stand_in(call.stream), address);
  if (result == CUDA_SUCCESS) beside_.allocated_elsewhere(call, session_of(call.device) != nullptr);
  return result;
}

CUresult Enforcer::release(const FreeCall& call) noexcept {
  Session* const last = last_.load(std::memory_order_acquire);
  if (last == nullptr || !last->shared().arena_all.contains(call.address)) return release_by_driver(call);
  Session* const session = this->session();
  // After the end there is nothing to free.
  return session != nullptr ? session->release(call, stand_in(call.stream)) : CUDA_SUCCESS;
}

// Memory that is not ours: of another device, of before, of pools of their own kind, managed. Work that uses it may
// still be deferred.
CUresult Enforcer::release_by_driver(const FreeCall& call) noexcept {
  Session* const session = this->session();
  if (session != nullptr) session->orders().drain();
  const CUresult result = call.stream_ordered ? driver().cuMemFreeAsync(call.address, stand_in(call.stream))
                                              : driver().cuMemFree(call.address);
  return session != nullptr ? session->orders().seen(result) : result;
}

bool Enforcer::makes(CUdeviceptr address) const noexcept {
  Session* const session = this->session();
  return session != nullptr && session->shared().arena_all.contains(address);
}

CUresult Enforcer::submit(const Command& command) noexcept {
  if (Session* const session = this->session()) return session->submit(command, stand_in(command.stream));
  if (may_wait_for_program(command.op)) common_.launched.store(true, std::memory_order_relaxed);
  return command.issue(command.payload, command.stream);
}

CUresult Enforcer::event_record(CUevent event, CUstream stream, unsigned flags) noexcept {
  Session* const session = this->session();
  if (session != nullptr && event != nullptr) return session->orders().event_record(event, stand_in(stream), flags);
  return flags == 0 ? driver().cuEventRecord(event, stream) : driver().cuEventRecordWithFlags(event, stream, flags);
}

CUresult Enforcer::event_query(CUevent event) noexcept {
  Session* const session = this->session();
  return session != nullptr ? session->orders().event_query(event) : driver().cuEventQuery(event);
}

CUresult Enforcer::event_synchronize(CUevent event) noexcept {
  Session* const session = this->session();
  return session != nullptr ? session->orders().event_synchronize(event) : driver().cuEventSynchronize(event);
}

CUresult Enforcer::event_elapsed(float* milliseconds, CUevent start, CUevent end) noexcept {
  Session* const session = this->session();
  return session != nullptr ? session->orders().event_elapsed(milliseconds, start, end)
                            : driver().cuEventElapsedTime(milliseconds, start, end);
}

CUresult Enforcer::event_destroy(CUevent event) noexcept {
  Session* const session = this->session();
  return session != nullptr ? session->orders().event_destroy(event) : driver().cuEventDestroy(event);
}

CUresult Enforcer::stream_wait_event(CUstream stream, CUevent event, unsigned flags) noexcept {
  Session* const session = this->session();
  if (session == nullptr || event == nullptr) return driver().cuStreamWaitEvent(stream, event, flags);
  return session->orders().stream_wait_event(stand_in(stream), event, flags);
}

CUresult Enforcer::stream_query(CUstream stream) noexcept {
  Session* const session = this->session();
  return session != nullptr ? session->orders().stream_query(stand_in(stream)) : driver().cuStreamQuery(stream);
}

CUresult Enforcer::stream_synchronize(CUstream stream) noexcept {
  Session* const session = this->session();
  return session != nullptr ? session->orders().stream_synchronize(stand_in(stream))
                            : driver().cuStreamSynchronize(stream);
}

CUresult Enforcer::stream_destroy(CUstream stream) noexcept {
  Session* const session = this->session();
  // The default streams cannot be destroyed: the driver refuses.
  const bool is_default = stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
  return session == nullptr || is_default ? driver().cuStreamDestroy(stream) : session->orders().stream_destroy(stream);
}

CUresult Enforcer::context_synchronize() noexcept {
  Session* const session = this->session();
  return session != nullptr ? session->orders().context_synchronize() : driver().cuCtxSynchronize();
}

CUresult Enforcer::before_ordered(const char* name, bool all_resident) noexcept {
  Session* const session = this->session();
  return session != nullptr ? session->orders().before_ordered(name, all_resident) : CUDA_SUCCESS;
}

CUstream Enforcer::stand_in(CUstream stream) noexcept {
  return stream == CU_STREAM_PER_THREAD && state() == State::open ? per_thread_.of_this_thread() : stream;
}

void Enforcer::before_per_thread_call() noexcept {
  if (state() != State::open) return;
  stream_synchronize(CU_STREAM_PER_THREAD);
  per_thread_.driver_works();
}

void Enforcer::destroy_stand_in(void* self, CUcontext context, CUstream stream) noexcept {
  Session* const session = static_cast<Enforcer*>(self)->session();
  if (session != nullptr) session->orders().stream_of_ended_thread(context, stream);
}

CUresult Enforcer::capture_begin() noexcept {
  common_.captures.fetch_add(1);
  return before_joining_capture();
}

CUresult Enforcer::before_joining_capture() noexcept {
  Session* const session = this->session();
  return session != nullptr ? session->orders().run_errand(Errand::mark_lanes, phrase<Cause::a_capture>())
                            : CUDA_SUCCESS;
}

bool Enforcer::reads_back() const noexcept {
  Session* const session = this->session();
  return session != nullptr && session->reads_back();
}

bool Enforcer::read_back(const ReadBack& request) noexcept {
  Session* const session = this->session();
  return session != nullptr && session->read_back(request);
}

CUresult Enforcer::peer_allowed(CUdevice device, CUdevice peer) noexcept {
  const bool known = device >= 0 && peer >= 0 && peer < 64 && static_cast<size_t>(device) < common_.peers.size();
  if (!known || device == peer) return CUDA_SUCCESS;
  std::atomic<uint64_t>& peers = common_.peers[static_cast<size_t>(device)];
  const uint64_t before = peers.fetch_or(uint64_t{1} << peer);
  const uint64_t after = before | uint64_t{1} << peer;
  Session* const session = session_of(device);
  if (after == before || session == nullptr) return CUDA_SUCCESS;
  return session->orders().run_errand(Errand::allow_peers, phrase<Cause::one_more_device>(), nullptr, after);
}

bool Enforcer::make_headroom(uint64_t bytes) noexcept {
  Session* const session = this->session();
  if (session == nullptr) return false;
  return session->orders().run_errand(Errand::headroom, kShortOfMemory, nullptr, bytes) == CUDA_SUCCESS;
}

bool Enforcer::make_more_headroom(int refusal) noexcept {
  Session* const session = this->session();
  if (session == nullptr || common_.captures.load() > 0) return false;
  const auto count = static_cast<uint64_t>(refusal);
  return session->orders().run_errand(Errand::more_headroom, kShortOfMemory, nullptr, count) == CUDA_SUCCESS;
}

CUresult Enforcer::before_beside(BesideCall* call) noexcept {
  return beside_.before(call, session_of(call->device), state() == State::closed);
}

void Enforcer::after_beside(const BesideCall& call, CUresult result) noexcept {
  beside_.after(call, result, session_of(call.device));
}

void Enforcer::graph_memory(uint32_t instantiated) noexcept {
  account_.graphs.instantiated(instantiated);
  Session* const session = this->session();
  if (session != nullptr && free_bytes_of(session->shared().device)) account_.look_at_graphs(session->memory());
}

// While the dispatcher works, what is free changes by our own chunks: then nothing is counted. Before memory is managed
// there are none.
Handler::BeforeTaking Enforcer::before_taking() noexcept {
  CUdevice device = 0;
  Session* const session = this->session();
  if (session == nullptr && state() != State::closed) return {};
  const uint64_t submitted = session != nullptr ? session->shared().command_log.tail() : 0;
  const bool quiet = session == nullptr || session->shared().command_log.head() == submitted;
  if (!quiet || driver().cuCtxGetDevice(&device) != CUDA_SUCCESS) return {};
  if (session != nullptr && device != session->shared().device) return {};
  return {look_before_call(device, graph_bytes(device)), submitted};
}

void Enforcer::after_taking(const BeforeTaking& before) noexcept {
  CUdevice device = 0;
  if (before.look.free == 0 || driver().cuCtxGetDevice(&device) != CUDA_SUCCESS) return;
  const TakenByCall taken = taken_by_call(before.look, device, graph_bytes(device));
  if (taken.bytes == 0) return;
  if (state() == State::closed) {
    common_.taken_before[BesideLedgers::index(device)].fetch_add(taken.bytes);
    return;
  }
  Session* const session = this->session();
  if (session == nullptr || session->shared().command_log.tail() != before.submitted) return;
  account_.counters.given_bytes.fetch_add(taken.bytes, std::memory_order_relaxed);
  account_.look_around(session->memory());
}

// Within a budget in bytes the program sees a device of that size. Within a percentage, or with a given plan, it sees
// the device that it was recorded on, so that it sizes itself as it did then.
bool Enforcer::tells_budget(CUdevice device) const noexcept {
  if (account_.fixed_budget() == 0 || config_.plan != nullptr || state() == State::off) return false;
  return session() == nullptr || session_of(device) != nullptr;
}

CUresult Enforcer::total_memory(size_t* bytes, CUdevice device) noexcept {
  const CUresult result = driver().cuDeviceTotalMem(bytes, device);
  if (result == CUDA_SUCCESS && tells_budget(device)) *bytes = std::min<size_t>(*bytes, account_.fixed_budget());
  return result;
}

// Within a budget of bytes what is told to be free can be had: as one allocation or as several, and used by one call.
bool Enforcer::told_memory(CUdevice device, uint64_t* free_bytes, uint64_t* total_bytes) noexcept {
  if (!tells_budget(device)) return false;
  const Counters& counters = account_.counters;
  const auto less = [](uint64_t a, uint64_t b) { return a - std::min(a, b); };
  const uint64_t budget = account_.fixed_budget();
  *total_bytes = std::min(*total_bytes, budget);
  Session* const session = session_of(device);
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
CUresult Enforcer::memory_info(size_t* free_bytes, size_t* total_bytes) noexcept {
  constexpr int kLooks = 8;  // our chunks may come and go meanwhile
  const CUresult result = driver().cuMemGetInfo(free_bytes, total_bytes);
  if (result != CUDA_SUCCESS || state() == State::off) return result;
  CUdevice device = 0;
  Session* const session = this->session();
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

// Exit handlers that were registered before ours still call: they are served as before, on demand, and only the run log
// ends. Where the dispatcher does not come to an end, there is nobody to serve them.
void Enforcer::finish() noexcept {
  Session* const session = this->session();
  if (session == nullptr) {
    Session* const last = last_.load();
    if (state() == State::closed && last == nullptr) {
      // A thread may ask just now.
      const std::unique_lock lock(open_mutex_, std::try_to_lock);
      if (!lock.owns_lock() || state() != State::closed) return common_.run_log.flush();
      return report_.never_opened();
    }
    report_.say_what_failed(nullptr);
    const bool context_ended = state() == State::closed || ended_ != nullptr;  // by the program itself
    return context_ended ? report_.end(nullptr, *last) : common_.run_log.flush();
  }
  if (session->dispatcher().wait_settled(kFinishMilliseconds)) {
    session->orders().run_errand(Errand::leave_plan, phrase<Cause::program_ended>());
  } else {
    state_.store(State::off);
  }
  collect_activity(recorder_, common_);
  report_.say_what_failed(session);
  report_.end(this->session(), *session);
}

void Enforcer::abandon() noexcept {
  state_.store(State::off);
  common_.run_log.abandon();
}

}  // namespace reprise::replay

reprise::Handler* reprise::make_enforcer(const Config& config, Recorder* recorder) noexcept {
  Config settings = config;
  if (settings.plan != nullptr) {
    const Result<plan::Plan> plan = plan::read_plan(settings.plan);
    if (!plan.ok() && !settings.budget.given()) {
      say<Cause::plan_unreadable>(plan.status().message());
      return nullptr;
    }
    if (plan.ok()) settings.plan_chunk_bytes = plan.value().chunk_bytes;
    if (!settings.budget.given()) settings.budget.bytes = plan.value().budget_bytes;  // as `reprise replay` does
  }
  auto* const enforcer = new (std::nothrow) replay::Enforcer(settings, recorder);
  if (enforcer == nullptr) say<Cause::no_memory_to_manage>();
  return enforcer;
}
