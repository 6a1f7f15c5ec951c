// The sections that the page shows as tables.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "analyzer/plan/vertex_kinds.h"
#include "tools/cli/run_log_value.h"
#include "tools/cli/sizes.h"
#include "tools/report/log/demangle.h"
#include "tools/report/log/links.h"
#include "tools/report/report.h"
#include "tools/report/sentences.h"
#include "tools/report/view/residency.h"
#include "tools/report/view/thin.h"
#include "tools/report/view/timeline.h"
#include "tools/report/view/travels.h"
#include "tools/report/view/waits.h"

namespace reprise::report {
namespace {

using tools::format_bytes;
using tools::format_duration;

// More are summed up in a last row, or in groups.
constexpr size_t kMostRows = 200;
constexpr size_t kMostIterations = 4000;

struct KernelSum {
  uint64_t calls = 0;
  uint64_t total_ns = 0;
};

std::map<std::string, KernelSum> kernel_sums(const Inputs& inputs) {
  std::map<std::string, KernelSum> sums;
  if (inputs.plan != nullptr) {
    for (const plan::Call& call : inputs.plan->calls) {
      if (call.kind != plan::CallKind::op) continue;
      KernelSum& sum = sums[op_name(call.op, call.name)];
      ++sum.calls;
      sum.total_ns += call.duration_ns;
    }
  } else if (inputs.trace != nullptr) {
    for (const Bar& bar : recorded_timeline(*inputs.trace).bars) {
      KernelSum& sum = sums[bar.name];
      ++sum.calls;
      sum.total_ns += bar.time.end_ns - bar.time.start_ns;
    }
  }
  return sums;
}

struct SiteSum {
  const trace::AllocateRecord* first = nullptr;
  uint64_t count = 0;
  uint64_t bytes = 0;  // of all its allocations
  uint64_t largest = 0;
  uint64_t live = 0;
  uint64_t peak = 0;  // of those alive at the same time
};

// Without a call site those of a pause of the recording stand by themselves: it is why.
using SiteKey = std::pair<uint32_t, bool>;
SiteKey key_of(const trace::AllocateRecord& record) {
  return {record.call_site, record.call_site == 0 && (record.header.flags & trace::kCaughtUp) != 0};
}

std::map<SiteKey, SiteSum> site_sums(const trace::Trace& trace) {
  std::map<SiteKey, SiteSum> sums;
  std::unordered_map<uint64_t, std::pair<SiteKey, uint64_t>> live;
  for (const trace::Event& event : trace.events) {
    if (const auto* allocate = std::get_if<trace::Allocate>(&event)) {
      const trace::AllocateRecord& record = allocate->record;
      SiteSum& sum = sums[key_of(record)];
      if (sum.first == nullptr) sum.first = &record;
      ++sum.count;
      sum.bytes += record.size;
      sum.largest = std::max(sum.largest, record.size);
      sum.live += record.size;
      sum.peak = std::max(sum.peak, sum.live);
      live[record.allocation] = {key_of(record), record.size};
    } else if (const auto* release = std::get_if<trace::Free>(&event)) {
      const auto found = live.find(release->record.allocation);
      if (found == live.end()) continue;
      sums[found->second.first].live -= found->second.second;
      live.erase(found);
    }
  }
  return sums;
}

// A row of the totals: what, predicted, measured.
Json total(const std::string& label, const std::string& predicted, const std::string& measured,
           const std::string& note = "") {
  return {{"label", label}, {"predicted", predicted}, {"measured", measured}, {"note", note}};
}

struct PlannedAverage {
  uint64_t count = 0;
  uint64_t offload = 0;
  uint64_t reload = 0;
  uint64_t spared = 0;
  uint64_t dropped = 0;
  uint64_t repeated = 0;
  uint64_t stall = 0;
  double vmm = 0;
};

PlannedAverage planned_average(const Inputs& inputs) {
  PlannedAverage sum;
  if (inputs.log == nullptr) return sum;
  for (const RunIteration& it : inputs.log->iterations) {
    if (!it.planned) continue;
    ++sum.count;
    sum.offload += it.offload_bytes;
    sum.reload += it.reload_bytes;
    sum.spared += it.spared_bytes;
    sum.dropped += it.dropped_bytes;
    sum.repeated += it.repeated_launches;
    sum.stall += it.stall_ns;
    sum.vmm += static_cast<double>(it.vmm_calls);
  }
  if (sum.count == 0) return sum;
  for (uint64_t* each : {&sum.offload, &sum.reload, &sum.spared, &sum.dropped, &sum.repeated, &sum.stall}) {
    *each /= sum.count;
  }
  sum.vmm /= static_cast<double>(sum.count);
  return sum;
}

std::string transfers(const plan::Plan& plan, bool (*of_kind)(plan::VertexKind)) {
  const auto count = std::count_if(plan.vertices.begin(), plan.vertices.end(), [of_kind](const plan::Vertex& vertex) {
    return of_kind(vertex.kind) && !vertex.clean;
  });
  return fmt::format("predicted: {} transfer{}", count, count == 1 ? "" : "s");
}

// What was measured is of all planned iterations, also where one was sampled for times.
std::string mean_of(const PlannedAverage& run) {
  if (run.count == 0) return "";
  return run.count == 1 ? "; measured: the planned iteration"
                        : fmt::format("; measured: mean of {} planned iterations", run.count);
}

// Plans count the mapping of chunks that change hands. Strict safety maps with each move, whatever the plan says.
Json mapping_row(const Inputs& inputs, const PlannedAverage& run) {
  const bool predicted =
      inputs.log == nullptr || inputs.log->safety.empty() || tools::says(inputs.log->safety, run_log::start::trusted);
  const std::string note = inputs.log == nullptr ? "with --safety trusted; strict maps with each move besides"
                           : predicted           ? "in the steady state"
                                                 : "each move maps where kernels may reach it unseen";
  return total("Memory-mapping calls", predicted ? fmt::format("{}", inputs.plan->remap_count) : "",
               run.count > 0 ? fmt::format("{:.{}f}", run.vmm, run.vmm == std::floor(run.vmm) ? 0 : 1) : "",
               note + mean_of(run));
}

uint64_t wait_of(const TimeParts& time, const std::string& cause) {
  const auto found =
      std::find_if(time.waits.begin(), time.waits.end(), [&](const WaitSum& one) { return one.what == cause; });
  return found == time.waits.end() ? 0 : found->ns;
}

// Times are of a link. Columns of two say nothing of each other.
void add_link(const Inputs& inputs, Json& rows) {
  const std::string note = is_plan_for_another_link(inputs)
                               ? fmt::format("{}: times that are predicted and measured are not compared", kFarApart)
                               : "that the plan is for, and that the run had, by the fastest of many short copies; a "
                                 "busy host measures less";
  rows.push_back(
      total("Link", words_of(inputs.plan->link), inputs.log == nullptr ? "" : words_of(link_of(*inputs.log)), note));
}

// Where one iteration's time went, predicted and measured: each column adds up to its last row.
void add_time_parts(const Inputs& inputs, Json& rows) {
  const TimeParts predicted = predicted_parts(*inputs.plan);
  const std::optional<TimeParts> measured = measured_time(inputs);
  const std::string note = measured ? fmt::format("measured: in iteration {}", measured->iteration) : "";
  const auto row = [&](const std::string& label, uint64_t predicted_ns, uint64_t measured_ns, const std::string& what) {
    rows.push_back(total(label, format_duration(predicted_ns), measured ? format_duration(measured_ns) : "",
                         what.empty() || note.empty() ? what + note : what + "; " + note));
  };
  const TimeParts none;
  const TimeParts& seen = measured ? *measured : none;
  row("Kernels", predicted.kernels_ns, seen.kernels_ns, "something computes, on however many streams");
  std::set<std::string> named;
  for (const std::vector<WaitSum>* list : {&predicted.waits, &seen.waits}) {
    for (const WaitSum& one : *list) {
      if (!named.insert(one.what).second) continue;
      row("Waiting: " + one.what, wait_of(predicted, one.what), wait_of(seen, one.what), "nothing computes");
    }
  }
  row("Rest", predicted.rest_ns, seen.rest_ns, kRest);
  row("Sum: this iteration", predicted.whole_ns, seen.whole_ns, "");
  if (measured) rows.back()["note"] = "measured: in " + the_measured_one(inputs);
}

Json site_row(const std::string& stack, const SiteSum& sum) {
  return {{"stack", stack}, {"count", sum.count}, {"bytes", sum.bytes}, {"largest", sum.largest}, {"peak", sum.peak}};
}

}  // namespace

Json totals_section(const Inputs& inputs) {
  if (inputs.plan == nullptr) return nullptr;
  const plan::Plan& plan = *inputs.plan;
  const Facts facts = collect_facts(inputs);
  const PlannedAverage run = planned_average(inputs);
  const bool ran = run.count > 0;
  const auto bytes = [&](uint64_t value) { return ran ? format_bytes(value) : std::string(); };
  Json rows = Json::array();
  add_link(inputs, rows);
  rows.push_back(total("Time", format_duration(plan.predicted_ns),
                       facts.actual_ns > 0 ? format_duration(facts.actual_ns) : "",
                       "predicted " + with_whose_times(inputs) + "; measured: median of the planned iterations"));
  const bool own = facts.run_compute_ns > 0;
  const std::string whose = own ? "measured: in " + the_measured_one(inputs) : with_whose_times(inputs);
  const auto measured = [](uint64_t ns) { return ns > 0 ? format_duration(ns) : std::string(); };
  rows.push_back(total("Computing alone", format_duration(plan.compute_ns), measured(facts.run_compute_ns),
                       "the program's kernels and its own copies; " + whose));
  rows.push_back(total("Speed against computing alone", predicted_speed(plan.compute_ns, plan.predicted_ns),
                       measured_speed(facts, facts.run_compute_ns),
                       "100 %: every transfer hides" + (own ? "; " + whose : "")));
  if (const uint64_t bound_ns = inputs.made_predicted_ns > 0 ? facts.run_bound_ns : facts.bound_ns; bound_ns > 0) {
    const bool elsewhere = is_recording_of_another_link(inputs);
    const std::string where = elsewhere ? " on a link of " + words_of(inputs.recorded_link) : "";
    const uint64_t of_run_ns = elsewhere ? 0 : facts.run_bound_ns;
    const std::string whose_bound = of_run_ns > 0 ? whose : with_whose_times(inputs);
    rows.push_back(total("Bound", format_duration(bound_ns), measured(of_run_ns),
                         fmt::format("no plan for this budget is faster{}; {}", where, whose_bound)));
    rows.push_back(total("Speed against the bound", predicted_speed(bound_ns, plan.predicted_ns),
                         measured_speed(facts, of_run_ns), of_run_ns > 0 ? whose : ""));
  }
  add_time_parts(inputs, rows);
  if (ran) {
    rows.push_back(total("Device without work that may run", "", format_duration(run.stall),
                         "by the host's clock, though work was submitted" + mean_of(run)));
  }
  rows.push_back(total("Offloaded", format_bytes(plan.offload_bytes), bytes(run.offload),
                       transfers(plan, plan::copies_out) + mean_of(run)));
  rows.push_back(total("Reloaded", format_bytes(plan.reload_bytes), bytes(run.reload),
                       transfers(plan, plan::copies_in) + mean_of(run)));
  const Spared spared = spared_by(plan);
  if (spared.clean_bytes + run.spared > 0) {
    rows.push_back(total("Left without a copy", format_bytes(spared.clean_bytes), bytes(run.spared),
                         "the host had the same bytes; compared each time"));
  }
  if (spared.launches + run.repeated > 0) {
    rows.push_back(total("Dropped and computed again", format_bytes(spared.dropped_bytes), bytes(run.dropped),
                         "bytes that move neither way"));
    rows.push_back(total("Launches for that", fmt::format("{}, {}", spared.launches, format_duration(spared.launch_ns)),
                         ran ? fmt::format("{}", run.repeated) : "", "with the digests that guard them"));
  }
  rows.push_back(mapping_row(inputs, run));
  rows.push_back(total("Device memory", format_bytes(facts.peak_planned),
                       facts.peak_actual > 0 ? format_bytes(facts.peak_actual) : "", budget_words(inputs)));
  rows.push_back(total("Smallest budget with a plan", format_bytes(plan.minimum_bytes), "",
                       "largest working set of what was recorded, and what is reserved"));
  return rows;
}

Json kernels_section(const Inputs& inputs) {
  std::vector<std::pair<std::string, KernelSum>> sums;
  uint64_t whole = 0;
  for (const auto& entry : kernel_sums(inputs)) {
    sums.push_back(entry);
    whole += entry.second.total_ns;
  }
  std::stable_sort(sums.begin(), sums.end(),
                   [](const auto& a, const auto& b) { return a.second.total_ns > b.second.total_ns; });
  const auto row = [whole](const std::string& name, const KernelSum& sum) {
    return Json{{"name", name},
                {"calls", sum.calls},
                {"total_ns", sum.total_ns},
                {"share", whole == 0 ? 0.0 : static_cast<double>(sum.total_ns) / static_cast<double>(whole)}};
  };
  Json rows = Json::array();
  KernelSum rest;
  for (const auto& [name, sum] : sums) {
    if (rows.size() < kMostRows) {
      rows.push_back(row(name, sum));
      continue;
    }
    rest.calls += sum.calls;
    rest.total_ns += sum.total_ns;
  }
  if (rest.calls > 0) rows.push_back(row(fmt::format("{} other kernels", sums.size() - kMostRows), rest));
  return rows;
}

Json sites_section(const Inputs& inputs) {
  Json rows = Json::array();
  if (inputs.trace == nullptr) return rows;
  const auto sums = site_sums(*inputs.trace);
  std::vector<std::pair<SiteKey, SiteSum>> sorted(sums.begin(), sums.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.peak > b.second.peak; });
  SiteSum rest;
  for (const auto& [key, sum] : sorted) {
    if (rows.size() < kMostRows) {
      rows.push_back(site_row(call_site_words(*inputs.trace, *sum.first), sum));
      continue;
    }
    rest.count += sum.count;
    rest.bytes += sum.bytes;
    rest.largest = std::max(rest.largest, sum.largest);
    rest.peak += sum.peak;  // at most: they need not have peaked together
  }
  if (rest.count > 0) {
    rows.push_back(site_row(fmt::format("{} other call sites, at most", sorted.size() - kMostRows), rest));
  }
  return rows;
}

