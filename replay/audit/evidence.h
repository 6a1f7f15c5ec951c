// What an audit learns of kernels: counted here, kept in the cache of facts, told in the run log. Knows no driver.
// Caller: Auditor, on the dispatcher's thread.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "preload/calls/command.h"
#include "preload/facts/store.h"
#include "replay/base/run_log.h"

namespace reprise::replay {

// A launch as an audit sees it.
struct AuditedOperand {
  uint32_t parameter_offset = 0;
  uint64_t base = 0;  // of the tensor
  uint64_t bytes = 0;
  bool read_only = false;            // so it was mapped
  std::vector<uint64_t> leads = {};  // tensors, by base, whose addresses it held before the launch
};
struct AuditedLaunch {
  uint64_t shape = 0;
  std::vector<AuditedOperand> operands = {};
};

// What the device says of a fault.
struct AuditFault {
  bool address_known = false;
  uint64_t tensor = 0;  // base of the tensor that was touched; 0: the address is in none
  uint64_t address = 0;
  std::string kernel = {};  // that touched it
};

enum class FaultCause : uint8_t { wrote, reached };
// Which it was, and by which operand as far as that can be said (kNoParameter: by none). A driver that does not say the
// address leaves a doubt: then it was the operands that could only be read, if there were any.
struct Blame {
  FaultCause cause = FaultCause::reached;
  std::vector<uint32_t> operands;
};
Blame blame(const AuditedLaunch& launch, const AuditFault& fault);

class Evidence {
 public:
  void open(std::string folder, std::string device);

  // Has a launch of this kernel touched what none of its operands is, in this audit or an earlier one?
  bool strayed(const Command& command);
  bool read_only(const Command& command, uint32_t parameter_offset);
  // One more launch that may be audited. True: too little is known of its shape.
  bool begin(const Command& command, uint64_t shape);
  // One more that may not.
  void pass(const Command& command, const char* why);

  // The launch has touched nothing but its operands.
  void passed(const Command& command, const AuditedLaunch& launch);
  // It has faulted. The cache knows at once.
  void failed(const Command& command, const AuditedLaunch& launch, const Blame& blame);

  // Everything that came again has been audited, for as long as it took to see it.
  bool enough() const noexcept;
  uint64_t launches() const noexcept { return launches_; }
  // To the cache; and a line for each kernel.
  void keep() noexcept;
  void tell(RunLogWriter& run_log) const;

 private:
  struct KernelEvidence {
    std::string name;
    facts::KernelFacts known;           // with all that is fresh
    facts::KernelFacts fresh;           // not in the cache yet
    std::map<uint64_t, uint64_t> seen;  // shapes of this process: launches
    uint64_t launches = 0;
    const char* never = nullptr;  // why
  };
  KernelEvidence& kernel_of(const Command& command);
  void add(const Command& command, KernelEvidence& kernel, const facts::KernelFacts& more);
  void keep(KernelEvidence& kernel) noexcept;

  facts::Store store_{std::string()};
  std::string device_;
  bool store_failed_ = false;
  std::unordered_map<uint64_t, KernelEvidence> kernels_;  // by identity
  std::map<std::string, KernelEvidence> others_;          // without one, by name
  uint64_t launches_ = 0;
  uint64_t news_at_ = 0;  // the last launch of a shape that is not audited, or of a kernel that was new
};

}  // namespace reprise::replay
