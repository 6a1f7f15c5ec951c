// The sentences of "What happened", as rules add them, and what several sections say in one way. Called by sections.
#pragma once
#include <string>
#include <utility>

#include "tools/cli/sizes.h"
#include "tools/report/report.h"

namespace reprise::report {

class Sentences {
 public:
  void good(const std::string& text) { add("good", text); }
  void note(const std::string& text) { add("note", text); }
  void bad(const std::string& text) { add("bad", text); }
  void add(const char* tone, const std::string& text) { list_.push_back({{"tone", tone}, {"text", text}}); }
  Json take() { return std::move(list_); }

 private:
  Json list_ = Json::array();
};

std::string plural(uint64_t count, const char* noun);

// How the run went, iteration by iteration: course.cpp.
void say_plan_state(const Inputs& inputs, Sentences& say);
void say_plan_in_force(const Inputs& inputs, Sentences& say);
void say_looked_ahead(const Inputs& inputs, Sentences& say);
void say_examined(const Inputs& inputs, Sentences& say);
void say_divergences(const Inputs& inputs, Sentences& say);

// The run against the bounds: bounds.cpp.
void say_bounds(const Inputs& inputs, Sentences& say);
// "93.1 %" of the speed that no plan can pass; empty where the two times are not of the same kernel times: a run is
// compared with what was measured of the same iteration.
std::string predicted_speed(uint64_t least_ns, uint64_t time_ns);
std::string measured_speed(const Facts& facts, uint64_t least_of_run_ns);

// Did the run stay within its budget, with all that it took of the device: chunks, and what is held around them?
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
