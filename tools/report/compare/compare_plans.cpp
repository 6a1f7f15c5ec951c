#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "tools/cli/sizes.h"
#include "tools/report/compare/compare.h"
#include "tools/report/compare/rows.h"
#include "tools/report/log/links.h"
#include "tools/report/tensor_table.h"
#include "tools/report/view/timeline.h"
#include "tools/report/view/travels.h"
#include "tools/report/view/waits.h"

namespace reprise::report {
namespace {

constexpr size_t kMostRows = 5000;

// What both plans do with one tensor.
struct Pair {
  Travel a;
  Travel b;
};

uint64_t moved(const Travel& one) { return one.out_bytes + one.in_bytes; }

bool differ(const Pair& pair) {
  return pair.a.out_bytes != pair.b.out_bytes || pair.a.in_bytes != pair.b.in_bytes ||
         pair.a.spared_bytes != pair.b.spared_bytes || pair.a.dropped_bytes != pair.b.dropped_bytes;
}

std::vector<Pair> pairs_of(const plan::Plan& a, const plan::Plan& b) {
  const std::vector<Travel> first = travels_of(a);
  const std::vector<Travel> second = travels_of(b);
  std::vector<Pair> pairs;
  for (size_t i = 0; i < std::min(first.size(), second.size()); ++i) pairs.push_back({first[i], second[i]});
  return pairs;
}

struct Travellers {
  uint64_t count = 0;
  uint64_t bytes = 0;
  void add(uint64_t more) {
    ++count;
    bytes += more;
  }
  std::string words() const {
    return count == 0 ? "none" : fmt::format("{} ({} out and back)", count, tools::format_bytes(bytes));
  }
};

// "Tensors that travel, of 20: by A alone 3 (12.0 MiB out and back), by B alone none, by both 5."
std::string who_travels(const std::vector<Pair>& pairs) {
  Travellers only_a;
  Travellers only_b;
  uint64_t both = 0;
  for (const Pair& pair : pairs) {
    if (moved(pair.a) > 0 && moved(pair.b) > 0) {
      ++both;
    } else if (moved(pair.a) > 0) {
      only_a.add(moved(pair.a));
    } else if (moved(pair.b) > 0) {
      only_b.add(moved(pair.b));
    }
  }
  return fmt::format("Tensors that travel, of {}: by A alone {}, by B alone {}, by both {}.", pairs.size(),
                     only_a.words(), only_b.words(), both);
}

Json traffic(const Travel& one) { return {one.out_bytes, one.in_bytes, one.spared_bytes, one.dropped_bytes}; }

// Rows: [tensor in A, bytes, by A, by B, stack], where "by" is [out, in, left without a copy, computed again].
Json moves_of(const std::vector<Pair>& all, const std::vector<std::string>& sites) {
  std::vector<Pair> pairs;
  std::copy_if(all.begin(), all.end(), std::back_inserter(pairs), differ);
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& one, const Pair& two) {
    const uint64_t first = difference(moved(one.a), moved(one.b));
    const uint64_t second = difference(moved(two.a), moved(two.b));
    return first != second ? first > second : one.a.bytes > two.a.bytes;
  });
  const size_t others = pairs.size() > kMostRows ? pairs.size() - kMostRows : 0;
  pairs.resize(pairs.size() - others);
  Stacks stacks;
  Json rows = Json::array();
  for (const Pair& pair : pairs) {
    rows.push_back(
        {pair.a.tensor, pair.a.bytes, traffic(pair.a), traffic(pair.b), stacks.number_of(sites[pair.a.tensor])});
  }
  return {{"text", who_travels(all)}, {"rows", std::move(rows)}, {"stacks", stacks.take()}, {"others", others}};
}

