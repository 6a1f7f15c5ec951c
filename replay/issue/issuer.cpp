#include "replay/issue/issuer.h"

#include "preload/base/causes.h"
#include "preload/driver/device_observer.h"
#include "preload/driver/driver.h"
#include "preload/driver/results.h"

namespace reprise::replay {

void Issuer::enter_context(CUcontext context) noexcept { memory_.lanes.enter(context); }

CUresult Issuer::issue(LogEntry& entry, uint64_t activity_id) noexcept {
  const Command& command = entry.command;
  if (memory_.lanes.given_up()) return memory_.lanes.fault();
  enter_context(command.context);  // making room and waiting may have left it
  ActivitySource* const activity = activity_id != 0 ? shared_.common.activity.load(std::memory_order_acquire) : nullptr;
  if (activity != nullptr) activity->push(activity_id, command.stream);
  CUresult result;
  const Performing performing(command.sequence);
  if (entry.staged) {
    result = driver().cuMemcpyHtoDAsync(command.accesses[0].address, shared_.staging.data(entry.staging), command.size,
                                        command.stream);
  } else {
    result = command.issue(command.payload, command.stream);
  }
  if (activity != nullptr) activity->pop(activity_id, command.stream);
  if (command.op == trace::OpKind::graph_launch && shared_.account.graphs.any()) {
    memory_.lanes.enter_own();  // the driver answers for the current context's device
    shared_.account.look_at_graphs(memory_);
  }
  return result;
}

void Issuer::conclude(LogEntry& entry, CUresult result, LaneUse use) noexcept {
  if (result == CUDA_SUCCESS) fault_report.issued(use, entry.command.name);
  if (entry.staged) {
    // With a marker the position can be seen to complete; without one the staging area would fill up.
    memory_.lanes.mark(use.lane);
    shared_.staging.release(entry.staging, use);
  }
  shared_.faults.report(memory_.lanes.fault());
  if (entry.program_issues) return;  // the program thread has the answer
  if (entry.waiter != nullptr) {
    // Work that was called before may have been lost: no success to tell. What fails from here on, the call's own work
    // among it, is for later calls, as with the driver.
    const CUresult fault = shared_.faults.take();
    entry.waiter->done(fault != CUDA_SUCCESS ? fault : result);
  } else if (is_sticky(result)) {
    shared_.faults.report(result);  // the device has failed before: fault_report says in what
  } else if (result != CUDA_SUCCESS && shared_.faults.lose(result) && !entry.told) {
    say<Cause::work_not_done>(entry.command.name, result);
  }
}

// An order whose call has answered SUCCESS, and which the driver refuses twice. Where the program named what is none,
// its own call would have been refused, too, and there would be no order, either; else work may overtake what it waits
// for.
void Issuer::order_refused(CUresult result, const char* name) noexcept {
  const bool named_wrongly =
      result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_INVALID_CONTEXT;
  if (named_wrongly || is_sticky(result))
    return shared_.faults.report(result);  // fault_report tells of a device that failed
  if (shared_.faults.lose(result)) {
    say<Cause::work_refused>(name, result);
  }
}

void Issuer::issue_event_record(LogEntry& entry) noexcept {
  enter_context(entry.command.context);
  const auto record = [&entry] {
    return entry.flags == 0 ? driver().cuEventRecord(entry.event, entry.command.stream)
                            : driver().cuEventRecordWithFlags(entry.event, entry.command.stream, entry.flags);
  };
  CUresult result = record();
  if (result != CUDA_SUCCESS && !is_sticky(result)) result = record();
  if (result != CUDA_SUCCESS) order_refused(result, "cuEventRecord");
  shared_.events.issued(entry.event, Events::Role::record);
}

void Issuer::issue_event_wait(LogEntry& entry) noexcept {
  enter_context(entry.command.context);
  const auto wait = [&entry] { return driver().cuStreamWaitEvent(entry.command.stream, entry.event, entry.flags); };
  CUresult result = wait();
  if (result != CUDA_SUCCESS && !is_sticky(result)) result = wait();
  if (result != CUDA_SUCCESS) order_refused(result, "cuStreamWaitEvent");
  shared_.events.issued(entry.event, Events::Role::wait);
}

void Issuer::issue_stream_destroy(LogEntry& entry) noexcept {
  enter_context(entry.command.context);
  shared_.faults.report(memory_.lanes.close(entry.command.stream, entry.command.context));
}

}  // namespace reprise::replay
