// What is known of the kernels of a recording: what their launches showed (preload/facts) and what their code proves
// (analyzer/code), looked up once each. Callers: kernel_facts.cpp, build.cpp.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyzer/code/launch.h"
#include "analyzer/code/store.h"
#include "preload/facts/store.h"
#include "preload/structures/structures.h"
#include "preload/trace/reader.h"

namespace reprise::analyzer {

class KernelKnowledge {
 public:
  // Both must outlive it. `use_code`: what code proves counts.
  KernelKnowledge(const trace::Trace& trace, const facts::Store& store, bool use_code);

  const trace::Trace& trace() const { return trace_; }
  // nullptr: nothing is known.
  const facts::KernelFacts* shown(const trace::Op& op);
  const code::CodeFacts* code(const trace::Op& op);
  // The parameter words that the launch reads and writes through, if it reaches nothing else: its code proves it, or
  // the library's call that made it declares its operands (0078).
  std::optional<code::Operands> proven(const trace::Op& op);
  // May it reach variables of its module? Of launches that are proven by code the code says it.
  bool uses_variables(const trace::Op& op);
  // Is the access to a module's variables as a whole, which have no place in the recording?
  bool is_variable(const trace::AccessRecord& access) const;

 private:
  uint64_t identity_of(const trace::Op& op) const;
  std::optional<code::Operands> operands_of(const trace::Op& op);
  bool contradicts(const trace::Op& op, const code::Operands& operands);
  bool was_allocated(uint64_t address) const;
  structures::UnsetParts unset_parts(const trace::Op& op);
  code::LaunchWords words_of(const trace::Op& op);

  const trace::Trace& trace_;
  const facts::Store& store_;
  const code::CodeStore code_store_;
  const bool use_code_;
  std::string device_;
  std::unordered_set<uint64_t> moving_;                              // allocations that Reprise may move
  std::unordered_set<uint64_t> staying_;                             // ... and others that the recording knows
  std::unordered_map<uint32_t, structures::Structures> structures_;  // that functions take by value
  std::map<uint64_t, uint64_t> ranges_;  // addresses that were ever allocated: begin -> end; none overlap
  std::unordered_map<uint64_t, std::optional<facts::KernelFacts>> shown_;  // by identity
  std::unordered_map<uint64_t, std::optional<code::CodeFacts>> code_;
};

}  // namespace reprise::analyzer
