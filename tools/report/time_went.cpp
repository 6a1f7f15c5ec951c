// Where the time went: of the whole run, and of one iteration.
#include <fmt/core.h>

#include "tools/report/log/links.h"
#include "tools/report/log/measured.h"
#include "tools/report/report.h"
#include "tools/report/view/waits.h"

namespace reprise::report {
namespace {

Json part(const std::string& what, uint64_t ns, const char* style) {
  return {{"what", what}, {"ns", ns}, {"style", style}};
}

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

// Causes beside each other are told apart: first what moves, then what does not.
const char* style_of(const WaitSum& wait) {
  if (wait.edge == plan::EdgeKind::memory) return "to-host";
  return wait.edge == plan::EdgeKind::data ? "wait" : "before";
}

Json iteration_parts(const TimeParts& time) {
  Json parts = Json::array();
  parts.push_back(part("kernels", time.kernels_ns, "compute"));
  for (const WaitSum& wait : time.waits) {
    parts.push_back(part("waiting: " + wait.what, wait.ns, style_of(wait)));
  }
  parts.push_back(part(kRest, time.rest_ns, "resident"));
  return parts;
}

Json iteration_bar(const std::string& name, const TimeParts& time) {
  return {{"name", "An iteration: " + name}, {"ns", time.whole_ns}, {"parts", iteration_parts(time)}};
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
  if (const std::optional<TimeParts> measured = measured_time(inputs)) {
    bars.push_back(iteration_bar(
        fmt::format("measured (iteration {}{})", measured->iteration, unlike_words(*inputs.log)), *measured));
  }
  const std::string link =
      is_plan_for_another_link(inputs) ? ", for a link of " + words_of(inputs.plan->link) + ", not this run's" : "";
  bars.push_back(iteration_bar("predicted " + with_whose_times(inputs) + link, predicted_parts(*inputs.plan)));
  return bars;
}

std::string with_whose_times(const Inputs& inputs) {
  return "with kernel times " + (inputs.whose_times.empty() ? "as recorded" : inputs.whose_times);
}

// Predicted with the kernel times that the curve names; "here" is the run's own time, where there was one.
Json budget_curve_section(const Inputs& inputs) {
  const BudgetCurve& curve = inputs.curve;
  if (curve.policy.empty()) return nullptr;
  const Facts facts = collect_facts(inputs);
  const bool elsewhere = is_recording_of_another_link(inputs);
  Json points = Json::array();
  for (const BudgetPoint& one : curve.points) {
    points.push_back(
        {one.budget_bytes, one.time_ns, one.moved_bytes, percent_that_holds(one.budget_bytes, curve.peak_bytes)});
  }
  return {{"policy", curve.policy},
          // Of one loop among several: what is enough for it may be too little for the others.
          {"covers", inputs.one_loop ? "" : inputs.iteration_covers},
          {"times", with_whose_times(inputs) +
                        (elsewhere ? ", for a link of " + words_of(inputs.recorded_link) : std::string())},
          {"points", std::move(points)},
          {"compute_ns", curve.compute_ns},
          {"minimum", curve.minimum_bytes},
          {"peak", curve.peak_bytes},
          {"full_speed", curve.full_speed_bytes},
          {"own", inputs.plan != nullptr ? inputs.plan->budget_bytes : 0},
          {"here", facts.plan_budget != 0 ? facts.plan_budget : facts.budget},
          {"here_name", facts.plan_budget != 0 ? kPlansBudget : "Your budget"},
          {"here_ns", inputs.log != nullptr ? facts.actual_ns : facts.predicted_ns},
          {"here_measured", inputs.log != nullptr && facts.actual_ns > 0},
          {"here_link", elsewhere ? words_of(link_of(*inputs.log)) : ""}};
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
