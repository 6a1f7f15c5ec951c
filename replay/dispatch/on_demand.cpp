#include "replay/dispatch/on_demand.h"

#include <algorithm>
#include <utility>

#include "preload/base/causes.h"
#include "preload/driver/driver.h"
#include "preload/trace/names.h"

namespace reprise::replay {
namespace {
constexpr uint64_t kAttempts = 6;
constexpr uint64_t kShortagesToPrint = 8;  // lines on stderr; more of them say nothing new
}  // namespace

void OnDemandExecutor::perform(LogEntry& entry) noexcept {
  if (memory_.lanes.given_up()) return refuse(entry);
  switch (entry.kind) {
    case EntryKind::op:
      if (entry.program_issues) {
        look_ahead.performed(entry);
        return program_calls.hold(entry);
      }
      perform_op(entry);
      break;
    case EntryKind::allocate:
      perform_allocate(entry);
      break;
    case EntryKind::free:
      perform_free(entry);
      break;
    case EntryKind::event_record:
      issuer_.issue_event_record(entry);
      break;
    case EntryKind::event_wait:
      issuer_.issue_event_wait(entry);
      break;
    case EntryKind::stream_destroy:
      issuer_.issue_stream_destroy(entry);
      break;
    case EntryKind::ordered:
      perform_ordered(entry);
      break;
    case EntryKind::errand:
      perform_errand(entry);
      break;
    case EntryKind::read_back:
      perform_read_back(entry);
      break;
    case EntryKind::left_out:  // the plan has ended, and nothing runs for this entry
    case EntryKind::activate:  // the dispatcher performs these itself
      break;
  }
  look_ahead.performed(entry);
  shared_.command_log.done(&entry);
}

// The device will never be done: a call of the driver may wait for that, so none is made.
void OnDemandExecutor::refuse(LogEntry& entry) noexcept {
  entry.program_issues = false;
  issuer_.conclude(entry, memory_.lanes.fault(), LaneUse{Lanes::kToDevice, 0});
  shared_.command_log.done(&entry);
}

// Makes the tensors of the op resident and orders their arrival before the op on its lane.
CUresult OnDemandExecutor::make_ready(LogEntry& entry, LaneIndex lane, bool* everything) noexcept {
  const Command& command = entry.command;
  *everything = (command.flags & trace::kOpOpaque) != 0;
  set_.clear();
  CUresult result = CUDA_SUCCESS;
  if (*everything) {
    program_calls.finish_granted();
    memory_.tensors.for_each([&](ResidentTensor& tensor) { set_.push_back(&tensor); });
    memory_.blocks.for_each([&](SlabBlock& block) { set_.push_back(&block); });
    result = pager_.make_all_resident();
  } else {
    for (uint32_t i = 0; i < command.access_count; ++i) {
      ResidentTensor* const tensor = tensor_of(memory_, command.accesses[i]);
      if (tensor != nullptr) set_.push_back(tensor);
      if (in_plan_region(command.accesses[i]) && !command.captured)
        result = memory_.lanes.wait_on(lane, memory_.plan_region.uses);
    }
    // Room must not be made of what a granted call is using.
    if (program_calls.any_granted() && !look_ahead.is_there(set_)) program_calls.finish_granted();
    if (result == CUDA_SUCCESS && !set_.empty()) {
      look_ahead.wait_for(set_);
      result = pager_.make_resident(set_);
    }
  }
  if (result == CUDA_ERROR_OUT_OF_MEMORY) complain(entry);
  if (result == CUDA_SUCCESS && !command.captured) result = memory_.safety->before_work(lane);
  for (ResidentTensor* tensor : set_) {
    if (command.captured) break;
    for (const ResidentTensor* each : {tensor, &memory_.mover_of(*tensor)}) {
      if (result == CUDA_SUCCESS) result = memory_.lanes.wait_on(lane, each->ready);
    }
  }
  return result;
}

// Others may have taken it since the driver was asked.
RoomFigures OnDemandExecutor::room_now() noexcept {
  memory_.lanes.enter_own();  // the driver answers for the current context's device
  shared_.account.look_around(memory_);
  return shared_.account.room.get();
}

void OnDemandExecutor::complain(LogEntry& entry) noexcept {
  if (is_sticky(shared_.faults.peek()) || issuer_.fault_report.failed()) return;  // then that is told
  const Shortage& shortage = pager_.shortage();
  if (shared_.counters.shortages.fetch_add(1) >= kShortagesToPrint) return;
  const bool answered = entry.waiter == nullptr && !entry.program_issues;
  const char* const then = answered ? phrase<Cause::answered_before>() : "";
  entry.told = true;
  if (shortage.host_full) {
    say<Cause::host_memory_full>(entry.command.name, shortage.needed_bytes, shortage.limit_bytes, then);
    RunLogLine line(run_log::host_full::line);
    line.add(run_log::host_full::needed_bytes, shortage.limit_bytes + shortage.needed_bytes)
        .add(run_log::host_full::host_bytes, shortage.limit_bytes);
    shared_.run_log.write(line);
  } else if (shortage.needed_bytes != 0) {
    // The planner has seen all calls of an iteration, this is one; it may know less of what this one touches.
    const uint64_t planner = shared_.counters.least_budget_bytes.load();
    const uint64_t outside = shared_.counters.outside_bytes.load(std::memory_order_relaxed);
    // Or it is large enough, and the device is fuller than it says.
    const bool too_small =
        planner != 0 || shortage.needed_bytes > shared_.counters.limit_chunks.load() * shared_.chunk_bytes;
    const bool full = !too_small || (planner == 0 && shortage.needed_bytes <=
                                                         shared_.counters.budget_chunks.load() * shared_.chunk_bytes);
    const uint64_t least = full ? 0 : std::max(planner, shortage.needed_bytes + outside);
    const char* const name = entry.command.name;
    shared_.account.told_least(least);
    if (full) {
      const RoomFigures room = room_now();
      shared_.account.room.write(shared_.run_log);
      say<Cause::call_above_room>(name, shortage.needed_bytes, shortage.limit_bytes, who_has_the_rest(room),
                                  how_to_get_room(room, shortage.needed_bytes + outside), then);
    } else {
      const char* const so_far = planner == 0 ? phrase<Cause::by_calls_so_far>() : "";
      say<Cause::call_above_budget>(name, shortage.needed_bytes, shortage.limit_bytes, least, so_far, then);
    }
    RunLogLine line(run_log::shortage::line);
    line.add(run_log::shortage::call, trace::shown_name(name))
        .add(run_log::shortage::needed_bytes, shortage.needed_bytes)
        .add(run_log::shortage::least_bytes, least);
    shared_.run_log.write(line);
  } else {
    say<Cause::driver_out_of_memory>(entry.command.name, then);
  }
}

void OnDemandExecutor::perform_op(LogEntry& entry) noexcept {
  const Command& command = entry.command;
  issuer_.enter_context(command.context);
  const LaneIndex lane = memory_.lanes.lane_of(command.stream, command.context);
  bool everything = false;
  CUresult result = make_ready(entry, lane, &everything);
  if (auditor.on() && result == CUDA_SUCCESS) {
    program_calls.finish_granted();
    result = auditor.prepare(entry, set_, everything);
  }
  if (result != CUDA_SUCCESS) {
    issuer_.conclude(entry, result, LaneUse{lane, memory_.lanes[lane].issued});
    return;
  }
  result = issue_with_headroom(entry, lane);
  conclude(entry, result, record_use(entry, lane, set_, everything));
}

void OnDemandExecutor::conclude(LogEntry& entry, CUresult result, LaneUse use) noexcept {
  if (auditor.on()) {
    if (auditor.conclude(entry, use)) issuer_.fault_report.told();
    auditor.look_whether_enough(shared_.counters.iterations_on_demand.load(std::memory_order_relaxed));
  }
  issuer_.refused_launches.answered(entry, result);
  issuer_.conclude(entry, result, use);
}

// A first launch loads code, a graph's makes memory. Where the driver has none left because ours takes it all, it is
// asked again after some of ours was given back, more each time; not of what the call touches.
CUresult OnDemandExecutor::issue_with_headroom(LogEntry& entry, LaneIndex lane) noexcept {
  CUresult result = issue_counted(entry, lane);
  for (uint64_t refusal = 0; result == CUDA_ERROR_OUT_OF_MEMORY; ++refusal) {
    if (shared_.common.captures.load() > 0) break;
    program_calls.finish_granted();
    if (!give_more(refusal, true)) break;
    result = issue_counted(entry, lane);
  }
  return result;
}

// The driver tells what is free on the current context's device, and this is the managed one's.
CUresult OnDemandExecutor::issue_counted(LogEntry& entry, LaneIndex lane) noexcept {
  if (!entry.command.first_of_shape) return issue(entry, lane);
  memory_.lanes.enter_own();
  memory_.outside.before_call();
  const CUresult result = issue(entry, lane);
  memory_.lanes.enter_own();
  memory_.outside.after_call();
  return result;
}

// false: nothing was given back.
bool OnDemandExecutor::give_more(uint64_t refusal, bool keep_last) noexcept {
  if (refusal >= kAttempts) return false;
  const uint64_t before = memory_.chunks.bytes();
  const uint64_t bytes = std::max(memory_.outside.headroom(), memory_.chunks.chunk_bytes()) << refusal;
  pager_.give_up(std::min(bytes, before), keep_last);
  return memory_.chunks.bytes() != before;
}

// Launches that are examined are launched several times; the first one's time is recorded.
CUresult OnDemandExecutor::issue(LogEntry& entry, LaneIndex lane) noexcept {
  struct Again {
    Issuer& issuer;
    LogEntry& entry;
    uint64_t activity_id;
    static CUresult launch(void* user) noexcept {
      auto& self = *static_cast<Again*>(user);
      return self.issuer.issue(self.entry, std::exchange(self.activity_id, 0));
    }
  };
  const uint64_t sequence = shared_.common.recording.load(std::memory_order_relaxed) ? entry.command.sequence : 0;
  if (shared_.common.captures.load() > 0 || !examiner.wants(entry, shared_.run_log))
    return issuer_.issue(entry, sequence);
  program_calls.finish_granted();
  Again again{issuer_, entry, sequence};
  return examiner.examine(entry, memory_, lane, {&Again::launch, &again}, shared_.run_log);
}

// The work is with the driver: where it stands on its lane, and what it has touched.
LaneUse OnDemandExecutor::record_use(LogEntry& entry, LaneIndex lane, const std::vector<ResidentTensor*>& set,
                                     bool everything) noexcept {
  const Command& command = entry.command;
  const LaneUse use{lane, memory_.lanes.advance(lane)};
  memory_.safety->issued(lane);
  for (ResidentTensor* tensor : set) memory_.touched(*tensor, use, everything);
  // The driver returns from a synchronous copy when the bytes are there for every stream; a staged one has only been
  // queued, so the next work on any stream has to wait for it.
  if (entry.staged && (command.flags & trace::kOpSynchronous) != 0) {
    for (ResidentTensor* tensor : set) tensor->ready.add(use.lane, use.position);
  }
  for (uint32_t i = 0; i < command.access_count && !everything; ++i) {
    if (in_plan_region(command.accesses[i])) memory_.plan_region.uses.add(use.lane, use.position);
    ResidentTensor* const tensor = tensor_of(memory_, command.accesses[i]);
    if (tensor != nullptr && (command.accesses[i].mode & trace::kAccessWrite) != 0) {
      memory_.touched(*tensor, use, true);
    }
  }
  return use;
}

// Small transient tensors of a plan share addresses over time, so Tensors does not know them. Their region is ordered
// between streams as a whole.
bool OnDemandExecutor::in_plan_region(const Access& access) const noexcept {
  const CUdeviceptr base = access.address - access.offset;
  return base - memory_.arena.plan.base < memory_.plan_region.blocks * memory_.chunks.chunk_bytes();
}

void OnDemandExecutor::perform_allocate(LogEntry& entry) noexcept {
  if (entry.chunk_count == 0 && memory_.arena.plan.contains(entry.address)) return;
  ResidentTensor* const tensor = memory_.tensors.insert(entry.address, entry.size, entry.chunk_count);
  tensor->allocation = entry.allocation;
  const CUcontext context = entry.command.context;
  const LaneIndex lane = entry.stream_ordered ? memory_.lanes.lane_of(entry.command.stream, context) : kNoLane;
  const bool small = tensor->chunk_count == 0;
  const CUresult result = small ? pager_.allocated_small(*tensor, lane) : pager_.allocated(*tensor, lane);
  if (result != CUDA_SUCCESS && shared_.faults.lose(result)) {
    if (is_sticky(result)) return shared_.faults.report(result);  // told by fault_report
    say<Cause::address_not_unmapped>(result);
  }
}

// The tensor was forgotten when the plan ended, which waited for the device. A small one's address is the program's
// again since the call (Enforcer), and what has touched it since has done so in the program's order.
void OnDemandExecutor::end_handover(const LogEntry& entry) noexcept {
  if (!memory_.arena.slabs.contains(entry.address)) shared_.addresses.release(entry.address, entry.size);
}

void OnDemandExecutor::perform_free(LogEntry& entry) noexcept {
  program_calls.finish_granted();
  if (entry.ends_handover) return end_handover(entry);
  ResidentTensor* const tensor = memory_.tensors.find(entry.address);
  if (tensor == nullptr) return;
  if (entry.free_handover) {
    pager_.forget(*tensor);
    return;
  }
  const Command& command = entry.command;
  pager_.forget(*tensor, memory_.safety->work_before_free(entry.stream_ordered, command.stream, command.context));
  if (!entry.released) shared_.addresses.release(entry.address, entry.size);
}

void OnDemandExecutor::perform_ordered(LogEntry& entry) noexcept {
  CUresult result = CUDA_SUCCESS;
  if (entry.all_resident) {
    program_calls.finish_granted();
    result = pager_.make_all_resident();
    if (result == CUDA_ERROR_OUT_OF_MEMORY) complain(entry);
    if (result == CUDA_SUCCESS) result = auditor.uncover({}, true);
    const auto hand_over = [&](ResidentTensor& tensor) {
      const CUresult waited = memory_.lanes.host_wait(tensor.ready);
      if (result == CUDA_SUCCESS) result = waited;
      // The call may write any tensor.
      if (memory_.mover_of(tensor).is_resident()) memory_.touched(tensor, LaneUse{Lanes::kToDevice, 0}, true);
    };
    memory_.tensors.for_each(hand_over);
    memory_.blocks.for_each(hand_over);
  }
  if (entry.waiter != nullptr) entry.waiter->done(result);
}

// The managed context is about to end. What the driver refuses goes with it.
void OnDemandExecutor::close_memory() noexcept {
  look_ahead.stop();
  memory_.lanes.synchronize();
  std::vector<CUdeviceptr> mapped;
  for (const auto& [base, mapping] : memory_.mappings.all()) mapped.push_back(base);
  for (const CUdeviceptr base : mapped) memory_.mappings.unmap(base);
  examiner.rest();
  memory_.safety->close();
  memory_.chunks.close();
  memory_.host.close();
  memory_.digests.close();
  memory_.retired_cells.clear();
  shared_.landing.leave();
  shared_.staging.close();
  memory_.lanes.leave(shared_.context);
  driver().cuMemAddressFree(shared_.arena_all.base, shared_.arena_all.bytes);
}

void OnDemandExecutor::perform_errand(LogEntry& entry) noexcept {
  program_calls.finish_granted();
  CUresult result = CUDA_SUCCESS;
  switch (entry.errand) {
    case Errand::mark_lanes:
      result = memory_.lanes.mark_all();
      break;
    case Errand::end_context:
      memory_.lanes.leave(entry.command.context);
      break;
    case Errand::close:
      close_memory();
      break;
    case Errand::leave_plan:
      auditor.finish();
      look_ahead.write(shared_.run_log);
      memory_.lanes.poll();
      shared_.faults.report(memory_.lanes.fault());
      if (issuer_.fault_report.failed()) issuer_.fault_report.look();
      break;
    case Errand::make_room:
      result = pager_.fit();
      break;
    case Errand::headroom:
      result = pager_.give_up(entry.size);
      break;
    case Errand::more_headroom:
      if (!give_more(entry.size, false)) result = CUDA_ERROR_OUT_OF_MEMORY;
      break;
    case Errand::synchronize:
      result = memory_.lanes.synchronize();
      break;
    case Errand::allow_peers:
      result = memory_.lanes.synchronize();
      if (result == CUDA_SUCCESS) result = memory_.mappings.allow_peers(entry.size);
      break;
  }
  entry.waiter->done(result);
}

}  // namespace reprise::replay
