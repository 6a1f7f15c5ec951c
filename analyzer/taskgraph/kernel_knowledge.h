// What is known of the kernels of a recording: what their launches showed (preload/facts) and what their code proves
// (analyzer/code), looked up once each. Callers: kernel_facts.cpp, build.cpp.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "analyzer/code/launch.h"
#include "analyzer/code/store.h"
#include "preload/facts/store.h"
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
  // The parameter words that the launch reads and writes through, if its code proves that it reaches nothing else.
  std::optional<code::Operands> proven(const trace::Op& op);

 private:
  uint64_t identity_of(const trace::Op& op) const;
  bool contradicts(const trace::Op& op, const code::Operands& operands);
  bool was_allocated(uint64_t address) const;
  code::LaunchWords words_of(const trace::Op& op) const;

  const trace::Trace& trace_;
  const facts::Store& store_;
  const code::CodeStore code_store_;
  const bool use_code_;
  std::string device_;
  std::map<uint64_t, uint64_t> ranges_;  // addresses that were ever allocated: begin -> end; none overlap
  std::unordered_map<uint64_t, std::optional<facts::KernelFacts>> shown_;  // by identity
  std::unordered_map<uint64_t, std::optional<code::CodeFacts>> code_;
};

}  // namespace reprise::analyzer
