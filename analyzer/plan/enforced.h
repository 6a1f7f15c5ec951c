// Which plans a replay can enforce, by its safety. Callers: the preloaded library, which refuses what it cannot, and
// `reprise replay`, which does so before anything starts.
#pragma once
#include <string>

#include "analyzer/plan/plan.h"

namespace reprise::plan {

// Does the safety keep each kernel away from memory that is not among its accesses? Audited does where the plan has a
// kernel that is not audited.
bool keeps_kernels_away(const Plan& plan, Safety safety);

// Why a replay with this safety cannot enforce the plan, and what to do, as a sentence that begins with "the plan"
// goes on; empty: it can.
std::string why_not_enforced(const Plan& plan, Safety safety);

// Likewise, what is to be known of a replay that can, with another safety than the plan was made for; empty: it is that
// one.
std::string made_for_another(const Plan& plan, Safety safety);

// Likewise, of a replay within a larger budget, by a chunk or more: planned iterations keep to their own; empty: it is
// not larger.
std::string made_for_less(const Plan& plan, uint64_t budget_bytes);

// Why no other plan is of help within so little, as a clause; empty: the iteration has one for this budget.
std::string why_no_plan_fits(const Plan& plan, uint64_t budget_bytes);

}  // namespace reprise::plan
