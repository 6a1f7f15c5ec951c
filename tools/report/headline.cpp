// The cards at the top of the report, and the one line for the terminal.
#include <fmt/core.h>

#include "tools/cli/run_log_value.h"
#include "tools/cli/sizes.h"
#include "tools/report/report.h"

namespace reprise::report {
namespace {

using tools::format_bytes;
using tools::format_duration;

Json card(const std::string& label, const std::string& value, const std::string& detail, const char* tone = "plain") {
  return {{"label", label}, {"value", value}, {"detail", detail}, {"tone", tone}};
}

double ratio(uint64_t a, uint64_t b) { return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b); }

Json memory_card(const Facts& facts) {
  const uint64_t after = facts.peak_actual > 0 ? facts.peak_actual : facts.peak_planned;
  if (after == 0) return card("Peak device memory", format_bytes(facts.peak_before), "without a budget");
  const std::string budget = facts.budget > 0 ? fmt::format("; budget {}", format_bytes(facts.budget)) : "";
  const bool over = facts.budget > 0 && after > facts.budget;
  return card(facts.peak_actual > 0 ? "Peak device memory" : "Peak device memory, planned", format_bytes(after),
              fmt::format("was {} ({:.0f} %){}", format_bytes(facts.peak_before), 100 * ratio(after, facts.peak_before),
                          budget),
              over ? "bad" : "good");
}

Json time_card(const Facts& facts) {
  if (facts.actual_ns > 0) {
    const std::string alone =
        facts.compute_ns > 0 ? fmt::format("{:.2f} x computing alone ({})", ratio(facts.actual_ns, facts.compute_ns),
                                           format_duration(facts.compute_ns))
                             : "measured";
    const std::string predicted =
        facts.predicted_ns > 0 ? fmt::format("; predicted {}", format_duration(facts.predicted_ns)) : "";
    return card("Time per iteration", format_duration(facts.actual_ns), alone + predicted);
  }
  if (facts.predicted_ns > 0) {
    return card("Time per iteration, predicted", format_duration(facts.predicted_ns),
                fmt::format("{:.2f} x computing alone ({})", ratio(facts.predicted_ns, facts.compute_ns),
                            format_duration(facts.compute_ns)));
  }
  if (facts.on_demand_ns > 0) {
    return card("Time per iteration", format_duration(facts.on_demand_ns), "on demand, without a plan");
  }
  return nullptr;
}

Json traffic_card(const Inputs& inputs, const Facts& facts) {
  if (inputs.plan == nullptr) return nullptr;
  const uint64_t moved = inputs.plan->offload_bytes + inputs.plan->reload_bytes;
  std::string detail =
      fmt::format("{} out, {} back", format_bytes(inputs.plan->offload_bytes), format_bytes(inputs.plan->reload_bytes));
  if (facts.hidden >= 0) {
    detail += fmt::format("; {:.0f} % hidden behind computing{}", 100 * facts.hidden,
                          facts.hidden_measured ? "" : " (predicted)");
  }
  return card("Moved per iteration", format_bytes(moved), detail);
}

Json run_card(const Inputs& inputs) {
  if (inputs.log == nullptr) return nullptr;
  const RunLog& log = *inputs.log;
  if (log.iterations_planned == 0 && !inputs.no_iteration.empty()) {
    return card("Iterations", "none found", "so nothing was planned: tensors moved on demand");
  }
  return card("Iterations", fmt::format("{} planned", log.iterations_planned),
              fmt::format("{} on demand; {} divergence{}", log.iterations_on_demand, log.divergence_count,
                          log.divergence_count == 1 ? "" : "s"),
              log.iterations_planned > 0 ? "good" : "plain");
}

Json safety_card(const Inputs& inputs) {
  if (inputs.log == nullptr || inputs.log->safety.empty()) return nullptr;
  const bool strict = tools::says(inputs.log->safety, run_log::start::strict);
  return card("Safety", inputs.log->safety,
              fmt::format("{}; {} memory-mapping calls in all",
                          strict ? "unseen accesses are right or fault" : "unseen accesses may get wrong bytes",
                          inputs.log->vmm_calls));
}

}  // namespace

Json headline_section(const Inputs& inputs) {
  const Facts facts = collect_facts(inputs);
  Json cards = Json::array();
  for (Json& one : std::vector<Json>{memory_card(facts), time_card(facts), traffic_card(inputs, facts),
                                     run_card(inputs), safety_card(inputs)}) {
    if (!one.is_null()) cards.push_back(std::move(one));
  }
  return cards;
}

std::string make_summary(const Inputs& inputs) {
  const Facts facts = collect_facts(inputs);
  if (inputs.log != nullptr && !inputs.log->ended && facts.peak_before == 0) {
    return fmt::format("the program {} before it could say what it used",
                       inputs.ending.empty() ? "was cut off" : "ended with " + inputs.ending);
  }
  const uint64_t after = facts.peak_actual > 0 ? facts.peak_actual : facts.peak_planned;
  std::string line = after > 0 ? fmt::format("peak {} {} {}", format_bytes(after),
                                             after <= facts.peak_before ? "instead of" : "for tensors of",
                                             format_bytes(facts.peak_before))
                               : fmt::format("peak {}", format_bytes(facts.peak_before));
  if (facts.actual_ns > 0 && facts.compute_ns > 0) {
    line += fmt::format(", {} per iteration ({:.2f} x computing alone)", format_duration(facts.actual_ns),
                        ratio(facts.actual_ns, facts.compute_ns));
  } else if (facts.predicted_ns > 0) {
    line += fmt::format(", {} per iteration predicted", format_duration(facts.predicted_ns));
  }
  if (inputs.log != nullptr && inputs.log->iterations_planned == 0) {
    line += inputs.no_iteration.empty() ? ", no iteration planned" : ", no iteration found to plan";
  } else if (inputs.log != nullptr) {
    line += fmt::format(", {} of {} iterations planned", inputs.log->iterations_planned,
                        inputs.log->iterations_planned + inputs.log->iterations_on_demand);
  }
  return line;
}

}  // namespace reprise::report
