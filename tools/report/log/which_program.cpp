#include "tools/report/log/which_program.h"

#include <fmt/core.h>

#include <algorithm>

namespace reprise::report {
namespace {

constexpr const char* kMostMemory = "asked for the most memory";
constexpr const char* kAsMuch = "and asked for as much memory (within 1 %)";

// What tells those apart that asked for as much memory, one behind the other.
struct Rule {
  uint64_t (*figure)(const ProgramFigures&);
  const char* one;      // that is before all others by it
  const char* several;  // of those that are
};
constexpr Rule kRules[] = {
    {[](const ProgramFigures& one) { return uint64_t{one.has_plan}; }, "has a plan", "with a plan"},
    {[](const ProgramFigures& one) { return one.iterations_planned; }, "had the most iterations planned",
     "with the most iterations planned"},
    {[](const ProgramFigures& one) { return one.repeated_calls; }, "repeats the most", "that repeat the most"},
};

uint64_t most_of(const std::vector<ProgramFigures>& programs, const std::vector<size_t>& places,
                 uint64_t (*figure)(const ProgramFigures&)) {
  uint64_t most = 0;
  for (const size_t place : places) most = std::max(most, figure(programs[place]));
  return most;
}

std::vector<size_t> those_with_the_most_memory(const std::vector<ProgramFigures>& programs) {
  uint64_t most = 0;
  for (const ProgramFigures& program : programs) most = std::max(most, program.asked_bytes);
  std::vector<size_t> places;
  for (size_t i = 0; i < programs.size(); ++i) {
    if (asked_for_the_most(programs[i].asked_bytes, most)) places.push_back(i);
  }
  return places;
}

}  // namespace

bool asked_for_the_most(uint64_t bytes, uint64_t most_bytes) { return bytes >= most_bytes - most_bytes / 100; }

Chosen which_program(const std::vector<ProgramFigures>& programs) {
  if (programs.empty()) return {};
  std::vector<size_t> left = those_with_the_most_memory(programs);
  const size_t alike = left.size();
  if (alike == 1) return {left.front(), kMostMemory, alike, programs.size()};
  std::string of;
  for (const Rule& rule : kRules) {
    const uint64_t most = most_of(programs, left, rule.figure);
    const size_t passed = std::erase_if(left, [&](size_t place) { return rule.figure(programs[place]) != most; });
    if (left.size() == 1) return {left.front(), rule.one + of, alike, programs.size()};
    if (passed > 0) of = fmt::format(", of the {} {}", left.size(), rule.several);
  }
  size_t last = left.front();
  for (const size_t place : left) {
    if (programs[place].start_ns >= programs[last].start_ns) last = place;
  }
  return {last, "was started last" + of, alike, programs.size()};
}

std::string which_one(const Chosen& chosen) {
  const std::string programs = fmt::format("{} programs that used the device", chosen.all);
  if (chosen.alike == 1) return fmt::format("{} of {}", chosen.why, programs);
  if (chosen.alike == chosen.all) return fmt::format("{}, of {} {}", chosen.why, programs, kAsMuch);
  return fmt::format("{}, of the {} that {} of {}", chosen.why, chosen.alike, kMostMemory, programs);
}

std::string which_programs(const Chosen& chosen) {
  const bool all_alike = chosen.alike > 1 && chosen.alike == chosen.all;
  return fmt::format("{} programs used the device{}{}", chosen.all, all_alike ? " " : "", all_alike ? kAsMuch : "");
}

std::string why_this_one(const Chosen& chosen) {
  if (chosen.alike == 1 || chosen.alike == chosen.all) return chosen.why;
  return fmt::format("{}, of the {} that {}", chosen.why, chosen.alike, kMostMemory);
}

}  // namespace reprise::report
