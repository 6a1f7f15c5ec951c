// The handler that manages memory: turns the program's calls into log entries and gives the answers that the
// program sees.
// Made once by make_enforcer() when a budget is set. All functions are called by program threads.
#pragma once
#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "preload/base/config.h"
#include "preload/calls/handler.h"
#include "preload/record/recorder.h"
#include "replay/base/fair_mutex.h"
#include "replay/dispatch/dispatcher.h"
#include "replay/enforcer/per_thread.h"
#include "replay/issue/shared.h"
#include "replay/plans/plan_session.h"

namespace reprise::replay {

class Enforcer final : public Handler {
 public:
  Enforcer(const Config& config, Recorder* recorder) noexcept;

  CUresult allocate(const AllocateCall& call, CUdeviceptr* address) noexcept override;
  CUresult release(const FreeCall& call) noexcept override;
  bool makes(CUdeviceptr address) const noexcept override { return managing() && shared_.arena_all.contains(address); }
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
  void capture_end() noexcept override;

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

  // Set-up and end.
  bool open(CUcontext context, CUdevice device) noexcept;
  CUresult close(void (*freed)(CUdeviceptr) noexcept) noexcept;
  Dispatcher::Measure to_be_measured() const noexcept;
  uint64_t held_by_program(CUdevice device) noexcept;
  void look_around_ours() noexcept;
  void allocated_elsewhere(const AllocateCall& call) noexcept;
  void tell_refused(const BesideCall& call) noexcept;
  CUresult make_room_for(BesideCall* call) noexcept;
  CUresult refuse_beside(const BesideCall& call, uint64_t held) noexcept;
  void write_unmanaged() noexcept;
  void set_budget(uint64_t held) noexcept;
  uint64_t fixed_budget() const noexcept;
  bool tells_budget() const noexcept;
  void start_examining() noexcept;
  void tell_recorder() noexcept;
  void write_not_managed(CUresult result) noexcept;
  void write_start() noexcept;
  void write_unopened() noexcept;
  void write_end() noexcept;
  bool has_told_of_failure() const noexcept;
  void say_what_failed() noexcept;
  void say_above_budget(uint64_t peak, uint64_t budget) noexcept;
  bool say_why_above(uint64_t peak, uint64_t budget) noexcept;
  void say_plan_idle() noexcept;
  std::string name_at_end() const noexcept;
  PlanFollower& follower() const noexcept { return plans_.follower(); }
  bool managing() const noexcept { return state_.load(std::memory_order_acquire) == State::open; }

  // Under the submission lock.
  void append_activate(const FollowedCall& step, CUcontext context) noexcept;
  void append_open_handovers(CUcontext context) noexcept;
  void append_free(const FreeCall& call, CUstream stream, const FollowedCall& step) noexcept;
  void release_small(CUdeviceptr address, uint64_t size) noexcept;
  uint64_t missing_host_bytes(uint64_t more) noexcept;
  uint64_t host_bytes_for(uint64_t more, uint64_t moving) const noexcept;
  void pin_ahead(uint64_t more) noexcept;
  bool can_be_used(uint64_t bytes) noexcept;
  CUresult refuse(const AllocateCall& call, uint64_t missing_host_bytes) noexcept;

  LogEntry* append_op(const Command& command, const FollowedCall& step) noexcept;
  bool decide_wait(LogEntry& entry) noexcept;
  bool may_not_fit(const Command& command) const noexcept;
  uint64_t limit_bytes() const noexcept;

  // Without it.
  CUresult wait_for(Waiter& waiter, LogEntry& entry, const Command& command, CUstream stream) noexcept;
  void drain() noexcept;
  CUresult release_by_driver(const FreeCall& call) noexcept;
  CUresult synchronize_behind(uint64_t position) noexcept;
  void wait_for_turn(const Command& command) noexcept;
  // Appends it, and returns its answer; the plan ends for `why`.
  CUresult run_errand(Errand errand, const char* why, CUcontext context = nullptr, uint64_t bytes = 0) noexcept;
  CUresult append_order(EntryKind kind, CUevent event, CUstream stream, unsigned flags) noexcept;
  CUresult seen(CUresult result) noexcept;
  bool deferred() const noexcept { return shared_.command_log.settled() != shared_.command_log.tail(); }
  static void destroy_stand_in(void* self, CUcontext context, CUstream stream) noexcept;

  // Appends an entry that `fill(LogEntry&)` has completed, under the submission lock, and waits for the answer to it.
  template <typename Fill>
  CUresult ask_dispatcher(EntryKind kind, Fill fill) noexcept {
    Waiter& waiter = Waiter::of_this_thread();
    {
      const std::lock_guard lock(submit_mutex_);
      LogEntry* const entry = shared_.command_log.append(kind);
      fill(*entry);
      waiter.arm();
      entry->waiter = &waiter;
      shared_.command_log.publish(entry);
    }
    shared_.command_log.enter_blocked();
    waiter.wait();
    shared_.command_log.leave_blocked();
    return waiter.result();
  }

  const Config config_;
  Recorder* const recorder_;
  Shared shared_;
  std::unique_ptr<Dispatcher> dispatcher_;  // of this context
  std::unique_ptr<Dispatcher> ended_;       // of the one before, whose host tier a thread may still be asking
  PlanSession plans_;
  std::vector<Access> accesses_;  // of the op that is appended
  PerThreadStreams per_thread_{&Enforcer::destroy_stand_in, this};
  std::atomic<State> state_{State::closed};
  std::atomic<bool> launched_{false};  // something, before memory was managed
  std::mutex open_mutex_;
  FairMutex submit_mutex_;
  std::atomic<uint64_t> host_visible_{0};  // log position behind the last work that writes host memory
  std::atomic<uint64_t> synchronized_{0};  // log position up to which the program knows everything complete
  uint64_t host_cap_ = 0;
  std::atomic<uint64_t> free_budget_{0};  // what was free of it, where that is the budget
  uint64_t started_ns_ = 0;
  std::atomic<bool> refused_{false};  // an allocation was, with a line that says what it lacks
  bool reopened_ = false;             // the context that was managed first has ended
  // What was moved, and how often memory was mapped, in contexts that have ended.
  struct Moved {
    Traffic traffic;
    uint64_t vmm_calls = 0;
    void add(const ManagedMemory& memory) noexcept {
      traffic.add(memory.traffic);
      vmm_calls += memory.mappings.driver_calls();
    }
  };
  Moved before_;
  // Taken by the driver before memory was managed, by calls around which we have looked; by device.
  std::array<std::atomic<uint64_t>, BesideLedgers::kDevices + 1> taken_before_{};
};

}  // namespace reprise::replay
