#include "tools/lab/simulate/page.h"

#include "tools/report/page.h"
#include "tools/report/report.h"

namespace reprise::tools {
namespace {

report::Json to_json(const SimulatedRow& row) {
  report::Json json = {{"asked", budget_text(row)},   {"budget", row.budget_bytes}, {"policy", row.policy},
                       {"used", plan_of(row)},        {"trouble", row.trouble},     {"time", row.time_ns},
                       {"compute", row.compute_ns},   {"bound", row.bound_ns},      {"fluid", row.fluid_ns},
                       {"joint", row.joint_ns},       {"out", row.offload_bytes},   {"in", row.reload_bytes},
                       {"ssd", row.ssd_written_bytes}};
  json["ssd_years"] = row.ssd_years ? report::Json(*row.ssd_years) : report::Json();
  return json;
}

}  // namespace

std::string to_page(const std::vector<SimulatedRow>& rows, const std::string& program, const std::string& machine,
                    const std::string& assumed_link) {
  report::Json data;
  data["program"] = program;
  data["subtitle"] = machine.empty()
                         ? "simulated"
                         : "simulated on machine " + machine + "; kernel times as recorded, or as the graph says";
  if (!assumed_link.empty()) data["subtitle"] = data["subtitle"].get<std::string>() + "; " + assumed_link;
  data["rows"] = report::Json::array();
  for (const SimulatedRow& row : rows) data["rows"].push_back(to_json(row));
  return report::make_page(data, report::kSimulationScript, false);
}

}  // namespace reprise::tools
