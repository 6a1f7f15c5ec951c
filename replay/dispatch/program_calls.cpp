#include "replay/dispatch/program_calls.h"

#include <algorithm>

#include "replay/dispatch/on_demand.h"

namespace reprise::replay {

void ProgramCalls::hold(LogEntry& entry) noexcept {
  const Command& command = entry.command;
  executor_.issuer_.enter_context(command.context);
  ProgramCall call;
  call.entry = &entry;
  if (!command.captured) {
    call.lane = executor_.memory_.lanes.lane_of(command.stream, command.context);
    // An event of its own: the program may have put work on the stream that no lane knows of.
    call.before = {call.lane, executor_.memory_.lanes.advance(call.lane)};
    // Without it the call is not held back, and its thread gets the driver's error.
    if (executor_.memory_.lanes.mark(call.lane) != CUDA_SUCCESS) call.before.position = 0;
  }
  calls_.push_back(std::move(call));
  executor_.shared_.command_log.pass(&entry);
  serve();
}

void ProgramCalls::serve() noexcept {
  const auto made = [](const ProgramCall& call) {
    return call.granted && call.entry->program_issued.load(std::memory_order_acquire) != 0;
  };
  // One at a time: serving one may finish others.
  while (true) {
    auto next = std::find_if(calls_.begin(), calls_.end(), [&](ProgramCall& call) {
      return made(call) || (!call.granted && executor_.memory_.lanes.complete(call.before));
    });
    if (next == calls_.end()) return;
    if (!next->granted) {
      grant(*next);
      if (next->granted) continue;
    } else {
      finish(*next);
    }
    end(*next);
    calls_.erase(next);
  }
}

// On an error the call is over: its thread must not make it, and gets the error.
void ProgramCalls::grant(ProgramCall& call) noexcept {
  LogEntry& entry = *call.entry;
  executor_.issuer_.enter_context(entry.command.context);
  const bool given_up = executor_.memory_.lanes.given_up();
  CUresult result =
      given_up ? executor_.memory_.lanes.fault() : executor_.make_ready(entry, call.lane, &call.everything);
  if (result == CUDA_SUCCESS) result = executor_.auditor.uncover(executor_.set_, call.everything);
  if (result != CUDA_SUCCESS) {
    entry.program_issues = false;
    executor_.issuer_.conclude(entry, result, LaneUse{call.lane, executor_.memory_.lanes[call.lane].issued});
    return;
  }
  call.set = executor_.set_;
  call.granted = true;
  entry.waiter->grant();
}

void ProgramCalls::finish(ProgramCall& call) noexcept {
  LogEntry& entry = *call.entry;
  executor_.issuer_.refused_launches.answered(entry, entry.program_result);
  if (entry.command.captured) return;  // nothing runs
  executor_.issuer_.enter_context(entry.command.context);
  executor_.issuer_.conclude(entry, entry.program_result,
                             executor_.record_use(entry, call.lane, call.set, call.everything));
}

void ProgramCalls::end(ProgramCall& call) noexcept {
  executor_.look_ahead.made(*call.entry);
  executor_.shared_.command_log.done(call.entry);
}

bool ProgramCalls::any_granted() const noexcept {
  return std::any_of(calls_.begin(), calls_.end(), [](const ProgramCall& call) { return call.granted; });
}

void ProgramCalls::finish_granted() noexcept {
  for (auto call = calls_.begin(); call != calls_.end();) {
    if (!call->granted) {
      ++call;
      continue;
    }
    call->entry->program_issued.wait(0, std::memory_order_acquire);
    finish(*call);
    end(*call);
    call = calls_.erase(call);
  }
}

}  // namespace reprise::replay
