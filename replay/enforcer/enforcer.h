// The handler that manages memory: takes the program's calls to the session of the managed device, or to the driver.
// Made once by make_enforcer() when a budget is set, and never destroyed: what it keeps itself outlives every session.
// All functions are called by program threads.
#pragma once
#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "preload/base/config.h"
#include "preload/calls/handler.h"
#include "preload/record/recorder.h"
#include "replay/enforcer/beside.h"
#include "replay/enforcer/per_thread.h"
#include "replay/enforcer/run_report.h"
#include "replay/issue/account.h"
#include "replay/issue/common.h"
#include "replay/session/session.h"

namespace reprise::replay {

class Enforcer final : public Handler {
 public:
  Enforcer(const Config& config, Recorder* recorder) noexcept;

  CUresult allocate(const AllocateCall& call, CUdeviceptr* address) noexcept override;
  CUresult release(const FreeCall& call) noexcept override;
  bool makes(CUdeviceptr address) const noexcept override;
  CUresult submit(const Command& command) noexcept override;

  CUresult event_record(CUevent event, CUstream stream, unsigned flags) noexcept override;
  CUresult event_query(CUevent event) noexcept override;
  CUresult event_synchronize(CUevent event) noexcept override;
  CUresult event_elapsed(float* milliseconds, CUevent start, CUevent end) noexcept override;
  CUresult event_destroy(CUevent event) noexcept override;
  CUresult stream_wait_event(CUstream stream, CUevent event, unsigned flags) noexcept override;
  CUresult stream_query(CUstream stream) noexcept override;
  CUresult stream_synchronize(CUstream stream) noexcept override;
  CUresult stream_destroy(CUstream stream) noexcept override;
  CUresult context_synchronize() noexcept override;
  CUstream stand_in(CUstream stream) noexcept override;
  void before_per_thread_call() noexcept override;

  CUresult before_ordered(const char* name, bool all_resident) noexcept override;
  CUresult capture_begin() noexcept override;
  CUresult before_joining_capture() noexcept override;
  void capture_end() noexcept override { common_.captures.fetch_sub(1); }

  CUresult context_end(CUcontext context, void (*freed)(CUdeviceptr) noexcept) noexcept override;
  bool reads_back() const noexcept override;
  bool read_back(const ReadBack& request) noexcept override;

  CUresult peer_allowed(CUdevice device, CUdevice peer) noexcept override;
  bool told_memory(CUdevice device, uint64_t* free_bytes, uint64_t* total_bytes) noexcept override;
  CUresult memory_info(size_t* free_bytes, size_t* total_bytes) noexcept override;
  CUresult total_memory(size_t* bytes, CUdevice device) noexcept override;
  bool make_headroom(uint64_t bytes) noexcept override;
  bool make_more_headroom(int refusal) noexcept override;
  CUresult before_beside(BesideCall* call) noexcept override;
  void after_beside(const BesideCall& call, CUresult result) noexcept override;
  void graph_memory(uint32_t instantiated) noexcept override;
  BeforeTaking before_taking() noexcept override;
  void after_taking(const BeforeTaking& before) noexcept override;

  void finish() noexcept override;
  void abandon() noexcept override;

 private:
  enum class State : int { closed, open, off };

  bool open(CUcontext context, CUdevice device) noexcept;
  CUresult close(Session* session, void (*freed)(CUdeviceptr) noexcept) noexcept;
  State state() const noexcept { return state_.load(std::memory_order_acquire); }
  // The one that manages memory now; nullptr: none does.
  Session* session() const noexcept { return state() == State::open ? last_.load(std::memory_order_acquire) : nullptr; }
  Session* session_of(CUdevice device) const noexcept;
  CUresult release_by_driver(const FreeCall& call) noexcept;
  bool tells_budget(CUdevice device) const noexcept;
  static void destroy_stand_in(void* self, CUcontext context, CUstream stream) noexcept;

  const Config config_;
  Recorder* const recorder_;
  Common common_;
  Account account_{common_, config_.budget.bytes};
  BesideCalls beside_{config_, &common_, &account_};
  RunReport report_{config_, recorder_, &common_, &account_};
  PerThreadStreams per_thread_{&Enforcer::destroy_stand_in, this};
  std::mutex open_mutex_;
  std::unique_ptr<Session> session_;     // of the context that was managed last
  std::unique_ptr<Session> ended_;       // of the one before, which a thread may still be asking
  std::atomic<Session*> last_{nullptr};  // that managed memory, for threads without the lock
  std::atomic<State> state_{State::closed};
};

}  // namespace reprise::replay
