#include "tools/report/log/which_program.h"

#include <algorithm>
#include <tuple>

namespace reprise::report {
namespace {

auto rank(const ProgramFigures& program) {
  return std::tie(program.has_plan, program.iterations_planned, program.repeated_calls, program.start_ns);
}

}  // namespace

bool asked_for_the_most(uint64_t bytes, uint64_t most_bytes) { return bytes >= most_bytes - most_bytes / 100; }

size_t which_program(const std::vector<ProgramFigures>& programs) {
  uint64_t most = 0;
  for (const ProgramFigures& program : programs) most = std::max(most, program.asked_bytes);
  size_t best = programs.size();
  for (size_t i = 0; i < programs.size(); ++i) {
    if (!asked_for_the_most(programs[i].asked_bytes, most)) continue;
    if (best == programs.size() || rank(programs[i]) >= rank(programs[best])) best = i;
  }
  return best == programs.size() ? 0 : best;
}

}  // namespace reprise::report