// Many iterations are summed up in groups of one mode; nothing is left out. A row's fourth value is a RunMode.
Json iterations_section(const Inputs& inputs) {
  Json rows = Json::array();
  if (inputs.log == nullptr) return rows;
  for (const ThinIteration& it : thinned(*inputs.log, kMostIterations)) {
    const auto known = [&](uint64_t value) { return it.counted ? Json(value) : Json(nullptr); };
    rows.push_back({it.first, it.last, it.count, static_cast<int>(it.mode), it.median_ns, it.least_ns, it.most_ns,
                    known(it.stall_ns / it.count), known(it.offload_bytes / it.count),
                    known(it.reload_bytes / it.count), known(it.vmm_calls)});
  }
  return rows;
}

// [mode, iterations, median, least, most], on demand first.
Json modes_section(const Inputs& inputs) {
  Json rows = Json::array();
  if (inputs.log == nullptr) return rows;
  for (const ThinIteration& it : sums_by_mode(*inputs.log)) {
    rows.push_back({static_cast<int>(it.mode), it.count, it.median_ns, it.least_ns, it.most_ns});
  }
  return rows;
}

Json in_force_section(const Inputs& inputs) {
  Json rows = Json::array();
  if (inputs.log == nullptr) return rows;
  const RunPlans& plans = inputs.log->plans;
  const auto is_among = [](const std::vector<uint64_t>& all, uint64_t one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  std::vector<uint64_t> known;  // as they are shown
  for (const RunInForce& one : plans.in_force) {
    const uint64_t shown = one.number < plans.numbers.size() ? plans.numbers[one.number] : one.number;
    const char* const what = is_among(plans.kept_ones, one.number)  ? "kept"
                             : is_among(plans.replaced, one.number) ? "first"
                             : is_among(known, shown)               ? "better"
                                                                    : "plan";
    known.push_back(shown);
    rows.push_back({one.iteration, shown, what});
  }
  return rows;
}

namespace {

struct SameDivergences {
  const RunDivergence* first = nullptr;
  uint64_t last = 0;  // iteration
  uint64_t count = 0;
  uint64_t resumed = 0;
};

// In order of their first one. A program that leaves its plan in the same way each time has one row.
std::vector<SameDivergences> same_divergences(const RunLog& log) {
  std::map<std::tuple<uint64_t, std::string, std::string, std::string, std::string>, size_t> known;
  std::vector<SameDivergences> groups;
  for (const RunDivergence& one : log.divergences) {
    const auto [at, added] =
        known.emplace(std::tuple(one.call, one.expected, one.got, one.difference, one.reason), groups.size());
    if (added) groups.push_back({&one});
    SameDivergences& group = groups[at->second];
    group.last = one.iteration;
    ++group.count;
    if (one.resumed) ++group.resumed;
  }
  return groups;
}

std::string what_then(const SameDivergences& group) {
  const RunDivergence& first = *group.first;
  if (group.count == 1) {
    return first.resumed ? fmt::format("by the plan again from iteration {} on", *first.resumed)
                         : "on demand until the end";
  }
  return fmt::format("{} of {} times by the plan again later", group.resumed, group.count);
}

}  // namespace

Json divergences_section(const Inputs& inputs) {
  Json rows = Json::array();
  if (inputs.log == nullptr) return rows;
  const std::vector<SameDivergences> groups = same_divergences(*inputs.log);
  uint64_t others = 0;
  for (const SameDivergences& group : groups) {
    const RunDivergence& one = *group.first;
    if (rows.size() == kMostRows) {
      others += group.count;
      continue;
    }
    rows.push_back({{"iteration", one.iteration},
                    {"last", group.last},
                    {"count", group.count},
                    {"call", one.call},
                    {"expected", demangle(one.expected)},
                    {"got", one.got.empty() ? one.reason : demangle(one.got) + difference_of(one)},
                    {"then", what_then(group)}});
  }
  if (others > 0) {
    rows.push_back({{"iteration", groups[kMostRows].first->iteration},
                    {"last", groups.back().last},
                    {"count", others},
                    {"call", 0},
                    {"expected", fmt::format("{} other sorts of divergence", groups.size() - kMostRows)},
                    {"got", "the run log has each of them"},
                    {"then", ""}});
  }
  return rows;
}

namespace {

using Sums = std::map<std::string, std::pair<uint64_t, uint64_t>>;  // by kind: how many, the most bytes at once

constexpr std::string_view kUnmanaged = "unmanaged.";  // what a recording without a budget says of a kind

// What calls made around Reprise the recording's end tells, or the run's log.
bool add_told(const Inputs& inputs, Sums* sums) {
  if (inputs.log != nullptr) {
    for (const RunUnmanaged& one : inputs.log->unmanaged) {
      (*sums)[one.what].first += one.count;
      (*sums)[one.what].second += one.bytes;
    }
    return !inputs.log->unmanaged.empty();
  }
  bool any = false;
  for (const auto& [key, value] : inputs.trace->info) {
    unsigned long long count = 0;
    unsigned long long bytes = 0;
    if (key.rfind(kUnmanaged, 0) != 0 || std::sscanf(value.c_str(), "%llu %llu", &count, &bytes) != 2) continue;
    (*sums)[key.substr(kUnmanaged.size())] = {count, bytes};
    any = true;
  }
  return any;
}

void add_recorded(const trace::Trace& trace, trace::Origin origin, const char* what, Sums* sums) {
  for (const trace::Event& event : trace.events) {
    const auto* allocate = std::get_if<trace::Allocate>(&event);
    if (allocate == nullptr || allocate->record.origin != origin) continue;
    ++(*sums)[what].first;
    (*sums)[what].second += allocate->record.size;
  }
}

}  // namespace

Json unmanaged_section(const Inputs& inputs) {
  Sums sums;
  const bool told = (inputs.log != nullptr || inputs.trace != nullptr) && add_told(inputs, &sums);
  if (inputs.trace != nullptr) {
    add_recorded(*inputs.trace, trace::Origin::global, "variables of modules (their address is fixed)", &sums);
    if (!told) {
      add_recorded(*inputs.trace, trace::Origin::managed, "managed memory (moves by page faults of its own)", &sums);
    }
  }
  Json rows = Json::array();
  for (const auto& [what, sum] : sums) rows.push_back({{"what", what}, {"count", sum.first}, {"bytes", sum.second}});
  return rows;
}

}  // namespace reprise::report
