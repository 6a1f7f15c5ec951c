// REPRISE_SIM_HASH_LOG: a line for each launch that is hashed, for tools/lab/first-difference, which names the first
// launch that differs between two runs. Caller: hashing.cpp.
#pragma once
#include <cstdint>
#include <vector>

#include "tools/device/twins/executor.h"

namespace reprise::sim {

struct HashedLaunch {
  struct Operand {
    uint64_t bytes;
    uint64_t content;  // hash
  };
  const KernelRun& run;
  uint64_t parameters;  // hash of what is launched and how
  std::vector<Operand> tensors;
  uint64_t result;
};

void log_hashes(const HashedLaunch& launch);

}  // namespace reprise::sim
