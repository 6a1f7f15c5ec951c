#include "analyzer/plan/enforced.h"

#include <fmt/core.h>

namespace reprise::plan {

bool keeps_kernels_away(const Plan& plan, Safety safety) {
  return safety == Safety::strict || (safety == Safety::audited && !all_audited(plan));
}

std::string why_not_enforced(const Plan& plan, Safety safety) {
  if (device_count(plan) > 1) {
    return fmt::format("is for {} devices, which can be simulated but not enforced; make one for a single device",
                       device_count(plan));
  }
  if (reorders(plan)) return "reorders kernels, which can be simulated but not enforced; make one with reprise plan";
  if (has_split_tensors(plan)) {
    return "splits tensors, which can be simulated but not enforced; make one with reprise plan";
  }
  if (!keeps_kernels_away(plan, safety)) return {};
  if (recomputes(plan)) {
    return "drops what it recomputes, which --safety strict never does, nor audited where a kernel is not audited; "
           "make one for that safety, or run with --safety trusted";
  }
  if (drops_what_is_only_read(plan)) {
    return "was made for --safety trusted; make one for the safety of this run, or run with --safety trusted";
  }
  return {};
}

}  // namespace reprise::plan
