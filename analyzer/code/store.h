// The cache of code facts: a folder beside the kernel facts (0029) with one small file for each kernel identity. It
// holds for all devices of the image's architecture, which is part of the identity. Callers: the planner, what fills
// the cache, the simulated device's tables.
#pragma once
#include <cstdint>
#include <string>

#include "analyzer/code/facts.h"
#include "preload/trace/status.h"

namespace reprise::code {

class CodeStore {
 public:
  // `facts`: the folder of the kernel facts.
  explicit CodeStore(const std::string& facts) : folder_(facts + "/code") {}

  // Errors: not_found; corrupt, also for facts of another analyser, which are to be made anew.
  Result<CodeFacts> load(uint64_t kernel) const;
  // Replaces what is there, in one step.
  Status keep(uint64_t kernel, const CodeFacts& facts) const;

 private:
  std::string path_of(uint64_t kernel) const;

  std::string folder_;
};

}  // namespace reprise::code
