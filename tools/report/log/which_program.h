// Of several programs that used the device in one run, the one that its trace, plan, report and the view of its run log
// are of: this rule, and no other. Callers: the reader of run logs, which `run` and all pages follow, and `record`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace reprise::report {

struct ProgramFigures {
  uint64_t asked_bytes = 0;  // of device memory, at once, at most
  bool has_plan = false;
  uint64_t iterations_planned = 0;
  uint64_t repeated_calls = 0;  // of all its iterations
  uint64_t start_ns = 0;        // 0: not said
};

// Has it asked for the most memory, but for 1 %? Runs of one program differ by no more where only a last batch does.
bool asked_for_the_most(uint64_t bytes, uint64_t most_bytes);

struct Chosen {
  size_t place = 0;  // among the programs
  std::string why;   // "asked for the most memory", or what told it from those that asked for as much
  size_t alike = 1;  // that asked for the most memory
  size_t all = 1;
};

// Of those that asked for the most memory: the one that has a plan, that had more iterations planned, that repeated
// more, that was started last. They are in the order of their starts where they do not say it; the first place is that
// of none.
Chosen which_program(const std::vector<ProgramFigures>& programs);

// Behind "which": "asked for the most memory of 2 programs that used the device".
std::string which_one(const Chosen& chosen);
// The same in two parts: "2 programs used the device", and behind "the one that": "asked for the most memory".
std::string which_programs(const Chosen& chosen);
std::string why_this_one(const Chosen& chosen);

}  // namespace reprise::report
