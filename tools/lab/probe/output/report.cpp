#include "tools/lab/probe/output/report.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

namespace reprise::probe {
namespace {

constexpr std::array<std::pair<SectionState, const char*>, 5> kStates = {{{SectionState::done, "done"},
                                                                          {SectionState::partial, "partial"},
                                                                          {SectionState::no_device, "no device"},
                                                                          {SectionState::unsupported, "unsupported"},
                                                                          {SectionState::failed, "failed"}}};

std::string describe(const Json& parameters) {
  std::string text;
  for (const auto& [key, value] : parameters.items()) {
    const bool bytes = key.ends_with("bytes") && value.is_number();
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", bytes ? key.substr(0, key.size() - 6) : key,
                        bytes               ? format_value(value.get<double>(), "bytes")
                        : value.is_string() ? value.get<std::string>()
                                            : value.dump());
  }
  return text;
}

std::string scaled(double value, double step, std::string_view unit, std::initializer_list<const char*> prefixes) {
  auto prefix = prefixes.begin();
  while (std::abs(value) >= step && prefix + 1 != prefixes.end()) {
    value /= step;
    ++prefix;
  }
  return fmt::format("{:.4g} {}{}", value, *prefix, unit);
}

}  // namespace

const char* to_string(SectionState state) {
  for (const auto& [known, text] : kStates) {
    if (known == state) return text;
  }
  return "failed";
}

std::string format_value(double value, std::string_view unit) {
  if (unit == "bytes") return scaled(value, 1024, "B", {"", "Ki", "Mi", "Gi", "Ti"});
  if (unit == "bytes/s") return scaled(value, 1000, "B/s", {"", "k", "M", "G", "T"});
  if (unit == "ns") return scaled(value, 1000, "s", {"n", "u", "m", ""});
  if (unit == "s") {
    return std::abs(value) < 1 ? format_value(value * 1e9, "ns") : fmt::format("{:.4g} s", value);
  }
  return unit.empty() ? fmt::format("{:.4g}", value) : fmt::format("{:.4g} {}", value, unit);
}

void SectionReport::measure(std::string name, std::string unit, std::vector<double> samples, Json parameters) {
  const auto summary = summarize(std::move(samples));
  if (!summary) {
    note(fmt::format("{}{}{}: no sample", name, parameters.empty() ? "" : " ", describe(parameters)));
    set_partial();
    return;
  }
  measurements_.push_back({std::move(name), std::move(parameters), std::move(unit), *summary});
}

void SectionReport::fact(std::string name, Json value) { facts_.push_back({std::move(name), std::move(value)}); }

void SectionReport::note(std::string text) { notes_.push_back(std::move(text)); }

void SectionReport::set_partial() {
  if (state_ == SectionState::done) state_ = SectionState::partial;
}

Json SectionReport::to_json() const {
  Json json = {{"number", number_}, {"name", name_}, {"state", to_string(state_)}, {"seconds", seconds_}};
  json["measurements"] = Json::array();
  for (const Measurement& m : measurements_) {
    json["measurements"].push_back({{"name", m.name},
                                    {"parameters", m.parameters},
                                    {"unit", m.unit},
                                    {"repeats", m.summary.repeats},
                                    {"median", m.summary.median},
                                    {"minimum", m.summary.minimum},
                                    {"maximum", m.summary.maximum}});
  }
  json["facts"] = Json::object();
  for (const Fact& fact : facts_) json["facts"][fact.name] = fact.value;
  json["notes"] = notes_;
  return json;
}

Result<SectionReport> SectionReport::from_json(const Json& json) {
  try {
    SectionReport report(json.at("number").get<int>(), json.at("name").get<std::string>());
    const auto state = json.at("state").get<std::string>();
    report.state_ = SectionState::failed;
    for (const auto& [known, text] : kStates) {
      if (state == text) report.state_ = known;
    }
    report.seconds_ = json.at("seconds").get<double>();
    for (const Json& m : json.at("measurements")) {
      report.measurements_.push_back({m.at("name").get<std::string>(),
                                      m.at("parameters"),
                                      m.at("unit").get<std::string>(),
                                      {m.at("repeats").get<size_t>(), m.at("median").get<double>(),
                                       m.at("minimum").get<double>(), m.at("maximum").get<double>()}});
    }
    for (const auto& [name, value] : json.at("facts").items()) report.fact(name, value);
    report.notes_ = json.at("notes").get<std::vector<std::string>>();
    return report;
  } catch (const nlohmann::json::exception& error) {
    return Status(StatusCode::corrupt, fmt::format("not a section of a probe report: {}", error.what()));
  }
}

std::string SectionReport::to_table() const {
  std::string text = fmt::format("{}. {}: {} ({:.1f} s)\n", number_, name_, to_string(state_), seconds_);
  for (const Measurement& m : measurements_) {
    text += fmt::format("   {:<34} {:<50} {:>14}  [{} .. {}] x{}\n", m.name, describe(m.parameters),
                        format_value(m.summary.median, m.unit), format_value(m.summary.minimum, m.unit),
                        format_value(m.summary.maximum, m.unit), m.summary.repeats);
  }
  for (const Fact& fact : facts_) {
    std::string value = fact.value.dump();
    if (value.size() > 300) value = value.substr(0, 300) + "... (all of it in the JSON)";
    text += fmt::format("   {:<34} {}\n", fact.name, value);
  }
  for (const std::string& line : notes_) text += fmt::format("   note: {}\n", line);
  return text;
}

}  // namespace reprise::probe
