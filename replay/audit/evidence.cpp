#include "replay/audit/evidence.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "preload/base/causes.h"

namespace reprise::replay {
namespace {

constexpr uint64_t kLeastLaunches = 64;  // before anything is enough

facts::KernelFacts with_operands(const AuditedLaunch& launch) {
  facts::KernelFacts facts;
  for (const AuditedOperand& operand : launch.operands) {
    if (facts::find_slot(facts, operand.parameter_offset) != nullptr) continue;
    facts::SlotEvidence slot;
    slot.parameter_offset = operand.parameter_offset;
    slot.least_bytes = slot.most_bytes = operand.bytes;
    facts.slots.push_back(slot);
  }
  return facts;
}

}  // namespace

Blame blame(const AuditedLaunch& launch, const AuditFault& fault) {
  Blame found;
  const auto collect = [&](const auto& test) {
    for (const AuditedOperand& operand : launch.operands) {
      if (test(operand)) found.operands.push_back(operand.parameter_offset);
    }
    return !found.operands.empty();
  };
  found.cause = FaultCause::wrote;
  const auto could_only_be_read = [&](const AuditedOperand& operand) {
    return operand.read_only && (!fault.address_known || operand.base == fault.tensor);
  };
  if (collect(could_only_be_read)) return found;
  found.cause = FaultCause::reached;
  collect([&](const AuditedOperand& operand) {
    const std::vector<uint64_t>& leads = operand.leads;
    return fault.address_known ? std::find(leads.begin(), leads.end(), fault.tensor) != leads.end() : !leads.empty();
  });
  return found;
}

void Evidence::open(std::string folder, std::string device) {
  store_ = facts::Store(std::move(folder));
  device_ = std::move(device);
}

Evidence::KernelEvidence& Evidence::kernel_of(const Command& command) {
  const auto [at, fresh] = kernels_.try_emplace(command.kernel);
  KernelEvidence& kernel = at->second;
  if (!fresh) return kernel;
  kernel.name = command.name;
  if (store_.folder().empty()) return kernel;
  Result<facts::KernelFacts> known = store_.load(command.kernel, device_);
  if (known.ok()) kernel.known = std::move(known.value());
  if (!known.ok() && known.status().code() != StatusCode::not_found) {
    say<Cause::facts_unusable>(known.status().message());
  }
  return kernel;
}

bool Evidence::strayed(const Command& command) { return kernel_of(command).known.strayed != 0; }

bool Evidence::read_only(const Command& command, uint32_t parameter_offset) {
  return facts::writes(kernel_of(command).known, parameter_offset) == facts::Answer::no;
}

bool Evidence::begin(const Command& command, uint64_t shape) {
  KernelEvidence& kernel = kernel_of(command);
  ++launches_;
  ++kernel.launches;
  ++kernel.seen[shape];
  const bool open = facts::audited(kernel.known, shape) == facts::Answer::unknown;
  if (open || kernel.launches == 1) news_at_ = launches_;
  return open;
}

void Evidence::pass(const Command& command, const char* why) {
  ++launches_;
  KernelEvidence& kernel = command.kernel != 0 ? kernel_of(command) : others_[command.name];
  if (kernel.launches++ == 0) news_at_ = launches_;
  kernel.name = command.name;
  if (kernel.never == nullptr) kernel.never = why;
}

void Evidence::add(const Command& command, KernelEvidence& kernel, const facts::KernelFacts& more) {
  facts::KernelFacts facts = more;
  facts.kernel = command.kernel;
  facts.name = command.name;
  facts.device = device_;
  facts.first_day = facts.last_day = facts::today();
  facts::merge(kernel.known, facts);
  facts::merge(kernel.fresh, facts);
}

void Evidence::passed(const Command& command, const AuditedLaunch& launch) {
  KernelEvidence& kernel = kernel_of(command);
  facts::KernelFacts facts = with_operands(launch);
  facts.shapes.push_back({launch.shape, 1});
  for (facts::SlotEvidence& slot : facts.slots) {
    slot.guarded = std::any_of(launch.operands.begin(), launch.operands.end(), [&](const auto& operand) {
      return operand.parameter_offset == slot.parameter_offset && operand.read_only;
    });
  }
  const bool before = facts::audited(kernel.known, launch.shape) == facts::Answer::yes;
  add(command, kernel, facts);
  if (!before && facts::audited(kernel.known, launch.shape) == facts::Answer::yes) keep(kernel);
}

void Evidence::failed(const Command& command, const AuditedLaunch& launch, const Blame& blame) {
  KernelEvidence& kernel = kernel_of(command);
  facts::KernelFacts facts = with_operands(launch);
  if (blame.cause == FaultCause::reached) facts.strayed = 1;
  for (facts::SlotEvidence& slot : facts.slots) {
    if (std::find(blame.operands.begin(), blame.operands.end(), slot.parameter_offset) == blame.operands.end()) {
      continue;
    }
    ++(blame.cause == FaultCause::wrote ? slot.updated : slot.led);
  }
  add(command, kernel, facts);
  keep();
}

bool Evidence::enough() const noexcept { return launches_ >= 2 * news_at_ + kLeastLaunches; }

void Evidence::keep(KernelEvidence& kernel) noexcept {
  if (kernel.fresh.kernel == 0 || store_.folder().empty()) return;
  try {
    const Status kept = store_.add(std::exchange(kernel.fresh, facts::KernelFacts{}));
    if (kept.ok() || store_failed_) return;
    store_failed_ = true;
    say<Cause::audit_not_kept>(kept.message());
  } catch (...) {  // out of memory
  }
}

void Evidence::keep() noexcept {
  for (auto& [identity, kernel] : kernels_) keep(kernel);
}

void Evidence::tell(RunLogWriter& run_log) const {
  std::vector<const KernelEvidence*> all;
  for (const auto& [identity, kernel] : kernels_) all.push_back(&kernel);
  for (const auto& [name, kernel] : others_) all.push_back(&kernel);
  std::sort(all.begin(), all.end(), [](const KernelEvidence* a, const KernelEvidence* b) { return a->name < b->name; });
  for (const KernelEvidence* kernel : all) {
    uint64_t audited = 0;
    for (const auto& [shape, launches] : kernel->seen) {
      if (facts::audited(kernel->known, shape) == facts::Answer::yes) ++audited;
    }
    uint64_t guarded = 0;
    for (const facts::SlotEvidence& slot : kernel->known.slots) {
      if (facts::writes(kernel->known, slot.parameter_offset) == facts::Answer::no && slot.guarded != 0) ++guarded;
    }
    RunLogLine line(run_log::audit::line);
    line.add(run_log::audit::kernel, kernel->name);
    if (kernel->known.strayed != 0) {
      line.add(run_log::audit::outcome, run_log::audit::strayed);
    } else if (kernel->never != nullptr && kernel->seen.empty()) {
      line.add(run_log::audit::outcome, run_log::audit::never).add(run_log::audit::why, std::string(kernel->never));
    } else {
      line.add(run_log::audit::outcome,
               audited == kernel->seen.size() ? run_log::audit::audited : run_log::audit::too_few);
    }
    line.add(run_log::audit::launches, kernel->launches)
        .add(run_log::audit::shapes, uint64_t{kernel->seen.size()})
        .add(run_log::audit::audited_shapes, audited)
        .add(run_log::audit::guarded, guarded)
        .add(run_log::audit::kept, uint64_t{!store_failed_ && !store_.folder().empty()});
    run_log.write(line);
  }
}

}  // namespace reprise::replay
