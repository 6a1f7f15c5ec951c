// What is told of a plan when it is taken: its line in the run log, and what a user should know of it. Caller:
// PlanSession.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "preload/base/config.h"
#include "replay/issue/shared.h"
#include "replay/plan/plan_index.h"

namespace reprise::replay {

struct PlanTaken {
  uint32_t number = 0;
  std::string path;  // "" if nobody else finds it
  uint64_t recording_ns = 0;
  uint64_t planner_ns = 0;
  std::optional<uint32_t> replaces = {};  // the plan of the same loop that was there first
  bool kept = false;                      // from an earlier run
};
void write_plan(RunLogWriter& log, const PlanIndex& index, const PlanTaken& taken) noexcept;

// The user's plan was made for another program, safety or budget: it is tried all the same. The launcher refuses most.
void warn_of_given(const Config& config, const Shared& shared, const plan::Plan& plan, uint64_t fixed_budget) noexcept;

// A loop has the same calls wherever it is entered, ...
uint64_t calls_of(const plan::Plan& plan) noexcept;
// ... and what is alive when it begins tells two of them apart that make the same calls.
uint64_t alive_at_start(const plan::Plan& plan) noexcept;

// A safety by kernel without a kernel that is known to be complete is strict, and says so.
bool has_no_complete(const PlanIndex& index) noexcept;
void tell_of_none_complete(plan::Safety safety) noexcept;

std::string identity_text(uint64_t hash) noexcept;  // 16 hexadecimal digits

}  // namespace reprise::replay
