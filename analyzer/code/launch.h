// Facts about a kernel's code and the words of one launch together: which parameter words its reads and writes lead to,
// or that the launch does not show it. Callers: tests; what plans with these facts.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "analyzer/code/facts.h"

namespace reprise::code {

struct LaunchWords {
  std::set<uint32_t> live;          // offsets of parameter words that are addresses of live memory
  std::set<uint32_t> null;          // ... that are 0
  std::vector<uint8_t> parameters;  // their bytes; empty: not known
  uint32_t grid[3] = {1, 1, 1};
};

struct Operands {
  std::set<uint32_t> read;
  std::set<uint32_t> written;
  std::set<uint32_t> null;  // words of which an address would be made were they not 0
};

// None: an address may come from memory, or from somewhere that is not known.
std::optional<Operands> operands_of(const CodeFacts& facts, const LaunchWords& launch);

}  // namespace reprise::code
