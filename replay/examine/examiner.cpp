#include "replay/examine/examiner.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "preload/base/causes.h"

namespace reprise::replay {
namespace {

LiveRanges live_in(ManagedMemory& memory) {
  LiveRanges live;
  memory.tensors.for_each(
      [&](const ResidentTensor& tensor) { live.emplace_back(tensor.base, tensor.base + tensor.size); });
  std::sort(live.begin(), live.end());
  return live;
}

// Waits a little for work that is with the driver already; it may wait for the program in its turn.
bool device_is_idle(Lanes& lanes) noexcept {
  constexpr uint64_t kPatience = 500'000'000;
  const uint64_t until = RunLogWriter::now_ns() + kPatience;
  for (;;) {
    const std::vector<LaneUse> uses = lanes.outstanding();
    if (std::all_of(uses.begin(), uses.end(), [&](const LaneUse& use) { return lanes.complete(use); })) return true;
    if (lanes.fault() != CUDA_SUCCESS || RunLogWriter::now_ns() > until) return false;
    const timespec nap{0, 20'000};
    nanosleep(&nap, nullptr);
  }
}

}  // namespace

void Examiner::open(const Allowance& allowance, std::string folder, std::string device) noexcept {
  allowance_ = folder.empty() ? Allowance{} : allowance;
  store_ = facts::Store(std::move(folder));
  device_ = std::move(device);
}

Examiner::Kernel& Examiner::kernel_of(const Command& command) {
  const auto [at, fresh] = kernels_.try_emplace(command.kernel);
  if (fresh) {
    Result<facts::KernelFacts> known = store_.load(command.kernel, device_);
    if (known.ok()) at->second.known = std::move(known.value());
    if (!known.ok() && known.status().code() != StatusCode::not_found) {
      say<Cause::facts_unusable>(known.status().message());
    }
  }
  return at->second;
}

// An operand of this launch was not known to be left alone or written: biases that are all zero say nothing in the
// first iteration, and are other numbers in the second; and some launches have operands that others have not.
bool Examiner::may_tell(const Command& command, const facts::KernelFacts& known) noexcept {
  for (uint32_t i = 0; i < command.access_count; ++i) {
    if (facts::writes(known, command.accesses[i].parameter_offset) == facts::Answer::unknown) return true;
  }
  return false;
}

// Launches number 1, 2, 4, 8, ...: of several iterations, with other bytes and, where it has them, other sizes. Then
// those that may tell more, likewise.
bool Examiner::wants(const LogEntry& entry, RunLogWriter& run_log) noexcept {
  const Command& command = entry.command;
  if (used_ns_ >= allowance_.time_ns || command.captured || entry.program_issues) return false;
  if (command.op != trace::OpKind::launch) return false;
  try {
    if (command.kernel == 0) {
      const bool first = not_repeatable_.insert(command.function).second;
      if (first) write_line(command, &run_log::examine::not_repeatable, 0, run_log);
      return false;
    }
    Kernel& kernel = kernel_of(command);
    if (kernel.never || kernel.known.launches >= kMost) return false;
    const bool enough = kernel.known.launches >= kEnough;
    if (enough && !may_tell(command, kernel.known)) return false;
    const uint64_t number = enough ? ++kernel.seen_open : ++kernel.seen;
    return (number & (number - 1)) == 0;
  } catch (...) {
    return false;
  }
}

Examiner::Why Examiner::operands_of(const Command& command, const facts::KernelFacts& known, ManagedMemory& memory,
                                    std::vector<TriedOperand>* operands) const {
  for (uint32_t i = 0; i < command.access_count; ++i) {
    const Access& access = command.accesses[i];
    const ResidentTensor* const tensor = memory.tensors.find(access.address - access.offset);
    if (tensor == nullptr || access.parameter_offset == trace::kNoParameter) return &run_log::examine::unknown_operand;
    const auto same = [&](const TriedOperand& other) { return other.base == tensor->base; };
    const auto other = std::find_if(operands->begin(), operands->end(), same);
    if (other != operands->end()) {
      other->several = true;
      other->overwritten = false;
      continue;
    }
    const bool overwritten = facts::writes(known, access.parameter_offset) == facts::Answer::yes &&
                             facts::reads(known, access.parameter_offset) == facts::Answer::no;
    operands->push_back({tensor->base, tensor->size, access.parameter_offset, false, overwritten});
  }
  return OperandBytes::bytes_of_copies(*operands) <= allowance_.bytes ? nullptr : &run_log::examine::too_large;
}

void Examiner::disprove(const Command& command) noexcept {
  try {
    Kernel& kernel = kernels_[command.kernel];
    kernel.known = facts::KernelFacts{};
    kernel.never = true;
    if (store_.folder().empty() || command.kernel == 0) return;
    const Status status = store_.remove(command.kernel, device_);
    if (!status.ok() && status.code() != StatusCode::not_found) {  // it may be gone already
      say<Cause::facts_unusable>(status.message());
    }
    facts::KernelFacts seen;
    seen.unequal = 1;  // what only looks pure by its code shall not be tried in every run
    keep(command, &seen, kernel);
  } catch (...) {  // out of memory
  }
}

void Examiner::keep(const Command& command, facts::KernelFacts* facts, Kernel& kernel) {
  facts->kernel = command.kernel;
  facts->name = command.name;
  facts->device = device_;
  facts->first_day = facts->last_day = facts::today();
  const Status kept = store_.add(*facts);
  facts::merge(kernel.known, *facts);
  if (kept.ok() || store_failed_) return;
  store_failed_ = true;
  say<Cause::facts_not_kept>(kept.message());
}

void Examiner::write_line(const Command& command, Why why, uint64_t ns, RunLogWriter& run_log) noexcept {
  RunLogLine line(run_log::examine::line);
  line.add(run_log::examine::kernel, std::string(command.name))
      .add(run_log::examine::outcome, why == nullptr ? run_log::examine::examined : run_log::examine::not_examined);
  if (why != nullptr) line.add(run_log::examine::why, *why);
  line.add(run_log::examine::ns, ns);
  run_log.write(line);
}

// Examines it. nullptr: it is known better now. *launched: the program's own launch was made, with this *result.
Examiner::Why Examiner::reason_against(const Command& command, ManagedMemory& memory, LaneIndex lane, Launcher launcher,
                                       Kernel& kernel, bool* launched, CUresult* result) {
  std::vector<TriedOperand> operands;
  const Why against = operands_of(command, kernel.known, memory, &operands);
  kernel.never = against != nullptr;
  if (kernel.never) return against;
  Trials trials(&memory.lanes, &memory.digests, &copies_, lane, std::move(operands), launcher);
  if (!device_is_idle(memory.lanes)) return &run_log::examine::busy;
  if (!trials.keep()) return &run_log::examine::no_memory;
  if (trials.hold_address(live_in(memory))) return &run_log::examine::holds_address;
  facts::KernelFacts facts;
  bool done = false;
  *launched = true;
  *result = trials.first(&done);
  kernel.never = !done;
  if (!done) return &run_log::examine::too_slow;
  if (trials.run(&facts)) {
    keep(command, &facts, kernel);
    return nullptr;
  }
  kernel.never = true;
  const bool hangs = memory.lanes.fault() == CUDA_SUCCESS;
  // It keeps the device busy for good, and may have written half of what it writes.
  if (hangs) memory.lanes.give_up(CUDA_ERROR_LAUNCH_TIMEOUT);
  say<Cause::trial_failed>(command.name, hangs ? phrase<Cause::trial_hung>() : phrase<Cause::device_broke>(),
                           trials.from());
  return &run_log::examine::too_slow;
}

CUresult Examiner::examine(const LogEntry& entry, ManagedMemory& memory, LaneIndex lane, Launcher launcher,
                           RunLogWriter& run_log) noexcept {
  const Command& command = entry.command;
  const uint64_t began = RunLogWriter::now_ns();
  bool launched = false;
  CUresult result = CUDA_SUCCESS;
  Why why = &run_log::examine::no_memory;
  try {
    why = reason_against(command, memory, lane, launcher, kernel_of(command), &launched, &result);
  } catch (...) {  // out of memory
  }
  used_ns_ += RunLogWriter::now_ns() - began;
  if (!launched) result = launcher.launch(launcher.user);
  write_line(command, why, RunLogWriter::now_ns() - began, run_log);
  return result;
}

}  // namespace reprise::replay
