// Finds out what kernels do (preload/facts) while a program runs on demand: some launches of each kernel that the cache
// knows too little of are tried again from chosen bytes (trials.h). The program goes on with its own bytes. Bounded in
// time and memory. Caller: OnDemandExecutor, on the dispatcher's thread.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "preload/facts/store.h"
#include "replay/base/run_log.h"
#include "replay/examine/trials.h"
#include "replay/memory/memory.h"
#include "replay/queue/command_log.h"

namespace reprise::replay {

class Examiner {
 public:
  struct Allowance {
    uint64_t time_ns = 0;  // in all; 0: nothing is examined
    uint64_t bytes = 0;    // of host memory at once
  };

  // Before the first launch.
  void open(const Allowance& allowance, std::string folder, std::string device) noexcept;
  // Shall this launch, whose operands are resident, be examined?
  bool wants(const LogEntry& entry, RunLogWriter& run_log) noexcept;
  // Launches it, for good once, and examines it. The answer of the program's own launch.
  CUresult examine(const LogEntry& entry, ManagedMemory& memory, LaneIndex lane, Launcher launcher,
                   RunLogWriter& run_log) noexcept;

  // Nothing is examined for now: the memory for it goes back. Before a plan rules, and before the context ends.
  void rest() noexcept { copies_.release(); }

  // A launch has done something that contradicts what is known of its kernel: that is forgotten, here and in the cache.
  void disprove(const Command& command) noexcept;

 private:
  static constexpr uint64_t kEnough = 4;  // launches of a kernel that are examined, in all programs together
  static constexpr uint64_t kMost = 12;   // where it is still open whether an operand is written

  struct Kernel {
    uint64_t seen = 0;         // launches in this program
    uint64_t seen_open = 0;    // of them, once enough were examined, those that may say what is open
    facts::KernelFacts known;  // from the cache and from here
    bool never = false;        // too large, takes too long, or has an operand that cannot be looked at
  };

  Kernel& kernel_of(const Command& command);
  static bool may_tell(const Command& command, const facts::KernelFacts& known) noexcept;
  // nullptr: nothing speaks against it.
  using Why = const run_log::Word<run_log::examine::Tag>*;
  Why operands_of(const Command& command, const facts::KernelFacts& known, ManagedMemory& memory,
                  std::vector<TriedOperand>* operands) const;
  Why reason_against(const Command& command, ManagedMemory& memory, LaneIndex lane, Launcher launcher, Kernel& kernel,
                     bool* launched, CUresult* result);
  void keep(const Command& command, facts::KernelFacts* facts, Kernel& kernel);
  void write_line(const Command& command, Why why, uint64_t ns, RunLogWriter& run_log) noexcept;

  Allowance allowance_;
  HostCopies copies_;
  facts::Store store_{std::string()};
  std::string device_;
  uint64_t used_ns_ = 0;
  bool store_failed_ = false;
  std::unordered_map<uint64_t, Kernel> kernels_;  // by identity
  std::unordered_set<uint32_t> not_repeatable_;   // by function: told once
};

}  // namespace reprise::replay
