// Where the time went: of the whole run, and of one iteration.
#include "tools/report/report.h"
#include "tools/report/view/timeline.h"
#include "tools/report/view/waits.h"

namespace reprise::report {
namespace {

Json part(const char* what, uint64_t ns, const char* style) { return {{"what", what}, {"ns", ns}, {"style", style}}; }

Json run_parts(const RunLog& log, const Facts& facts) {
  Json parts = Json::array();
  if (facts.total_ns == 0) return parts;
  uint64_t planned = 0;
  uint64_t stall = 0;
  for (const RunIteration& it : log.iterations) {
    if (!it.planned) continue;
    planned += it.wall_ns;
    stall += it.stall_ns;
  }
  const uint64_t known = facts.before_plan_ns + planned;
  parts.push_back(part("before the plan: set-up and on demand", facts.before_plan_ns, "before"));
  parts.push_back(part("planned iterations, without waiting", planned - std::min(stall, planned), "compute"));
  parts.push_back(part("planned iterations, the device waiting", stall, "wait"));
  if (facts.total_ns > known) {
    parts.push_back(part(facts.before_plan_ns == 0 ? "on demand" : "away from the plan: on demand, and the end",
                         facts.total_ns - known, "resident"));
  }
  return parts;
}

Json iteration_parts(const plan::Plan& plan, const Timeline& timeline) {
  const Busy busy = busy_time(timeline);
  const WaitSums sums = sum_waits(plan, timeline);
  Json parts = Json::array();
  parts.push_back(part("computing", busy.compute_ns, "compute"));
  parts.push_back(part("waiting for transfers", sums.transfer_ns, "wait"));
  parts.push_back(part("other gaps: launched late, other streams", sums.total_ns - sums.transfer_ns, "before"));
  const uint64_t known = busy.compute_ns + sums.total_ns;
  if (timeline.span_ns > known) {
    parts.push_back(part("copies behind the last kernel", timeline.span_ns - known, "to-host"));
  }
  return parts;
}

}  // namespace

Json time_went_section(const Inputs& inputs) {
  Json bars = Json::array();
  if (inputs.log != nullptr) {
    const Facts facts = collect_facts(inputs);
    Json parts = run_parts(*inputs.log, facts);
    if (!parts.empty()) bars.push_back({{"name", "The run"}, {"ns", facts.total_ns}, {"parts", std::move(parts)}});
  }
  if (inputs.plan == nullptr) return bars;
  if (inputs.log != nullptr) {
    const Timeline measured = measured_timeline(*inputs.plan, *inputs.log);
    if (!measured.bars.empty()) {
      bars.push_back({{"name", "An iteration: " + measured.name},
                      {"ns", measured.span_ns},
                      {"parts", iteration_parts(*inputs.plan, measured)}});
    }
  }
  const Timeline predicted = predicted_timeline(*inputs.plan);
  bars.push_back({{"name", "An iteration: predicted"},
                  {"ns", predicted.span_ns},
                  {"parts", iteration_parts(*inputs.plan, predicted)}});
  return bars;
}

std::string with_whose_times(const BudgetCurve& curve) {
  return "with kernel times " + (curve.whose_times.empty() ? "as recorded" : curve.whose_times);
}

// Predicted with the kernel times that the curve names; "here" is the run's own time, where there was one.
Json budget_curve_section(const Inputs& inputs) {
  const BudgetCurve& curve = inputs.curve;
  if (curve.policy.empty()) return nullptr;
  const Facts facts = collect_facts(inputs);
  Json points = Json::array();
  for (const BudgetPoint& one : curve.points) {
    points.push_back(
        {one.budget_bytes, one.time_ns, one.moved_bytes, percent_that_holds(one.budget_bytes, curve.peak_bytes)});
  }
  return {{"policy", curve.policy},
          // Of one loop among several: what is enough for it may be too little for the others.
          {"covers", inputs.one_loop ? "" : inputs.iteration_covers},
          {"times", with_whose_times(curve)},
          {"points", std::move(points)},
          {"compute_ns", curve.compute_ns},
          {"minimum", curve.minimum_bytes},
          {"peak", curve.peak_bytes},
          {"full_speed", curve.full_speed_bytes},
          {"own", inputs.plan != nullptr ? inputs.plan->budget_bytes : 0},
          {"here", facts.budget},
          {"here_ns", inputs.log != nullptr ? facts.actual_ns : facts.predicted_ns},
          {"here_measured", inputs.log != nullptr && facts.actual_ns > 0}};
}

Json about_section(const Inputs& inputs) {
  Json files = Json::array();
  for (const Inputs::File& file : inputs.files) {
    files.push_back({{"name", file.name}, {"kind", file.kind}, {"bytes", file.bytes}, {"hash", file.hash}});
  }
  return {{"version", inputs.version},
          {"date", inputs.date},
          {"device", inputs.log != nullptr ? inputs.log->device : ""},
          {"driver", inputs.log != nullptr ? inputs.log->driver : ""},
          {"files", std::move(files)}};
}

}  // namespace reprise::report
