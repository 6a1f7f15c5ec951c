// The order of a program's calls while their work waits in the command log: events, streams, synchronisation, and the
// errands that program threads ask of the dispatcher. Callers: the enforcer with the program's calls, on any thread;
// the session. Streams are those that stand for the program's per-thread ones.
#pragma once
#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <mutex>

#include "preload/record/recorder.h"
#include "replay/issue/shared.h"
#include "replay/plans/plan_session.h"

namespace reprise::replay {

class Orders {
 public:
  Orders(Shared* shared, PlanSession* plans, Recorder* recorder) noexcept
      : shared_(*shared), plans_(*plans), recorder_(recorder) {}

  CUresult event_record(CUevent event, CUstream stream, unsigned flags) noexcept;
  CUresult event_query(CUevent event) noexcept;
  CUresult event_synchronize(CUevent event) noexcept;
  CUresult event_elapsed(float* milliseconds, CUevent start, CUevent end) noexcept;
  CUresult event_destroy(CUevent event) noexcept;
  CUresult stream_wait_event(CUstream stream, CUevent event, unsigned flags) noexcept;
  CUresult stream_query(CUstream stream) noexcept;
  CUresult stream_synchronize(CUstream stream) noexcept;
  CUresult stream_destroy(CUstream stream) noexcept;
  // The thread of a stream that stood for its per-thread one has ended: what it submitted may still wait in the log.
  void stream_of_ended_thread(CUcontext context, CUstream stream) noexcept;
  CUresult context_synchronize() noexcept { return synchronize_behind(shared_.command_log.tail()); }
  CUresult before_ordered(const char* name, bool all_resident) noexcept;

  // Appends it, and returns its answer; the plan ends for `why`.
  CUresult run_errand(Errand errand, const char* why, CUcontext context = nullptr, uint64_t bytes = 0) noexcept;
  // Returns when all calls made so far are with the driver.
  void drain() noexcept;
  // An answer of the driver. That the device has failed is told in one line by the dispatcher, and by every later call.
  CUresult seen(CUresult result) noexcept;

  // The entry at `position` of the log writes host memory.
  void writes_host(uint64_t position) noexcept { host_visible_.store(position + 1, std::memory_order_relaxed); }
  // Waits as cuMemFree does, as far as the program can tell: by work that writes host memory (docs/decisions/0003).
  CUresult before_free() noexcept;

  // Appends an entry that `fill(LogEntry&)` has completed, under the submission lock, and waits for the answer to it.
  template <typename Fill>
  CUresult ask_dispatcher(EntryKind kind, Fill fill) noexcept {
    Waiter& waiter = Waiter::of_this_thread();
    {
      const std::lock_guard lock(shared_.submit_mutex);
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

 private:
  CUresult append(EntryKind kind, CUevent event, CUstream stream, unsigned flags) noexcept;
  CUresult synchronize_behind(uint64_t position) noexcept;
  bool deferred() const noexcept { return shared_.command_log.settled() != shared_.command_log.tail(); }

  Shared& shared_;
  PlanSession& plans_;
  Recorder* const recorder_;
  std::atomic<uint64_t> host_visible_{0};  // log position behind the last work that writes host memory
  std::atomic<uint64_t> synchronized_{0};  // log position up to which the program knows everything complete
};

}  // namespace reprise::replay