// What is measured in microseconds varies more.
bool not_far(uint64_t a, uint64_t b) { return difference(a, b) <= 20'000 || 2 * std::min(a, b) >= std::max(a, b); }

bool same_rates(const plan::PlannedLink& a, const plan::PlannedLink& b) {
  return !are_far_apart(link_of(a), link_of(b));
}
bool same_link(const plan::PlannedLink& a, const plan::PlannedLink& b) {
  return same_rates(a, b) && not_far(a.latency_ns, b.latency_ns) && not_far(a.remap_ns_per_chunk, b.remap_ns_per_chunk);
}

uint64_t planned_peak(const plan::Plan& plan) { return collect_facts({nullptr, &plan}).peak_planned; }

uint64_t waiting_ns(const plan::Plan& plan) { return sum_waits(plan, predicted_timeline(plan)).transfer_ns; }

uint64_t travelling(const plan::Plan& plan) {
  const std::vector<Travel> all = travels_of(plan);
  return static_cast<uint64_t>(std::count_if(all.begin(), all.end(), [](const Travel& one) { return moved(one) > 0; }));
}

// What the program's own calls compute in an iteration, as recorded: that is no choice of a plan.
uint64_t recorded_ns(const plan::Plan& plan) {
  uint64_t sum = 0;
  for (const plan::Call& call : plan.calls) {
    if (call.kind == plan::CallKind::op && !call.inserted) sum += call.duration_ns;
  }
  return sum;
}

bool same_kernels(const plan::Plan& a, const plan::Plan& b) { return recorded_ns(a) == recorded_ns(b); }

// May what one takes more be all the kernels' doing? Times of two recordings that are far apart lead to other plans,
// too.
bool kernels_decide(const plan::Plan& a, const plan::Plan& b) {
  const uint64_t first = recorded_ns(a);
  const uint64_t second = recorded_ns(b);
  if (first == second) return false;
  return 10 * difference(first, second) > std::max(first, second) ||
         difference(a.predicted_ns, b.predicted_ns) <= difference(first, second);
}

Json rows_of(const ComparedPlan& before, const ComparedPlan& after) {
  const plan::Plan& a = *before.plan;
  const plan::Plan& b = *after.plan;
  const Spared first = spared_by(a);
  const Spared second = spared_by(b);
  const bool by_times = !same_link(a.link, b.link) && same_rates(a.link, b.link);
  Json rows = Json::array();
  // What follows from the link says nothing of the plans where they have two.
  const auto of_link = [&](Json row) {
    rows.push_back(same_link(a.link, b.link) ? std::move(row) : without_judgement(std::move(row)));
  };
  const auto of_times = [&](Json row) { of_link(kernels_decide(a, b) ? without_judgement(std::move(row)) : row); };
  rows.push_back(text_row("Program", a.program, b.program));
  rows.push_back(text_row("Policy", a.policy, b.policy));
  rows.push_back(chosen_row("Budget", a.budget_bytes, b.budget_bytes, Unit::bytes));
  rows.push_back(figure_row("Device memory", planned_peak(a), planned_peak(b), Unit::bytes));
  of_times(figure_row("Time per iteration, predicted", a.predicted_ns, b.predicted_ns, Unit::ns));
  if (before.bound_ns > 0 || after.bound_ns > 0) {
    rows.push_back(chosen_row("Bound: no plan for the budget is faster", before.bound_ns, after.bound_ns, Unit::ns));
  }
  rows.push_back(chosen_row("Computing alone", a.compute_ns, b.compute_ns, Unit::ns));
  of_times(figure_row("Waiting for transfers, predicted", waiting_ns(a), waiting_ns(b), Unit::ns));
  of_link(figure_row("Tensors that travel", travelling(a), travelling(b), Unit::count));
  of_link(figure_row("Offloaded", a.offload_bytes, b.offload_bytes, Unit::moved));
  of_link(figure_row("Reloaded", a.reload_bytes, b.reload_bytes, Unit::moved));
  if (first.clean_bytes + second.clean_bytes > 0) {
    rows.push_back(chosen_row("Left without a copy", first.clean_bytes, second.clean_bytes, Unit::moved));
  }
  if (first.launches + second.launches > 0) {
    rows.push_back(chosen_row("Dropped and computed again", first.dropped_bytes, second.dropped_bytes, Unit::moved));
    rows.push_back(chosen_row("Launches for that", first.launches, second.launches, Unit::count));
  }
  rows.push_back(text_row("Safety", plan::name_of(a.safety), plan::name_of(b.safety)));
  // A plan counts those of remaps; a strict one maps with each move, too.
  if (a.safety == plan::Safety::trusted && b.safety == plan::Safety::trusted) {
    of_link(figure_row("Memory-mapping calls", a.remap_count, b.remap_count, Unit::count));
  }
  rows.push_back(text_row("Link that it is for", words_of(a.link, by_times), words_of(b.link, by_times)));
  return rows;
}

Json verdict_of(const plan::Plan& a, const plan::Plan& b) {
  if (a.predicted_ns == 0 || b.predicted_ns == 0) {
    return {{"tone", "note"}, {"text", "The plans predict no times: their recording has none."}};
  }
  Json verdict = verdict_of_times("By B an iteration is predicted to take", "by A", a.predicted_ns, b.predicted_ns,
                                  memory_words(planned_peak(a), planned_peak(b)));
  constexpr const char* kNeither = ", so neither is better for its times";
  std::string rests_on;
  if (a.safety != b.safety) {
    rests_on = fmt::format("The plans promise different things, A is for --safety {}, B for {}. ",
                           plan::name_of(a.safety), plan::name_of(b.safety));
  }
  if (!same_link(a.link, b.link)) {
    const bool by_times = same_rates(a.link, b.link);
    rests_on += fmt::format("The plans are for different links, A for {}, B for {}{}. ", words_of(a.link, by_times),
                            words_of(b.link, by_times), kNeither);
  }
  if (!same_kernels(a, b)) {
    rests_on += fmt::format(
        "The plans rest on different kernel times, as those of two recordings: computing alone takes {} by those of A, "
        "{} by those of B{}. ",
        tools::format_duration(recorded_ns(a)), tools::format_duration(recorded_ns(b)),
        kernels_decide(a, b) ? kNeither : "");
  }
  if (!same_link(a.link, b.link) || kernels_decide(a, b) || a.safety != b.safety) {
    verdict = without_judgement(std::move(verdict));
  }
  verdict["text"] = rests_on + verdict.at("text").get<std::string>();
  return verdict;
}

}  // namespace

Json compare_data(const ComparedPlan& before, const ComparedPlan& after, const trace::Trace* trace) {
  const Inputs inputs{trace, before.plan};
  return {{"version", 2},
          {"compared", "plans"},
          {"program", after.plan->program},
          {"verdict", verdict_of(*before.plan, *after.plan)},
          {"names", {before.name, after.name}},
          {"rows", rows_of(before, after)},
          {"moves", moves_of(pairs_of(*before.plan, *after.plan), tensor_sites(inputs))},
          {"passing_on", passing_on_section(inputs)}};
}

}  // namespace reprise::report
