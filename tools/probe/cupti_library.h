// Where CUPTI is: the toolkit's, or the one that Python packages brought. Callers: sections 1 and 7.
#pragma once
#include <string>

namespace reprise::probe {

// A path or a name that dlopen takes; empty: none found. REPRISE_CUPTI, when set, is the answer.
std::string find_cupti(const std::string& python);

}  // namespace reprise::probe
