// The calls that their program threads make themselves while no plan is in force, because they wait for the device. One
// is held back until its stream has nothing left before it: meanwhile it needs no memory, and the calls of other
// threads, on which it may depend, go on. Callers: OnDemandExecutor and the dispatcher's loop, on the dispatcher
// thread.
#pragma once
#include <list>
#include <vector>

#include "replay/memory/tensors.h"
#include "replay/queue/command_log.h"

namespace reprise::replay {

class OnDemandExecutor;

class ProgramCalls {
 public:
  explicit ProgramCalls(OnDemandExecutor* executor) noexcept : executor_(*executor) {}

  void hold(LogEntry& entry) noexcept;
  // Lets those be made whose turn has come, takes back those that have been made. To be called again and again while
  // there are any.
  void serve() noexcept;
  bool empty() const noexcept { return calls_.empty(); }
  bool any_granted() const noexcept;
  // Returns when no program thread is in the driver with a call that was granted.
  void finish_granted() noexcept;

 private:
  struct ProgramCall {
    LogEntry* entry = nullptr;
    LaneIndex lane = 0;
    LaneUse before;  // what its stream had to do when it was called
    bool granted = false;
    bool everything = false;
    std::vector<ResidentTensor*> set;  // resident while it is granted
  };
  void grant(ProgramCall& call) noexcept;
  void finish(ProgramCall& call) noexcept;
  void end(ProgramCall& call) noexcept;

  OnDemandExecutor& executor_;
  std::list<ProgramCall> calls_;
};

}  // namespace reprise::replay
