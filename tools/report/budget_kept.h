// Did a run stay within its budget, with all that it took of the device: chunks, and what is held around them? Whatever
// says so, in whichever section, says it by this.
#pragma once
#include <string>
#include <utility>

#include "tools/cli/sizes.h"
#include "tools/report/report.h"

namespace reprise::report {

enum class BudgetKept : uint8_t { not_known, kept, passed };

inline BudgetKept budget_kept(const Facts& facts) {
  if (facts.budget == 0 || facts.peak_actual == 0) return BudgetKept::not_known;
  return facts.peak_actual <= facts.budget ? BudgetKept::kept : BudgetKept::passed;
}

// Both for people, to the byte where they differ and look the same.
inline std::pair<std::string, std::string> peak_and_budget(const Facts& facts) {
  std::string peak = tools::format_bytes(facts.peak_actual);
  std::string budget = tools::format_bytes(facts.budget);
  if (peak != budget || facts.peak_actual == facts.budget) return {std::move(peak), std::move(budget)};
  return {std::to_string(facts.peak_actual) + " B", std::to_string(facts.budget) + " B"};
}

}  // namespace reprise::report
