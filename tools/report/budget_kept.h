// Did a run stay within its budget, with all that it took of the device: chunks, and what is held around them? Whatever
// says so, in whichever section, says it by this.
#pragma once
#include "tools/report/report.h"

namespace reprise::report {

enum class BudgetKept : uint8_t { not_known, kept, passed };

inline BudgetKept budget_kept(const Facts& facts) {
  if (facts.budget == 0 || facts.peak_actual == 0) return BudgetKept::not_known;
  return facts.peak_actual <= facts.budget ? BudgetKept::kept : BudgetKept::passed;
}

}  // namespace reprise::report
