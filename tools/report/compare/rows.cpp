#include "tools/report/compare/rows.h"

#include <fmt/core.h>

#include <cmath>

#include "preload/base/readable.h"
#include "tools/cli/sizes.h"
#include "tools/report/log/redacted.h"

namespace reprise::report {
namespace {

using tools::format_bytes;
using tools::format_duration;

std::string shown(uint64_t value, Unit unit) {
  if (unit == Unit::count) return fmt::format("{}", value);
  if (unit == Unit::ns && value == 0) return "";
  return unit == Unit::ns || unit == Unit::waited ? format_duration(value) : format_bytes(value);
}

std::string change(uint64_t before, uint64_t after) {
  if (before == 0 || after == 0 || before == after) return before == after && before > 0 ? "the same" : "";
  const std::string percent = signed_decimal(100 * (static_cast<double>(after) / static_cast<double>(before) - 1), 1);
  return (percent == "-100.0" ? "below -99.9" : percent) + " %";  // something is left
}

}  // namespace

Json figure_row(const char* label, uint64_t before, uint64_t after, Unit unit, bool less_is_better) {
  const bool counted = unit == Unit::count || unit == Unit::moved || unit == Unit::waited;
  const bool known = counted || (before > 0 && after > 0);
  const bool better = less_is_better ? after < before : after > before;
  return {{"label", label},
          {"before", shown(before, unit)},
          {"after", shown(after, unit)},
          {"change", change(before, after)},
          {"tone", !known || before == after ? "note"
                   : better                  ? "good"
                                             : "bad"}};
}

Json chosen_row(const char* label, uint64_t before, uint64_t after, Unit unit) {
  Json row = figure_row(label, before, after, unit);
  row["tone"] = "note";
  return row;
}

const char* same_words(std::optional<bool> same) { return !same ? "not known" : *same ? "the same" : "differs"; }

Json text_row(const char* label, const std::string& before, const std::string& after) {
  const bool known = !is_redacted(before) && !is_redacted(after);
  return {{"label", label},
          {"before", before},
          {"after", after},
          {"change", same_words(known ? std::optional(before == after) : std::nullopt)},
          {"tone", "note"}};
}

Json without_judgement(Json row) {
  row["tone"] = "note";
  return row;
}

std::string instead_words(uint64_t before, uint64_t after) {
  const std::string now = format_duration(after);
  const std::string then = format_duration(before);
  return now == then ? fmt::format("{} in both", now) : fmt::format("{} instead of {}", now, then);
}

std::string memory_words(uint64_t before, uint64_t after) {
  if (before == after || before == 0 || after == 0) return "in the same memory";
  return after < before ? fmt::format("in {} less memory", format_bytes(before - after))
                        : fmt::format("in {} more memory", format_bytes(after - before));
}

Json verdict_of_times(const std::string& what, const std::string& than, uint64_t before, uint64_t after,
                      const std::string& memory) {
  const double percent = 100 * (static_cast<double>(after) / static_cast<double>(before) - 1);
  const std::string times = instead_words(before, after);
  if (std::abs(percent) < 1) {
    return {{"tone", "note"}, {"text", fmt::format("{} as long as {} ({}), {}.", what, than, times, memory)}};
  }
  return {{"tone", percent < 0 ? "good" : "bad"},
          {"text", fmt::format("{} {} % {} than {} ({}), {}.", what, decimal(std::abs(percent), 1, 1),
                               percent < 0 ? "less" : "more", than, times, memory)}};
}

}  // namespace reprise::report
