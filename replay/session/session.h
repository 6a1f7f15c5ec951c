// What belongs to one managed device, from when its memory begins to be managed to the end of its context: the command
// log, the dispatcher with the memory, the plans. Turns the program's calls into log entries and gives the answers that
// the program sees. Several may live side by side; what they share is Common's. Caller: the enforcer, with calls of
// program threads.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <vector>

#include "preload/base/config.h"
#include "preload/calls/handler.h"
#include "preload/record/recorder.h"
#include "replay/dispatch/dispatcher.h"
#include "replay/issue/shared.h"
#include "replay/plans/plan_session.h"
#include "replay/session/admission.h"
#include "replay/session/orders.h"

namespace reprise::replay {

class Session {
 public:
  // `before`: the session of this device whose context has ended, nullptr: there was none.
  Session(const Config& config, Recorder* recorder, Common* common, Account* account, Session* before) noexcept;

  // Takes what is free of the device, measures and starts the dispatcher. An error: nothing is managed.
  CUresult open(CUcontext context, CUdevice device) noexcept;
  // Behind open(), when the run log has its beginning.
  void begin_to_plan() noexcept { plans_.open(shared_.account.fixed_budget()); }
  // The program ends the context: all is given back, and the dispatcher ends. An error: nothing has changed. Nothing
  // may be called behind it but leave().
  CUresult end() noexcept;
  // ... and the addresses that were allocated are nobody's.
  std::vector<CUdeviceptr> leave() noexcept;
  // At the end of the run. Other threads may still call, or stand still in a call: then the log goes without it.
  void say_why_unplanned() noexcept;

  CUresult allocate(const AllocateCall& call, CUstream stream, CUdeviceptr* address) noexcept;
  CUresult release(const FreeCall& call, CUstream stream) noexcept;
  CUresult submit(const Command& command, CUstream stream) noexcept;
  // A plan in force knows what its calls touch, and waiting would break its pace.
  bool reads_back() noexcept { return !plans_.follower().following(); }
  bool read_back(const ReadBack& request) noexcept;

  Orders& orders() noexcept { return orders_; }
  Shared& shared() noexcept { return shared_; }
  Dispatcher& dispatcher() noexcept { return dispatcher_; }
  ManagedMemory& memory() noexcept { return dispatcher_.memory(); }
  PlanSession& plans() noexcept { return plans_; }

 private:
  void start_examining() noexcept;

  // Under the submission lock.
  void append_activate(const FollowedCall& step, CUcontext context) noexcept;
  void append_open_handovers(CUcontext context) noexcept;
  void append_left_out(const FollowedCall& step, CUcontext context, CUstream stream) noexcept;
  void append_free(const FreeCall& call, CUstream stream, const FollowedCall& step) noexcept;
  LogEntry* append_op(const Command& command, const FollowedCall& step) noexcept;
  bool decide_wait(LogEntry& entry) noexcept;

  // Without it.
  void wait_for_turn(const Command& command) noexcept;
  CUresult wait_for(Waiter& waiter, LogEntry& entry, const Command& command, CUstream stream) noexcept;

  const Config& config_;
  Recorder* const recorder_;
  const bool is_first_;
  Shared shared_;
  Dispatcher dispatcher_;
  PlanSession plans_;
  Orders orders_;
  Admission admission_;
  std::vector<Access> accesses_;  // of the op that is appended
};

}  // namespace reprise::replay
