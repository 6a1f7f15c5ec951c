// The sentences of "What happened", as rules add them. Called by sentences.cpp and course.cpp.
#pragma once
#include <string>

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

}  // namespace reprise::report
