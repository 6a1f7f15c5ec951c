#include "tools/doctor/checks.h"

#include <fmt/core.h>

#include <algorithm>

#include "tools/cli/colour.h"
#include "tools/cli/message.h"

namespace reprise::tools {
namespace {

const char* finding_name(Finding finding) {
  switch (finding) {
    case Finding::good:
      return "good";
    case Finding::note:
      return "note";
    case Finding::missing:
      return "missing";
  }
  return "";
}

Colour colour_of(Finding finding) {
  return finding == Finding::good ? Colour::green : finding == Finding::note ? Colour::yellow : Colour::red;
}

}  // namespace

int doctor_exit_code(const std::vector<Check>& checks) {
  const bool missing =
      std::any_of(checks.begin(), checks.end(), [](const Check& check) { return check.finding == Finding::missing; });
  return missing ? kExitFailure : 0;
}

nlohmann::ordered_json doctor_json(const std::vector<Check>& checks) {
  nlohmann::ordered_json json;
  json["ok"] = doctor_exit_code(checks) == 0;
  json["checks"] = nlohmann::ordered_json::array();
  for (const Check& check : checks) {
    json["checks"].push_back({{"name", check.name},
                              {"finding", finding_name(check.finding)},
                              {"value", check.value},
                              {"advice", check.advice}});
  }
  return json;
}

std::string doctor_text(const std::vector<Check>& checks, bool coloured) {
  std::string text;
  for (const Check& check : checks) {
    const std::string finding = fmt::format("{:<8}", finding_name(check.finding));
    text +=
        fmt::format("{} {:<24} {}\n", painted(finding, colour_of(check.finding), coloured), check.name, check.value);
    if (!check.advice.empty()) text += fmt::format("{:<8} {:<24} -> {}\n", "", "", check.advice);
  }
  std::string missing;
  for (const Check& check : checks) {
    if (check.finding == Finding::missing) missing += (missing.empty() ? "" : ", ") + check.name;
  }
  return text + (missing.empty() ? "Reprise can work here.\n"
                                 : fmt::format("Reprise cannot work here yet; missing: {}.\n", missing));
}

}  // namespace reprise::tools
