// `reprise audit` in the victim process: before each launch of a kernel with a known identity nothing of the program's
// memory stays mapped but its operands, and those that facts call unchanged are mapped to be read only. A launch that
// ends without a fault has shown what it does not touch; one that faults is told, with all that is known, and the
// process is lost. Memory is managed on demand, with everything resident. Caller: OnDemandExecutor, on the dispatcher's
// thread.
//
//     launch of ...        what is mapped            learnt
//     a kernel             its operands              ended: one more of its shape; fault: it wrote, or reached more
//     one that strayed,    everything                nothing
//     or without identity
//     a copy, a memset     its operands, and what was
//     all else             everything
#pragma once
#include <cuda.h>

#include <cstdint>
#include <string>
#include <vector>

#include "replay/audit/curtain.h"
#include "replay/audit/evidence.h"
#include "replay/base/run_log.h"
#include "replay/memory/memory.h"
#include "replay/queue/command_log.h"

namespace reprise::replay {

class Auditor {
 public:
  explicit Auditor(ManagedMemory* memory, RunLogWriter* run_log) noexcept : memory_(*memory), run_log_(*run_log) {}

  // Before the first call. `iterations`: so many are enough; 0: see Evidence::enough().
  void open(std::string folder, std::string device, uint64_t iterations) noexcept;
  bool on() const noexcept { return on_; }

  // The op is issued next; its tensors are resident, and no program thread is in the driver. An error: it cannot be.
  CUresult prepare(const LogEntry& entry, const std::vector<ResidentTensor*>& set, bool everything) noexcept;
  // It is with the driver. True: it has faulted.
  bool conclude(const LogEntry& entry, LaneUse use) noexcept;
  // Somebody else is about to touch these, or anything.
  CUresult uncover(const std::vector<ResidentTensor*>& set, bool everything) noexcept;

  // `iterations`: that the program was seen to make.
  void look_whether_enough(uint64_t iterations) noexcept;
  // The program ends.
  void finish() noexcept;

 private:
  CUresult prepare_launch(const Command& command) noexcept;
  bool operands_of(const Command& command, std::vector<Curtain::Opening>* openings);
  void find_leads();
  bool await(LaneUse use) noexcept;
  bool settle() noexcept;
  AuditFault ask_device() noexcept;
  void fault(const Command& command) noexcept;
  void tell_fault(const Command& command, const AuditFault& fault, const Blame* blame);
  void tell_all() noexcept;

  ManagedMemory& memory_;
  RunLogWriter& run_log_;
  bool on_ = false;
  bool covered_ = false;  // the launch that is under way finds nothing but its operands
  bool failed_ = false;   // a fault was told
  bool enough_ = false;   // ... that it is enough
  bool busy_ = false;     // the device did not come to an end lately
  uint64_t iterations_ = 0;
  AuditedLaunch current_;
  Curtain curtain_;
  Evidence evidence_;
};

}  // namespace reprise::replay
