// Which link times are of, and whether two are one: what was measured on one says nothing of another. Callers: the
// report, and the comparisons of runs and of plans.
#pragma once
#include <cstdint>
#include <string>

#include "analyzer/plan/plan.h"
#include "tools/report/log/run_log.h"

namespace reprise::report {

// Bytes per second, each way.
struct LinkRates {
  uint64_t to_device = 0;
  uint64_t to_host = 0;
  bool known() const { return to_device > 0 && to_host > 0; }
};
LinkRates link_of(const RunLog& log);
LinkRates link_of(const plan::PlannedLink& link);

// As one link is measured twice, rates are not as far apart.
inline constexpr const char* kFarApart = "more than a tenth apart";
// Both are known.
bool are_far_apart(const LinkRates& one, const LinkRates& other);

// "24.0 GB/s each way", "not known".
std::string words_of(const LinkRates& link);
// "24.0 GB/s each way (a100)", and with what a copy and mapping take besides.
std::string words_of(const plan::PlannedLink& link, bool with_times = false);

}  // namespace reprise::report
