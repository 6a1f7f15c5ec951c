#include "tools/report/compare/compare.h"

#include <fmt/core.h>

#include <algorithm>

#include "tools/cli/sizes.h"
#include "tools/report/compare/computing.h"
#include "tools/report/compare/rows.h"
#include "tools/report/compare/spread.h"
#include "tools/report/log/links.h"
#include "tools/report/log/redacted.h"
#include "tools/report/same_recording.h"
#include "tools/report/view/thin.h"

namespace reprise::report {
namespace {

constexpr size_t kMostIterations = 2000;

struct Figures {
  uint64_t iteration_ns = 0;  // planned, median
  uint64_t on_demand_ns = 0;
  uint64_t total_ns = 0;
  uint64_t before_plan_ns = 0;
  uint64_t stall_ns = 0;  // of a planned iteration, on average, as what follows
  uint64_t moved_bytes = 0;
  uint64_t vmm_calls = 0;
  bool planned = false;  // is there such an iteration?
};

Figures figures_of(const RunLog& log) {
  Figures figures;
  figures.iteration_ns = median_iteration_ns(log, true);
  figures.on_demand_ns = median_iteration_ns(log, false);
  if (log.start_ns > 0 && log.end_ns > log.start_ns) figures.total_ns = log.end_ns - log.start_ns;
  if (log.activation_at_ns > log.start_ns) figures.before_plan_ns = log.activation_at_ns - log.start_ns;
  uint64_t planned = 0;
  for (const RunIteration& it : log.iterations) {
    if (!it.planned) continue;
    ++planned;
    figures.stall_ns += it.stall_ns;
    figures.moved_bytes += it.offload_bytes + it.reload_bytes;
    figures.vmm_calls += it.vmm_calls;
  }
  if (planned == 0) return figures;
  figures.planned = true;
  for (uint64_t* each : {&figures.stall_ns, &figures.moved_bytes, &figures.vmm_calls}) {
    *each = (*each + planned / 2) / planned;
  }
  return figures;
}

Json iterations_of(const RunLog& log) {
  Json rows = Json::array();
  for (const ThinIteration& it : thinned(log, kMostIterations)) {
    rows.push_back({it.first, it.count, static_cast<int>(it.mode), it.median_ns});
  }
  return rows;
}

std::string short_program(const RunLog& log) { return log.program.substr(log.program.rfind('/') + 1); }

// "A failed (exit code 1)" or "A and B failed (...)"; empty when both ended well, or as well as is known.
std::string failures(const RunLog& before, const RunLog& after) {
  const auto one = [](const char* name, const RunLog& log) {
    return log.ending.empty() ? "" : fmt::format("{} failed ({})", name, log.ending);
  };
  const std::string first = one("A", before);
  const std::string second = one("B", after);
  return first + (first.empty() || second.empty() ? "" : ", ") + second;
}

// Of the first plan; empty: there was none.
std::string hash_of_iteration(const RunLog& log) {
  return log.iteration_hashes.empty() ? std::string() : log.iteration_hashes.front();
}

bool is_named(const RunLog& log) { return !log.program.empty() && !is_redacted(log.program); }
bool are_named(const RunLog& before, const RunLog& after) { return is_named(before) && is_named(after); }
bool is_hashed(const RunLog& log) { return log.program_hash.find_first_not_of('0') != std::string::npos; }

// By their names, as a program that was built anew has another hash; where one has none, by the hashes. None: not
// known.
std::optional<bool> are_of_one_program(const RunLog& before, const RunLog& after) {
  if (are_named(before, after)) return short_program(before) == short_program(after);
  if (!is_hashed(before) || !is_hashed(after)) return {};
  return before.program_hash == after.program_hash;
}
bool are_of_two_programs(const RunLog& before, const RunLog& after) {
  return !are_of_one_program(before, after).value_or(true);
}

Json program_row(const RunLog& before, const RunLog& after) {
  Json row = text_row("Program", before.program, after.program);
  if (!are_named(before, after)) row["change"] = same_words(are_of_one_program(before, after));
  return row;
}

// For the page's title.
std::string names_of_programs(const RunLog& before, const RunLog& after) {
  if (are_of_two_programs(before, after)) return short_program(before) + " and " + short_program(after);
  return is_named(after) ? after.program : before.program;
}

bool has_link(const RunLog& log) { return link_of(log).known(); }
bool have_links(const RunLog& before, const RunLog& after) { return has_link(before) && has_link(after); }

// Where the runs were not on one machine, or that is not known: a sentence of it. Empty: they were.
std::string two_machines(const RunLog& before, const RunLog& after) {
  const auto sentence = [](const std::string& what, const std::string& a, const std::string& b) {
    return fmt::format("A and B ran on different {}, A on {}, B on {}, and their times are of these, too. ", what, a,
                       b);
  };
  if (!before.device.empty() && !after.device.empty() && before.device != after.device) {
    return sentence("devices", before.device, after.device);
  }
  if (!have_links(before, after)) {
    return fmt::format("It is not known how fast {}, so neither is better for its times. ",
                       has_link(after)    ? "the link of A was"
                       : has_link(before) ? "the link of B was"
                                          : "the links of A and B were");
  }
  if (!are_far_apart(link_of(before), link_of(after))) return "";
  return sentence(fmt::format("links, {}", kFarApart), words_of(link_of(before)), words_of(link_of(after)));
}

// Where the runs promised different things of memory that kernels reach unseen: a sentence of it. Empty: they did not.
std::string two_safeties(const RunLog& before, const RunLog& after) {
  if (before.safety.empty() || after.safety.empty() || before.safety == after.safety) return "";
  return fmt::format("A ran with --safety {}, B with {}, which promise different things. ", before.safety,
                     after.safety);
}

// What of two runs of one program may be compared: only what did the same work.
struct Likeness {
  bool same_arguments = true;     // or not known
  bool hidden_arguments = false;  // not known, as they were redacted
  bool same_iteration = true;
};

Likeness likeness_of(const RunLog& before, const RunLog& after) {
  Likeness likeness;
  if (before.arguments && after.arguments) {
    likeness.hidden_arguments = is_redacted(*before.arguments) || is_redacted(*after.arguments);
    likeness.same_arguments = likeness.hidden_arguments || *before.arguments == *after.arguments;
  }
  const std::string first = hash_of_iteration(before);
  const std::string second = hash_of_iteration(after);
  likeness.same_iteration = first.empty() || second.empty() ? likeness.same_arguments : first == second;
  return likeness;
}

bool planned_same_iteration(const RunLog& before, const RunLog& after) {
  return !hash_of_iteration(before).empty() && hash_of_iteration(before) == hash_of_iteration(after);
}

// Where what was redacted may be the difference: a sentence of it. Empty: it is not.
std::string not_known_work(const RunLog& before, const RunLog& after) {
  const auto sentence = [](const char* what) {
    return fmt::format("It is not known whether A and B {}, so neither is better for its times. ", what);
  };
  if (!are_of_one_program(before, after)) return sentence("are runs of one program");
  const bool hidden = likeness_of(before, after).hidden_arguments && !planned_same_iteration(before, after);
  return hidden ? sentence("were called with the same arguments") : "";
}

// Of planned iterations.
struct Spreads {
  Spread a;
  Spread b;
};
Spreads spreads_of(const RunLog& before, const RunLog& after) {
  return {spread_of(before, true, &RunIteration::wall_ns), spread_of(after, true, &RunIteration::wall_ns)};
}

Json verdict_of_times_of(const RunLog& before, const RunLog& after, const Figures& a, const Figures& b) {
  const Spreads spreads = spreads_of(before, after);
  const bool planned = a.iteration_ns > 0 && b.iteration_ns > 0;
  const uint64_t first = planned ? a.iteration_ns : a.total_ns;
  const uint64_t second = planned ? b.iteration_ns : b.total_ns;
  const char* const what = planned ? "A planned iteration of B took" : "B as a whole took";
  const char* const than = planned ? "one of A" : "A";
  if (first == 0 || second == 0) {
    return {{"tone", "note"}, {"text", "The logs do not say enough to compare times: was one of the runs killed?"}};
  }
  Json verdict = verdict_of_times(what, than, first, second, memory_words(peak_of_run(before), peak_of_run(after)));
  if (planned && verdict.at("tone") != "note" && meet(spreads.a, spreads.b)) {
    verdict = without_judgement(std::move(verdict));
    std::string text = verdict.at("text");
    text.pop_back();
    verdict["text"] = text + spread_words(spreads.a, spreads.b) + ".";
  }
  if (planned) say_computing(computing_of(before), computing_of(after), verdict.at("tone") != "note", verdict);
  const std::string unlike = not_known_work(before, after) + two_safeties(before, after) + two_machines(before, after);
  if (unlike.empty()) return verdict;
  verdict = without_judgement(std::move(verdict));
  verdict["text"] = unlike + verdict.at("text").get<std::string>();
  return verdict;
}

// Of one program, whose work was not the same.
Json verdict_of_unlike(const RunLog& before, const RunLog& after, const Figures& a, const Figures& b,
                       const Likeness& likeness) {
  const auto text = [](const std::string& words) { return Json{{"tone", "note"}, {"text", words}}; };
  const std::string called = likeness.same_arguments
                                 ? ""
                                 : "A and B were called with different arguments" +
                                       tools::differing_arguments(*before.arguments, *after.arguments);
  if (!likeness.same_iteration && !hash_of_iteration(before).empty() && !hash_of_iteration(after).empty()) {
    return text(called.empty() ? "A and B planned different iterations: their times say nothing about each other."
                               : called +
                                     ", and planned different iterations: their times say nothing about each "
                                     "other.");
  }
  if (a.iteration_ns == 0 || b.iteration_ns == 0 || !likeness.same_iteration) {
    return text(called + ": their times as a whole are not compared.");
  }
  return text(called + ", and planned the same iteration. " +
              verdict_of_times_of(before, after, a, b).at("text").get<std::string>());
}

// Times of runs that did not do the same work are no comparison.
Json verdict_of(const RunLog& before, const RunLog& after, const Figures& a, const Figures& b) {
  const std::string failed = failures(before, after);
  if (are_of_two_programs(before, after)) {
    return {
        {"tone", "bad"},
        {"text",
         fmt::format("A and B are runs of different programs, {}{}: their times say nothing about each other.",
                     are_named(before, after) ? fmt::format("{} and {}", short_program(before), short_program(after))
                                              : "by the hashes of these",
                     failed.empty() ? "" : ", and " + failed)}};
  }
  const Likeness likeness = likeness_of(before, after);
  if (!likeness.same_arguments || !likeness.same_iteration) {
    Json verdict = verdict_of_unlike(before, after, a, b, likeness);
    if (!failed.empty()) verdict = {{"tone", "bad"}, {"text", failed + ". " + verdict.at("text").get<std::string>()}};
    return verdict;
  }
  if (failed.empty()) return verdict_of_times_of(before, after, a, b);
  if (a.iteration_ns == 0 || b.iteration_ns == 0) {
    return {{"tone", "bad"}, {"text", failed + ": the runs as a whole are not compared."}};
  }
  Json verdict = verdict_of_times_of(before, after, a, b);
  verdict["tone"] = "bad";
  verdict["text"] = failed + ". " + verdict.at("text").get<std::string>();
  return verdict;
}

std::string end_of(const RunLog& log) { return log.ending.empty() ? "well, or not known" : log.ending; }
std::string safety_of(const RunLog& log) { return log.safety.empty() ? "not said" : log.safety; }
std::string iteration_of(const RunLog& log) { return log.iteration_hashes.empty() ? "none" : hash_of_iteration(log); }

// Which figures differ no more than iterations of one run do.
class Alike {
 public:
  Alike(const RunLog& before, const RunLog& after, const Figures& first, const Figures& second)
      : a_(before), b_(after), times_(spreads_of(before, after)), first_(first), second_(second) {}
  bool iterations() const { return meet(times_.a, times_.b); }
  bool on_demand() const { return met(false, &RunIteration::wall_ns); }
  bool waiting() const { return met(true, &RunIteration::stall_ns); }
  // Of runs as a whole, whose times differ by the same share.
  bool in_share(uint64_t a, uint64_t b) const {
    if (!iterations()) return false;
    const double most = share(play(times_.a, times_.b), std::max(first_.iteration_ns, second_.iteration_ns));
    return share(difference(a, b), std::max(a, b)) <= most;
  }

