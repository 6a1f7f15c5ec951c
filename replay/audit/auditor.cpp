#include "replay/audit/auditor.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "preload/base/causes.h"
#include "preload/driver/device_observer.h"
#include "preload/driver/driver.h"
#include "preload/driver/results.h"

namespace reprise::replay {
namespace {

constexpr uint64_t kPatience = 2'000'000'000;  // ns, for work that may wait for the program in its turn
constexpr uint64_t kLargestScan = 1 << 20;     // of a buffer that may hold addresses

void nap() noexcept {
  const timespec time{0, 5'000};
  nanosleep(&time, nullptr);
}

bool is_plain(trace::OpKind op) noexcept {
  using trace::OpKind;
  return op == OpKind::copy_host_to_device || op == OpKind::copy_device_to_host ||
         op == OpKind::copy_device_to_device || op == OpKind::memset;
}

const char* reason_for(const Command& command) noexcept {
  if ((command.flags & trace::kOpOpaque) != 0) return phrase<Cause::reaches_any>();
  for (uint32_t i = 0; i < command.access_count; ++i) {
    if (command.accesses[i].parameter_offset != trace::kNoParameter) continue;
    const bool unplaced = command.accesses[i].address == 0;  // nobody has asked where the variables are
    return unplaced ? phrase<Cause::reaches_variables>() : phrase<Cause::reaches_others>();
  }
  if (command.access_count == 0) return phrase<Cause::reaches_nothing>();
  return phrase<Cause::reach_unknown>();
}

}  // namespace

void Auditor::open(std::string folder, std::string device, uint64_t iterations) noexcept {
  try {
    evidence_.open(std::move(folder), std::move(device));
    iterations_ = iterations;
    on_ = true;
  } catch (...) {  // out of memory
  }
}

// Nothing is with the device any more; else nothing can be covered.
bool Auditor::settle() noexcept {
  const uint64_t until = RunLogWriter::now_ns() + (busy_ ? 0 : kPatience);
  do {
    memory_.lanes.poll();
    const std::vector<LaneUse> uses = memory_.lanes.outstanding();
    busy_ = !std::all_of(uses.begin(), uses.end(), [&](const LaneUse& use) { return memory_.lanes.complete(use); });
    if (!busy_ || memory_.lanes.fault() != CUDA_SUCCESS) break;
    nap();
  } while (RunLogWriter::now_ns() < until);
  return !busy_ && memory_.lanes.fault() == CUDA_SUCCESS;
}

bool Auditor::await(LaneUse use) noexcept {
  const uint64_t until = RunLogWriter::now_ns() + kPatience;
  while (!memory_.lanes.complete(use)) {
    if (memory_.lanes.fault() != CUDA_SUCCESS || RunLogWriter::now_ns() > until) break;
    nap();
  }
  busy_ = !memory_.lanes.known_complete(use);
  return !busy_ && memory_.lanes.fault() == CUDA_SUCCESS;
}

CUresult Auditor::uncover(const std::vector<ResidentTensor*>& set, bool everything) noexcept {
  if (!on_) return CUDA_SUCCESS;
  if (everything) return curtain_.open_all(memory_);
  CUresult result = CUDA_SUCCESS;
  for (ResidentTensor* tensor : set) {
    const CUresult opened = curtain_.open(memory_, memory_.mover_of(*tensor));
    if (result == CUDA_SUCCESS) result = opened;
  }
  return result;
}

// Each mover once; it can only be read where no operand in it may be written. False: an operand is not ours.
bool Auditor::operands_of(const Command& command, std::vector<Curtain::Opening>* openings) {
  current_ = AuditedLaunch{};
  std::vector<facts::ShapeOperand> shape;
  std::vector<ResidentTensor*> movers;
  for (uint32_t i = 0; i < command.access_count; ++i) {
    const Access& access = command.accesses[i];
    ResidentTensor* const tensor = memory_.tensors.find(access.address - access.offset);
    if (tensor == nullptr) return false;
    const bool read_only = evidence_.read_only(command, access.parameter_offset);
    shape.push_back({access.parameter_offset, tensor->size});
    current_.operands.push_back({access.parameter_offset, tensor->base, tensor->size, read_only});
    ResidentTensor* const mover = &memory_.mover_of(*tensor);
    movers.push_back(mover);
    const auto same = [mover](const Curtain::Opening& opening) { return opening.mover == mover; };
    const auto known = std::find_if(openings->begin(), openings->end(), same);
    if (known == openings->end()) {
      openings->push_back({mover, read_only ? Rights::read : Rights::write});
    } else if (!read_only) {
      known->rights = Rights::write;
    }
  }
  for (size_t i = 0; i < movers.size(); ++i) {
    const auto same = [&](const Curtain::Opening& opening) { return opening.mover == movers[i]; };
    if (std::find_if(openings->begin(), openings->end(), same)->rights == Rights::write) {
      current_.operands[i].read_only = false;
    }
  }
  current_.shape = facts::shape_of(command.grid, command.block, command.shared_bytes, std::move(shape));
  return true;
}

// Which operands hold addresses of other tensors: should the launch fault, it is told how it came there. Such memory
// cannot be read any more then.
void Auditor::find_leads() {
  std::vector<std::pair<uint64_t, uint64_t>> live;
  memory_.tensors.for_each([&](ResidentTensor& tensor) { live.emplace_back(tensor.base, tensor.base + tensor.size); });
  std::sort(live.begin(), live.end());
  std::vector<uint64_t> words;
  for (AuditedOperand& operand : current_.operands) {
    const uint64_t bytes = std::min(operand.bytes, kLargestScan) / 8 * 8;
    words.assign(bytes / 8, 0);
    if (bytes == 0 || memory_.lanes.enter_own() != CUDA_SUCCESS) continue;
    if (driver().cuMemcpyDtoHAsync(words.data(), operand.base, bytes, memory_.lanes.stream(Lanes::kToHost)) !=
        CUDA_SUCCESS) {
      continue;
    }
    LaneUses copied;
    copied.add(Lanes::kToHost, memory_.lanes.advance(Lanes::kToHost));
    if (memory_.lanes.host_wait(copied) != CUDA_SUCCESS) return;
    for (const uint64_t word : words) {
      const auto behind = std::upper_bound(live.begin(), live.end(), word,
                                           [](uint64_t at, const auto& range) { return at < range.first; });
      if (behind == live.begin() || word >= std::prev(behind)->second) continue;
      const uint64_t base = std::prev(behind)->first;
      if (std::find(operand.leads.begin(), operand.leads.end(), base) == operand.leads.end()) {
        operand.leads.push_back(base);
      }
    }
  }
}

CUresult Auditor::prepare_launch(const Command& command) noexcept {
  try {
    if (command.kernel == 0 || evidence_.strayed(command)) {
      evidence_.pass(command, command.kernel == 0 ? reason_for(command) : phrase<Cause::kernel_strays>());
      return curtain_.open_all(memory_);
    }
    std::vector<Curtain::Opening> openings;
    if (!operands_of(command, &openings) || !settle()) {
      evidence_.pass(command, phrase<Cause::audit_disturbed>());
      return curtain_.open_all(memory_);
    }
    const bool open = evidence_.begin(command, current_.shape);
    const CUresult result = curtain_.draw(memory_, openings);
    covered_ = result == CUDA_SUCCESS;
    if (covered_ && open) find_leads();
    return result;
  } catch (...) {  // out of memory
    return curtain_.open_all(memory_);
  }
}

CUresult Auditor::prepare(const LogEntry& entry, const std::vector<ResidentTensor*>& set, bool everything) noexcept {
  covered_ = false;
  if (!on_) return CUDA_SUCCESS;
  const Command& command = entry.command;
  if (!everything && !command.captured && is_plain(command.op)) return uncover(set, false);
  if (command.op != trace::OpKind::launch || command.captured) return uncover(set, true);
  return prepare_launch(command);
}

bool Auditor::conclude(const LogEntry& entry, LaneUse use) noexcept {
  if (!on_) return false;
  if (!covered_) {
    memory_.lanes.poll();
    if (!is_sticky(memory_.lanes.fault())) return false;
  } else if (await(use)) {
    try {
      evidence_.passed(entry.command, current_);
    } catch (...) {  // out of memory
    }
    return false;
  }
  if (!is_sticky(memory_.lanes.fault())) return false;
  fault(entry.command);
  return true;
}

AuditFault Auditor::ask_device() noexcept {
  AuditFault fault;
  char kernel[256] = "";
  fault.address_known = find_fault(&fault.address, kernel, sizeof kernel);
  if (!fault.address_known) return fault;
  fault.kernel = kernel;
  memory_.tensors.for_each([&](ResidentTensor& tensor) {
    if (fault.address - tensor.base < std::max<uint64_t>(tensor.size, 1)) fault.tensor = tensor.base;
  });
  return fault;
}

void Auditor::fault(const Command& command) noexcept {
  if (std::exchange(failed_, true)) return;
  try {
    const AuditFault fault = ask_device();
    Blame found;
    if (covered_) {
      found = blame(current_, fault);
      evidence_.failed(command, current_, found);
    }
    tell_fault(command, fault, covered_ ? &found : nullptr);
  } catch (...) {  // out of memory
  }
  tell_all();
}

void Auditor::tell_fault(const Command& command, const AuditFault& fault, const Blame* blame) {
  RunLogLine line(run_log::audit_fault::line);
  // A launch that found everything was not awaited: by now it may be another one's turn.
  const bool earlier = blame == nullptr && !fault.kernel.empty();
  line.add(run_log::audit_fault::kernel, earlier ? fault.kernel : std::string(command.name));
  line.add(run_log::audit_fault::cause, blame == nullptr                    ? run_log::audit_fault::itself
                                        : blame->cause == FaultCause::wrote ? run_log::audit_fault::wrote
                                                                            : run_log::audit_fault::reached);
  line.add(run_log::audit_fault::launch, evidence_.launches());
  if (const ResidentTensor* const tensor = fault.tensor != 0 ? memory_.tensors.find(fault.tensor) : nullptr) {
    line.add(run_log::audit_fault::allocation, tensor->allocation)
        .add(run_log::audit_fault::bytes, tensor->size)
        .add(run_log::audit_fault::offset, fault.address - tensor->base);
  }
  if (blame != nullptr && !blame->operands.empty()) {
    line.add(run_log::audit_fault::operand, uint64_t{blame->operands.front()});
  }
  run_log_.write(line);
}

void Auditor::tell_all() noexcept {
  evidence_.keep();
  try {
    evidence_.tell(run_log_);
  } catch (...) {  // out of memory
  }
  run_log_.flush();
}

void Auditor::look_whether_enough(uint64_t iterations) noexcept {
  if (!on_ || enough_ || failed_ || !(iterations_ != 0 ? iterations >= iterations_ : evidence_.enough())) return;
  enough_ = true;
  tell_all();
  RunLogLine line(run_log::audit_enough::line);
  line.add(run_log::audit_enough::launches, evidence_.launches()).add(run_log::audit_enough::iterations, iterations);
  run_log_.write(line);
  run_log_.flush();
}

void Auditor::finish() noexcept {
  if (on_ && !failed_) tell_all();
}

}  // namespace reprise::replay
