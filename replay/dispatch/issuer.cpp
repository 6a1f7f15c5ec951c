#include "preload/base/log.h"
#include "preload/driver/driver.h"
#include "replay/dispatch/on_demand.h"

namespace reprise::replay {

void Issuer::enter_context(CUcontext context) noexcept { memory_.lanes.enter(context); }

CUresult Issuer::issue(LogEntry& entry, uint64_t activity_id) noexcept {
  const Command& command = entry.command;
  enter_context(command.context);  // making room and waiting may have left it
  ActivitySource* const activity = activity_id != 0 ? shared_.activity.load(std::memory_order_acquire) : nullptr;
  if (activity != nullptr) activity->push(activity_id, command.stream);
  CUresult result;
  if (entry.staged) {
    result = driver().cuMemcpyHtoDAsync(command.accesses[0].address, shared_.staging.data(entry.staging), command.size,
                                        command.stream);
  } else {
    result = command.issue(command.payload, command.stream);
  }
  if (activity != nullptr) activity->pop(activity_id, command.stream);
  return result;
}

void Issuer::conclude(LogEntry& entry, CUresult result, LaneUse use) noexcept {
  if (entry.staged) {
    // With a marker the position can be seen to complete; without one the staging area would fill up.
    memory_.lanes.mark(use.lane);
    shared_.staging.release(entry.staging, use);
  }
  if (entry.program_issues) return;  // the program thread has the answer
  if (entry.waiter != nullptr) {
    entry.waiter->done(result);
  } else if (result != CUDA_SUCCESS && shared_.faults.lose(result)) {
    log_line(
        LogLevel::warn,
        "%s was not done (CUDA error %d) after its call had answered that it would be: every later call answers an "
        "error",
        entry.command.name, static_cast<int>(result));
  }
}

void Issuer::issue_event_record(LogEntry& entry) noexcept {
  enter_context(entry.command.context);
  const CUresult result = entry.flags == 0
                              ? driver().cuEventRecord(entry.event, entry.command.stream)
                              : driver().cuEventRecordWithFlags(entry.event, entry.command.stream, entry.flags);
  shared_.faults.report(result);
  shared_.events.issued(entry.event, Events::Role::record);
}

void Issuer::issue_event_wait(LogEntry& entry) noexcept {
  enter_context(entry.command.context);
  shared_.faults.report(driver().cuStreamWaitEvent(entry.command.stream, entry.event, entry.flags));
  shared_.events.issued(entry.event, Events::Role::wait);
}

void Issuer::issue_stream_destroy(LogEntry& entry) noexcept {
  enter_context(entry.command.context);
  shared_.faults.report(memory_.lanes.close(entry.command.stream, entry.command.context));
}

}  // namespace reprise::replay
