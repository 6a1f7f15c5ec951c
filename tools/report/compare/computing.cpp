#include "tools/report/compare/computing.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "preload/trace/median.h"
#include "tools/report/compare/rows.h"
#include "tools/report/log/measured.h"

namespace reprise::report {
namespace {

int64_t more(uint64_t before, uint64_t after) { return static_cast<int64_t>(after) - static_cast<int64_t>(before); }

// Then the kernels are not the same, and plans have a part in their time.
bool computes_again_differently(const Computing& before, const Computing& after) {
  return before.repeated_launches != after.repeated_launches;
}

// Then the parts do not add up to the difference of the medians, and its cause is unknown.
bool is_unlike(const Computing& before, const Computing& after) {
  return !before.unlike.empty() || !after.unlike.empty();
}

std::string unlike_sentence(const Computing& before, const Computing& after) {
  if (!is_unlike(before, after)) return "";
  const std::string a = before.unlike.empty() ? "" : "that of A is " + before.unlike;
  const std::string b = after.unlike.empty() ? "" : "that of B is " + after.unlike;
  std::string text = a + (a.empty() || b.empty() ? "" : "; ") + b;
  text[0] = 'T';
  return fmt::format(" {}: how much of what most iterations differ by is computing is not known.", text);
}

std::string whose_doing(const Computing& before, const Computing& after, uint64_t counts_from) {
  if (computes_again_differently(before, after)) {
    return fmt::format(" Of B {} launches compute again what its plan had given up, of A {}.", after.repeated_launches,
                       before.repeated_launches);
  }
  if (is_unlike(before, after)) return "";
  if (static_cast<uint64_t>(std::llabs(more(before.computing_ns, after.computing_ns))) < counts_from) return "";
  return " The kernels are the same: how fast they run is the device's clock or other load, and no plan's doing.";
}

}  // namespace

// Of several that were measured the one that the run's own page is of.
Computing computing_of(const RunLog& log) {
  const std::optional<uint64_t> shown = measured_iteration(log);
  std::vector<uint64_t> computing;
  std::vector<uint64_t> rest;
  std::vector<uint64_t> repeated;
  for (const RunOverlap& sample : log.overlaps) {
    const auto whole = std::find_if(log.iterations.begin(), log.iterations.end(), [&](const RunIteration& one) {
      return one.planned && one.index == sample.iteration;
    });
    if (whole == log.iterations.end() || sample.compute_ns == 0) continue;
    if (shown && *shown != sample.iteration) continue;
    computing.push_back(sample.compute_ns);
    rest.push_back(whole->wall_ns - std::min(whole->wall_ns, sample.compute_ns));
    repeated.push_back(whole->repeated_launches);
  }
  const uint64_t count = computing.size();
  const std::string unlike = unlike_words(log);
  return {count, trace::median(std::move(computing)), trace::median(std::move(rest)),
          trace::median(std::move(repeated)),
          count == 0 || unlike.empty() ? "" : fmt::format("iteration {}{}", *shown, unlike)};
}

void add_computing_rows(const Computing& before, const Computing& after, Json& rows) {
  const bool both = before.measured > 0 && after.measured > 0;
  const auto add = [&](const char* label, uint64_t Computing::*what, bool plans_doing) {
    Json row = figure_row(label, before.*what, after.*what, Unit::waited);
    if (before.measured == 0) row["before"] = "";
    if (after.measured == 0) row["after"] = "";
    if (!both) row["change"] = "";
    if (!both || !plans_doing || is_unlike(before, after)) row["tone"] = "note";
    rows.push_back(std::move(row));
  };
  add("Computing and own copies, of an iteration that was measured", &Computing::computing_ns,
      computes_again_differently(before, after));
  add("All else of it: waiting, moving, launching", &Computing::rest_ns, true);
}

void say_computing(const Computing& before, const Computing& after, bool times_differ, Json& verdict) {
  std::string text = verdict.at("text");
  if (before.measured == 0 || after.measured == 0) {
    if (!times_differ) return;
    const bool neither = before.measured + after.measured == 0;
    verdict["text"] =
        text + fmt::format(" How much of that is computing is not known: no iteration of {} was measured.",
                           neither                ? "either"
                           : before.measured == 0 ? "A"
                                                  : "B");
    return;
  }
  const uint64_t counts_from = (before.computing_ns + before.rest_ns) / 100;
  const int64_t rest = more(before.rest_ns, after.rest_ns);
  text += fmt::format(
      " Of an iteration that was measured, computing and own copies took {}, all else (waiting, moving, launching) {}.",
      instead_words(before.computing_ns, after.computing_ns), instead_words(before.rest_ns, after.rest_ns));
  verdict["text"] = text + whose_doing(before, after, counts_from) + unlike_sentence(before, after);
  if (is_unlike(before, after)) return;
  const bool rest_says_so =
      static_cast<uint64_t>(std::llabs(rest)) >= counts_from && (rest < 0) == (verdict.at("tone") == "good");
  if (times_differ && !rest_says_so && !computes_again_differently(before, after)) verdict["tone"] = "note";
}

}  // namespace reprise::report
