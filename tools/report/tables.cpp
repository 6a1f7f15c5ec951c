// The sections that the page shows as tables.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "tools/cli/sizes.h"
#include "tools/report/report.h"
#include "tools/report/residency.h"
#include "tools/report/timeline.h"

namespace reprise::report {
namespace {

using tools::format_bytes;
using tools::format_duration;

constexpr size_t kMostRows = 200;

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
  uint64_t count = 0;
  uint64_t bytes = 0;  // of all its allocations
  uint64_t largest = 0;
  uint64_t live = 0;
  uint64_t peak = 0;  // of those alive at the same time
};

std::map<uint32_t, SiteSum> site_sums(const trace::Trace& trace) {
  std::map<uint32_t, SiteSum> sums;
  std::unordered_map<uint64_t, std::pair<uint32_t, uint64_t>> live;
  for (const trace::Event& event : trace.events) {
    if (const auto* allocate = std::get_if<trace::Allocate>(&event)) {
      const trace::AllocateRecord& record = allocate->record;
      SiteSum& sum = sums[record.call_site];
      ++sum.count;
      sum.bytes += record.size;
      sum.largest = std::max(sum.largest, record.size);
      sum.live += record.size;
      sum.peak = std::max(sum.peak, sum.live);
      live[record.allocation] = {record.call_site, record.size};
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
  uint64_t vmm = 0;
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
    sum.vmm += it.vmm_calls;
  }
  if (sum.count == 0) return sum;
  for (uint64_t* each : {&sum.offload, &sum.reload, &sum.spared, &sum.dropped, &sum.repeated, &sum.stall, &sum.vmm}) {
    *each /= sum.count;
  }
  return sum;
}

// What the plan leaves to comparisons and to recompute.
struct Spared {
  uint64_t clean_bytes = 0;
  uint64_t dropped_bytes = 0;
  uint64_t launches = 0;
  uint64_t launch_ns = 0;
};

Spared spared_by(const plan::Plan& plan) {
  Spared spared;
  for (const plan::Vertex& vertex : plan.vertices) {
    if (vertex.clean) spared.clean_bytes += plan.tensors[vertex.tensor].size;
  }
  for (const plan::Tensor& tensor : plan.tensors) {
    if (tensor.recompute_of != plan::kNone) spared.dropped_bytes += tensor.size;
  }
  for (const plan::Call& call : plan.calls) {
    if (call.recompute_of == plan::kNone) continue;
    ++spared.launches;
    spared.launch_ns += call.duration_ns;
  }
  return spared;
}

std::string percent_of_bound(uint64_t bound_ns, uint64_t time_ns) {
  if (bound_ns == 0 || time_ns == 0) return "";
  return fmt::format("{:.1f} %", 100 * static_cast<double>(bound_ns) / static_cast<double>(time_ns));
}

std::string transfers(const plan::Plan& plan, plan::VertexKind kind) {
  const auto count = std::count_if(plan.vertices.begin(), plan.vertices.end(),
                                   [kind](const plan::Vertex& vertex) { return vertex.kind == kind && !vertex.clean; });
  return fmt::format("{} transfer{}", count, count == 1 ? "" : "s");
}

}  // namespace

Json totals_section(const Inputs& inputs) {
  if (inputs.plan == nullptr) return nullptr;
  const plan::Plan& plan = *inputs.plan;
  const Facts facts = collect_facts(inputs);
  const PlannedAverage run = planned_average(inputs);
  const bool ran = run.count > 0;
  const auto bytes = [&](uint64_t value) { return ran ? format_bytes(value) : std::string(); };
  uint64_t predicted_stall = 0;
  for (const Wait& wait : longest_waits(plan, predicted_timeline(plan), 1, plan.vertices.size())) {
    if (wait.transfer) predicted_stall += wait.time.end_ns - wait.time.start_ns;
  }
  Json rows = Json::array();
  rows.push_back(total("Time", format_duration(plan.predicted_ns),
                       facts.actual_ns > 0 ? format_duration(facts.actual_ns) : "",
                       "median of the planned iterations"));
  rows.push_back(total("Computing alone", format_duration(plan.compute_ns), "", "as recorded"));
  rows.push_back(total("Speed against computing alone", percent_of_bound(plan.compute_ns, plan.predicted_ns),
                       percent_of_bound(plan.compute_ns, facts.actual_ns), "100 %: every transfer hides"));
  if (facts.bound_ns > 0) {
    rows.push_back(total("Bound", format_duration(facts.bound_ns), "", "no plan for this budget is faster"));
    rows.push_back(total("Speed against the bound", percent_of_bound(facts.bound_ns, plan.predicted_ns),
                         percent_of_bound(facts.bound_ns, facts.actual_ns)));
  }
  rows.push_back(
      total("Waiting for transfers", format_duration(predicted_stall), ran ? format_duration(run.stall) : ""));
  rows.push_back(total("Offloaded", format_bytes(plan.offload_bytes), bytes(run.offload),
                       transfers(plan, plan::VertexKind::offload)));
  rows.push_back(
      total("Reloaded", format_bytes(plan.reload_bytes), bytes(run.reload), transfers(plan, plan::VertexKind::reload)));
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
  rows.push_back(total("Memory-mapping calls", fmt::format("{}", plan.remap_count),
                       ran ? fmt::format("{}", run.vmm) : "", "in the steady state"));
  rows.push_back(total("Device memory", format_bytes(facts.peak_planned),
                       facts.peak_actual > 0 ? format_bytes(facts.peak_actual) : "",
                       fmt::format("budget {}", format_bytes(facts.budget))));
  rows.push_back(total("Smallest budget with a plan", format_bytes(plan.minimum_bytes), "",
                       "largest working set and what is reserved"));
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
  Json rows = Json::array();
  for (const auto& [name, sum] : sums) {
    if (rows.size() >= kMostRows) break;
    rows.push_back({{"name", name},
                    {"calls", sum.calls},
                    {"total_ns", sum.total_ns},
                    {"share", whole == 0 ? 0.0 : static_cast<double>(sum.total_ns) / static_cast<double>(whole)}});
  }
  return rows;
}

Json sites_section(const Inputs& inputs) {
  Json rows = Json::array();
  if (inputs.trace == nullptr) return rows;
  const auto sums = site_sums(*inputs.trace);
  std::vector<std::pair<uint32_t, SiteSum>> sorted(sums.begin(), sums.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.peak > b.second.peak; });
  for (const auto& [site, sum] : sorted) {
    if (rows.size() >= 50) break;
    const bool known = site > 0 && site <= inputs.trace->call_sites.size();
    rows.push_back({{"stack", known ? inputs.trace->call_sites[site - 1] : "(not recorded)"},
                    {"count", sum.count},
                    {"bytes", sum.bytes},
                    {"largest", sum.largest},
                    {"peak", sum.peak}});
  }
  return rows;
}

