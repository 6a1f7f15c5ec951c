#include "tools/lab/simulate/recommend.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "tools/report/curve/as_fast.h"

namespace reprise::tools {
namespace {

std::string slower(const SimulatedRow& row) { return slower_by(row.time_ns, row.compute_ns); }

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

std::string with_the_smallest(std::string text, const std::vector<SimulatedRow>& best, const SimulatedRow& choice) {
  if (choice.budget_bytes == best.front().budget_bytes) return text;
  return text + fmt::format("; the smallest of them that works is {}: {}", named(best.front()), slower(best.front()));
}

std::string recommend_within(const std::vector<SimulatedRow>& best, double slowdown) {
  const auto choice =
      std::find_if(best.begin(), best.end(), [slowdown](const SimulatedRow& row) { return is_within(row, slowdown); });
  if (choice == best.end()) {
    return fmt::format("none of these is at most {:g} % slower than computing alone; {} is: {}", 100 * slowdown,
                       named(best.back()), slower(best.back()));
  }
  return with_the_smallest(fmt::format("the smallest of these that is at most {:g} % slower than computing alone: "
                                       "--budget {}: {}, {}",
                                       100 * slowdown, named(*choice), slower(*choice), with_whose_plan(*choice)),
                           best, *choice);
}

}  // namespace

bool is_within(const SimulatedRow& row, double slowdown) {
  const double most = static_cast<double>(row.compute_ns) * (1 + slowdown);
  return row.trouble.empty() && static_cast<double>(row.time_ns) <= most;
}

std::string recommend(const std::vector<SimulatedRow>& rows, std::optional<double> slowdown) {
  const std::vector<SimulatedRow> best = best_of_each(rows);
  if (slowdown && !best.empty()) return recommend_within(best, *slowdown);
  if (best.size() < 2) return {};
  const auto faster = [](const SimulatedRow& one, const SimulatedRow& other) { return one.time_ns < other.time_ns; };
  const uint64_t least = std::min_element(best.begin(), best.end(), faster)->time_ns;
  const auto choice = std::find_if(best.begin(), best.end(),
                                   [least](const SimulatedRow& row) { return report::is_as_fast(row.time_ns, least); });
  std::string text = with_the_smallest(
      fmt::format("recommended of those asked for: --budget {}, the smallest within {} % of the fastest: {} against "
                  "computing alone, {}",
                  named(*choice), report::kAsFastPercent, slower(*choice), with_whose_plan(*choice)),
      best, *choice);
  if (&*choice == &best.back() && !report::is_as_fast(choice->time_ns, choice->compute_ns))
    text += "; more memory may be faster still";
  return text;
}

}  // namespace reprise::tools
