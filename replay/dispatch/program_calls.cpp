// The calls that their program threads make themselves, while no plan is in force.
#include <algorithm>

#include "replay/dispatch/on_demand.h"

namespace reprise::replay {

void OnDemandExecutor::hold(LogEntry& entry) noexcept {
  const Command& command = entry.command;
  issuer_.enter_context(command.context);
  ProgramCall call;
  call.entry = &entry;
  if (!command.captured) {
    call.lane = memory_.lanes.lane_of(command.stream, command.context);
    // An event of its own: the program may have put work on the stream that no lane knows of.
    call.before = {call.lane, memory_.lanes.advance(call.lane)};
    // Without it the call is not held back, and its thread gets the driver's error.
    if (memory_.lanes.mark(call.lane) != CUDA_SUCCESS) call.before.position = 0;
  }
  program_calls_.push_back(std::move(call));
  shared_.command_log.pass(&entry);
  serve_program_calls();
}

void OnDemandExecutor::serve_program_calls() noexcept {
  const auto made = [](const ProgramCall& call) {
    return call.granted && call.entry->program_issued.load(std::memory_order_acquire) != 0;
  };
  // One at a time: serving one may finish others.
  while (true) {
    auto next = std::find_if(program_calls_.begin(), program_calls_.end(), [&](ProgramCall& call) {
      return made(call) || (!call.granted && memory_.lanes.complete(call.before));
    });
    if (next == program_calls_.end()) return;
    if (!next->granted) {
      grant(*next);
      if (next->granted) continue;
    } else {
      finish(*next);
    }
    shared_.command_log.done(next->entry);
    program_calls_.erase(next);
  }
}

// On an error the call is over: its thread must not make it, and gets the error.
void OnDemandExecutor::grant(ProgramCall& call) noexcept {
  LogEntry& entry = *call.entry;
  issuer_.enter_context(entry.command.context);
  const bool given_up = memory_.lanes.given_up();
  CUresult result = given_up ? memory_.lanes.fault() : make_ready(entry, call.lane, &call.everything);
  if (result == CUDA_SUCCESS) result = auditor.uncover(set_, call.everything);
  if (result != CUDA_SUCCESS) {
    entry.program_issues = false;
    issuer_.conclude(entry, result, LaneUse{call.lane, memory_.lanes[call.lane].issued});
    return;
  }
  call.set = set_;
  call.granted = true;
  entry.waiter->grant();
}

void OnDemandExecutor::finish(ProgramCall& call) noexcept {
  LogEntry& entry = *call.entry;
  issuer_.refused_launches.answered(entry, entry.program_result);
  if (entry.command.captured) return;  // nothing runs
  issuer_.enter_context(entry.command.context);
  issuer_.conclude(entry, entry.program_result, record_use(entry, call.lane, call.set, call.everything));
}

bool OnDemandExecutor::any_granted() const noexcept {
  return std::any_of(program_calls_.begin(), program_calls_.end(),
                     [](const ProgramCall& call) { return call.granted; });
}

void OnDemandExecutor::finish_granted() noexcept {
  for (auto call = program_calls_.begin(); call != program_calls_.end();) {
    if (!call->granted) {
      ++call;
      continue;
    }
    call->entry->program_issued.wait(0, std::memory_order_acquire);
    finish(*call);
    shared_.command_log.done(call->entry);
    call = program_calls_.erase(call);
  }
}

// Is all of set_ resident already?
bool OnDemandExecutor::all_there() const noexcept {
  return !any_granted() || std::all_of(set_.begin(), set_.end(), [this](ResidentTensor* tensor) {
    return memory_.mover_of(*tensor).is_resident();
  });
}

}  // namespace reprise::replay