Json iterations_section(const Inputs& inputs) {
  Json rows = Json::array();
  if (inputs.log == nullptr) return rows;
  for (const RunIteration& it : inputs.log->iterations) {
    if (rows.size() >= 5000) break;
    rows.push_back(
        {it.index, it.planned ? 1 : 0, it.wall_ns, it.stall_ns, it.offload_bytes, it.reload_bytes, it.vmm_calls});
  }
  return rows;
}

Json divergences_section(const Inputs& inputs) {
  Json rows = Json::array();
  if (inputs.log == nullptr) return rows;
  for (const RunDivergence& one : inputs.log->divergences) {
    if (rows.size() >= kMostRows) break;
    rows.push_back({{"iteration", one.iteration},
                    {"call", one.call},
                    {"expected", demangle(one.expected)},
                    {"got", one.got.empty() ? one.reason : demangle(one.got)},
                    {"then", one.resumed ? fmt::format("by the plan again from iteration {} on", *one.resumed)
                                         : "on demand until the end"}});
  }
  return rows;
}

Json unmanaged_section(const Inputs& inputs) {
  std::map<std::string, std::pair<uint64_t, uint64_t>> sums;
  if (inputs.trace != nullptr) {
    for (const trace::Event& event : inputs.trace->events) {
      const auto* allocate = std::get_if<trace::Allocate>(&event);
      if (allocate == nullptr) continue;
      const trace::Origin origin = allocate->record.origin;
      const char* what = origin == trace::Origin::managed  ? "managed memory (moves by page faults of its own)"
                         : origin == trace::Origin::global ? "variables of modules (their address is fixed)"
                                                           : nullptr;
      if (what == nullptr) continue;
      ++sums[what].first;
      sums[what].second += allocate->record.size;
    }
  }
  if (inputs.log != nullptr) {
    for (const RunUnmanaged& one : inputs.log->unmanaged) {
      sums[one.what].first += one.count;
      sums[one.what].second += one.bytes;
    }
  }
  Json rows = Json::array();
  for (const auto& [what, sum] : sums) rows.push_back({{"what", what}, {"count", sum.first}, {"bytes", sum.second}});
  return rows;
}

}  // namespace reprise::report
