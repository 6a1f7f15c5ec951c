// Several budgets in one option: "50%", "40GiB,30GiB", "30%..100%:5%". Called by `reprise simulate`.
#pragma once
#include <string_view>
#include <vector>

#include "tools/cli/sizes.h"

namespace reprise::tools {

// In the order written; a range counts from its first end to its last. Errors are one line, invalid_argument.
Result<std::vector<Budget>> parse_budgets(std::string_view text);

}  // namespace reprise::tools
