#include "tools/cli/budget_range.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>

namespace reprise::tools {
namespace {

constexpr size_t kMostBudgets = 1000;

Status refuse(std::string_view text, std::string_view why) {
  return {StatusCode::invalid_argument, fmt::format("--budget {}: {}; write for example 30%..100%:5%", text, why)};
}

double value_of(const Budget& budget) { return budget.bytes > 0 ? static_cast<double>(budget.bytes) : budget.percent; }

// Whatever it is of. As a budget it would be called too small.
bool is_zero(std::string_view text) {
  double value = 1;
  return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc() && value == 0;
}

// "from..to:step", all three percentages or all three sizes.
Status add_range(std::string_view text, size_t dots, std::vector<Budget>& budgets) {
  const std::string_view rest = text.substr(dots + 2);
  const size_t colon = rest.find(':');
  if (colon == std::string_view::npos) return refuse(text, "a range needs a step");
  Budget ends[3];
  const std::string_view parts[3] = {text.substr(0, dots), rest.substr(0, colon), rest.substr(colon + 1)};
  for (int i = 0; i < 3; ++i) {
    Result<Budget> part = parse_budget(parts[i]);
    if (!part.ok() && i == 2 && is_zero(parts[i])) return refuse(text, "with a step of 0 it has no end");
    if (!part.ok()) return part.status();
    ends[i] = part.value();
    if ((ends[i].bytes > 0) != (ends[0].bytes > 0)) return refuse(text, "sizes and percentages are mixed");
  }
  const double from = value_of(ends[0]);
  const double to = value_of(ends[1]);
  const double step = value_of(ends[2]);
  const double steps = std::floor(std::abs(to - from) / step + 1e-9);
  if (steps >= kMostBudgets) return refuse(text, "too many budgets");
  for (int i = 0; i <= static_cast<int>(steps); ++i) {
    const double value = from + (to > from ? step : -step) * i;
    Budget budget;
    if (ends[0].bytes > 0) {
      budget.bytes = static_cast<uint64_t>(value);
    } else {
      budget.percent = value;
    }
    budgets.push_back(budget);
  }
  return {};
}

}  // namespace

Result<std::vector<Budget>> parse_budgets(std::string_view text) {
  std::vector<Budget> budgets;
  std::string_view left = text;
  while (true) {
    const size_t comma = left.find(',');
    const std::string_view part = left.substr(0, comma);
    if (const size_t dots = part.find(".."); dots != std::string_view::npos) {
      if (Status status = add_range(part, dots, budgets); !status.ok()) return status;
    } else {
      Result<Budget> budget = parse_budget(part);
      if (!budget.ok()) return budget.status();
      budgets.push_back(budget.value());
    }
    if (budgets.size() > kMostBudgets) return refuse(text, "too many budgets");
    if (comma == std::string_view::npos) return budgets;
    left.remove_prefix(comma + 1);
  }
}

}  // namespace reprise::tools
