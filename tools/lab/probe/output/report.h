// What a run of the probe found, as data: measurements (with unit, repeats, median, minimum, maximum), facts (yes/no,
// names, counts) and notes, by section. Sections fill it, main prints it as one JSON document and as a table.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "preload/trace/status.h"
#include "tools/lab/probe/measure/statistics.h"

namespace reprise::probe {

using Json = nlohmann::ordered_json;

inline constexpr int kReportVersion = 1;

enum class SectionState : uint8_t {
  done = 0,
  partial,    // out of time, interrupted, or some measurement failed: what is there is valid, the notes say what is not
  no_device,  // no driver, or a driver without a device
  unsupported,  // the device (or the simulated one) cannot do this
  failed,       // the section ended abnormally
};
const char* to_string(SectionState state);

struct Measurement {
  std::string name;
  Json parameters;  // an object: what was varied
  std::string unit;
  Summary summary;
};

struct Fact {
  std::string name;
  Json value;
};

class SectionReport {
 public:
  SectionReport() = default;
  SectionReport(int number, std::string name) : number_(number), name_(std::move(name)) {}

  // `parameters`: a JSON object. Samples that have no summary become a note instead.
  void measure(std::string name, std::string unit, std::vector<double> samples, Json parameters = Json::object());
  void fact(std::string name, Json value);
  // A line for people: what was left out and why.
  void note(std::string text);
  void set_state(SectionState state) { state_ = state; }
  // From done to partial; other states stay.
  void set_partial();
  void set_seconds(double seconds) { seconds_ = seconds; }

  int number() const { return number_; }
  const std::string& name() const { return name_; }
  SectionState state() const { return state_; }
  const std::vector<Measurement>& measurements() const { return measurements_; }
  const std::vector<Fact>& facts() const { return facts_; }
  const std::vector<std::string>& notes() const { return notes_; }

  Json to_json() const;
  static Result<SectionReport> from_json(const Json& json);
  std::string to_table() const;

 private:
  int number_ = 0;
  std::string name_;
  SectionState state_ = SectionState::done;
  double seconds_ = 0;
  std::vector<Measurement> measurements_;
  std::vector<Fact> facts_;
  std::vector<std::string> notes_;
};

// 12345678 "bytes/s" -> "12.3 MB/s": three significant digits and a prefix that people read.
std::string format_value(double value, std::string_view unit);

}  // namespace reprise::probe
