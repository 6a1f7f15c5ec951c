// The loaded twin libraries. Callers: the executor, launches, and load_twins(), which fills it once before any kernel
// runs.
#pragma once
#include <string_view>

#include "tools/device/twins/twin.h"

namespace reprise::sim {

// The twin of the kernel with this mangled name, or nullptr. Any thread.
const Twin* find_twin(std::string_view kernel);

}  // namespace reprise::sim
