// Kernels with known truth, held against what their code says of them. The truth stands in lines of a source:
// "// TRUTH name live=0,8 read=0 write=8 hidden=0 pure=1", which habits.cu explains. Callers: habits_test, code_check.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "analyzer/code/facts.h"
#include "analyzer/code/launch.h"

namespace reprise::code {

struct Truth {
  LaunchWords launch;
  Operands operands;
  bool hidden = false;  // it follows addresses that lie in memory
  bool pure = false;
};

std::map<std::string, Truth> read_truth(const std::string& source);

struct Score {
  int kernels = 0;
  int exact = 0;
  int wider = 0;
  int hidden_told = 0;
  int hidden_for_none = 0;
  int unknown = 0;
  int pure_found = 0;
  int pure_missed = 0;
  std::vector<std::string> wrong;  // claims that the truth contradicts
  std::vector<std::string> notes;  // what is less than could be said

  std::string text() const;
};

void compare(const std::string& name, const Truth& truth, const CodeFacts& facts, Score& score);

// All kernels of the cubin that have a truth.
Score check(const std::map<std::string, Truth>& truths, const std::string& cubin, std::string disassembly);

}  // namespace reprise::code
