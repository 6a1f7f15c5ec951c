// Names of kernels as people read them. Called where a run log, a trace or a plan is read for the report.
#pragma once
#include <string>

namespace reprise::report {

std::string demangle(const std::string& name);
// Each mangled name within a text.
std::string demangle_words(const std::string& text);

}  // namespace reprise::report