 private:
  bool met(bool planned, uint64_t RunIteration::*what) const {
    return meet(spread_of(a_, planned, what), spread_of(b_, planned, what));
  }

  const RunLog& a_;
  const RunLog& b_;
  Spreads times_;
  const Figures& first_;
  const Figures& second_;
};

Json unless(bool alike, Json row) { return alike ? without_judgement(std::move(row)) : row; }

// Figures beside each other, which are no better or worse for it.
Json row_if(bool comparable, Json row) {
  if (comparable) return row;
  row["change"] = "";
  return without_judgement(std::move(row));
}

}  // namespace

Json compare_data(const ComparedRun& before, const ComparedRun& after) {
  const RunLog& a = *before.log;
  const RunLog& b = *after.log;
  const Figures first = figures_of(a);
  const Figures second = figures_of(b);
  const Likeness likeness = are_of_two_programs(a, b) ? Likeness{false, false, false} : likeness_of(a, b);
  const bool judged = two_machines(a, b).empty() && not_known_work(a, b).empty();
  Json rows = Json::array();
  const auto add = [&](bool comparable, Json row) {
    row = row_if(comparable, std::move(row));
    rows.push_back(judged ? std::move(row) : without_judgement(std::move(row)));
  };
  const auto of_iterations = [&](Json row) { add(likeness.same_iteration, std::move(row)); };
  const auto of_planned = [&](Json row) {
    if (!first.planned) row["before"] = "";
    if (!second.planned) row["after"] = "";
    of_iterations(row_if(first.planned && second.planned, std::move(row)));
  };
  const auto of_runs = [&](Json row) { add(likeness.same_arguments && !likeness.hidden_arguments, std::move(row)); };
  rows.push_back(program_row(a, b));
  if (a.arguments && b.arguments) rows.push_back(text_row("Arguments", *a.arguments, *b.arguments));
  if (!failures(a, b).empty()) rows.push_back(text_row("Ended", end_of(a), end_of(b)));
  rows.push_back(chosen_row("Budget", a.budget_bytes, b.budget_bytes, Unit::bytes));
  of_iterations(figure_row("Peak device memory", peak_of_run(a), peak_of_run(b), Unit::bytes));
  if (!a.iteration_hashes.empty() || !b.iteration_hashes.empty()) {
    rows.push_back(text_row("Planned iteration, by its hash", iteration_of(a), iteration_of(b)));
  }
  const Alike alike(a, b, first, second);
  of_iterations(unless(alike.iterations(),
                       figure_row("Time per planned iteration", first.iteration_ns, second.iteration_ns, Unit::ns)));
  Json computing = Json::array();
  add_computing_rows(computing_of(a), computing_of(b), computing);
  for (Json& row : computing) of_iterations(unless(alike.iterations(), std::move(row)));
  of_iterations(unless(alike.on_demand(),
                       figure_row("Time per iteration on demand", first.on_demand_ns, second.on_demand_ns, Unit::ns)));
  of_runs(unless(alike.in_share(first.total_ns, second.total_ns),
                 figure_row("Time of the run", first.total_ns, second.total_ns, Unit::ns)));
  of_runs(unless(alike.in_share(first.before_plan_ns, second.before_plan_ns),
                 figure_row("Time before the plan", first.before_plan_ns, second.before_plan_ns, Unit::ns)));
  of_planned(unless(alike.waiting(),
                    figure_row("Waiting, per planned iteration", first.stall_ns, second.stall_ns, Unit::waited)));
  of_planned(figure_row("Moved, per planned iteration", first.moved_bytes, second.moved_bytes, Unit::moved));
  of_planned(figure_row("Memory-mapping calls, per planned iteration", first.vmm_calls, second.vmm_calls, Unit::count));
  of_runs(figure_row("Iterations by a plan", a.iterations_planned, b.iterations_planned, Unit::count, false));
  of_runs(figure_row("Iterations on demand", a.iterations_on_demand, b.iterations_on_demand, Unit::count));
  of_runs(figure_row("Divergences", a.divergence_count, b.divergence_count, Unit::count));
  rows.push_back(text_row("Policy", a.policy, b.policy));
  rows.push_back(text_row("Safety", safety_of(a), safety_of(b)));
  if (!a.device.empty() && !b.device.empty()) rows.push_back(text_row("Device", a.device, b.device));
  if (has_link(a) || has_link(b)) {
    Json row = text_row("Link, as measured", words_of(link_of(a)), words_of(link_of(b)));
    row["change"] = same_words(!are_far_apart(link_of(a), link_of(b)));
    rows.push_back(row_if(have_links(a, b), std::move(row)));
  }
  return {{"version", 2},
          {"compared", "runs"},
          {"program", names_of_programs(a, b)},
          {"verdict", verdict_of(a, b, first, second)},
          {"names", {before.name, after.name}},
          {"rows", std::move(rows)},
          {"before", iterations_of(a)},
          {"after", iterations_of(b)}};
}

std::string compare_summary(const Json& data) {
  const std::string verdict = data.at("verdict").at("text").get<std::string>();
  return data.contains("moves") ? verdict + " " + data.at("moves").at("text").get<std::string>() : verdict;
}

}  // namespace reprise::report
