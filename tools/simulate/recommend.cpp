#include "tools/simulate/recommend.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "preload/base/readable.h"
#include "tools/report/curve/as_fast.h"

namespace reprise::tools {
namespace {

// "1.02", times computing alone.
std::string slower(const SimulatedRow& row) {
  if (row.compute_ns == 0) return "1.00";
  return decimal(static_cast<double>(row.time_ns), static_cast<double>(row.compute_ns), 2);
}

// What to type: a size, and the percentage that was asked for.
std::string named(const SimulatedRow& row) {
  std::string size = row.to_the_byte ? std::to_string(row.budget_bytes) : typed_bytes(row.budget_bytes);
  if (row.asked.bytes > 0) return size;
  return fmt::format("{:g}% or {}", row.asked.percent, size);
}

std::string with_whose_plan(const SimulatedRow& row) {
  if (nothing_has_to_move(row)) return "as nothing has to move";
  return fmt::format("with {}", row.used.empty() ? row.policy : row.used);
}

// The fastest row of each budget that has a plan, smallest budget first.
std::vector<SimulatedRow> best_of_each(const std::vector<SimulatedRow>& rows) {
  std::map<uint64_t, SimulatedRow> best;
  for (const SimulatedRow& row : rows) {
    if (!row.trouble.empty()) continue;
    const auto [place, first] = best.emplace(row.budget_bytes, row);
    // What `auto` took is what a run takes, where it is as fast as the others.
    const bool better =
        row.time_ns < place->second.time_ns || (row.time_ns == place->second.time_ns && row.policy == "auto");
    if (!first && better) place->second = row;
  }
  std::vector<SimulatedRow> result;
  result.reserve(best.size());
  for (auto& [bytes, row] : best) result.push_back(std::move(row));
  return result;
}

}  // namespace

std::string recommend(const std::vector<SimulatedRow>& rows) {
  const std::vector<SimulatedRow> best = best_of_each(rows);
  if (best.size() < 2) return {};
  const auto faster = [](const SimulatedRow& one, const SimulatedRow& other) { return one.time_ns < other.time_ns; };
  const uint64_t least = std::min_element(best.begin(), best.end(), faster)->time_ns;
  const auto choice = std::find_if(best.begin(), best.end(),
                                   [least](const SimulatedRow& row) { return report::is_as_fast(row.time_ns, least); });
  std::string text = fmt::format(
      "recommended of those asked for: --budget {}, the smallest within {} % of the fastest: {} x computing alone, {}",
      named(*choice), report::kAsFastPercent, slower(*choice), with_whose_plan(*choice));
  if (choice != best.begin()) {
    text += fmt::format("; the smallest of them that works is {}, at {} x", named(best.front()), slower(best.front()));
  }
  if (&*choice == &best.back() && !report::is_as_fast(choice->time_ns, choice->compute_ns))
    text += "; more memory may be faster still";
  return text;
}

}  // namespace reprise::tools
