// The rules of Chrome's trace event format, as far as our files use it: what its readers reject or draw wrongly. Called
// by the tests of the Perfetto export, on made-up and on real traces.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace reprise::exports::test {

class TraceEvents {
 public:
  // The first problem, with the event; empty for a valid file.
  static std::string problem(const std::string& text) {
    const Json file = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!file.is_object() || !file.contains("traceEvents") || !file["traceEvents"].is_array()) return "no traceEvents";
    if (file.contains("displayTimeUnit") && file["displayTimeUnit"] != "ns" && file["displayTimeUnit"] != "ms") {
      return "displayTimeUnit is neither ns nor ms";
    }
    TraceEvents events;
    for (const Json& event : file["traceEvents"]) {
      const std::string found = events.add(event);
      if (!found.empty()) return found + ": " + event.dump(-1, ' ', false, Json::error_handler_t::replace);
    }
    return events.finish();
  }

 private:
  using Json = nlohmann::json;
  using Track = std::pair<int64_t, int64_t>;

  std::string add(const Json& event) {
    for (const char* field : {"ph", "name"}) {
      if (!event.contains(field) || !event[field].is_string() || event[field].empty())
        return "no " + std::string(field);
    }
    if (event["name"].get<std::string>().empty()) return "an empty name";
    for (const char* field : {"pid", "tid"}) {
      if (!event.contains(field) || !event[field].is_number_integer()) return "no " + std::string(field);
    }
    if (!event.contains("ts") || !event["ts"].is_number() || event["ts"].get<double>() < 0) return "no ts";
    if (event.contains("args") && !event["args"].is_object()) return "args is no object";
    const std::string phase = event["ph"];
    if (phase == "M") return metadata(event);
    if (event["ts"].get<double>() < last_) return "not sorted by time";
    last_ = event["ts"];
    if (phase == "X") return slice(event);
    if (phase == "C") return counter(event);
    if (phase == "i") return event.contains("s") && scopes().count(event["s"]) > 0 ? "" : "an instant without scope";
    if (phase == "s" || phase == "f") return flow(event, phase == "s");
    return "an unexpected phase";
  }

  std::string metadata(const Json& event) {
    const std::string name = event["name"];
    if (!event.contains("args")) return "metadata without args";
    if (name == "process_name" || name == "thread_name") {
      if (!event["args"].contains("name") || !event["args"]["name"].is_string()) return "a name that is none";
      (name == "process_name" ? named_processes_ : named_tracks_)
          .insert(name == "process_name" ? Track{event["pid"], 0} : Track{event["pid"], event["tid"]});
      return "";
    }
    if (name == "thread_sort_index" || name == "process_sort_index") {
      return event["args"].contains("sort_index") && event["args"]["sort_index"].is_number_integer()
                 ? ""
                 : "a sort index that is none";
    }
    return "unknown metadata";
  }

  // Slices of a track nest: they may not overlap in part.
  std::string slice(const Json& event) {
    if (!event.contains("dur") || !event["dur"].is_number() || event["dur"].get<double>() < 0) return "no duration";
    const Track track{event["pid"], event["tid"]};
    used_.insert(track);
    const double start = event["ts"];
    const double end = start + event["dur"].get<double>();
    std::vector<double>& open = open_[track];
    constexpr double kRounding = 1e-6;  // microseconds of a nanosecond's thousandth
    while (!open.empty() && open.back() <= start + kRounding) open.pop_back();
    if (!open.empty() && end > open.back() + kRounding) return "overlaps in part with a slice of its track";
    open.push_back(end);
    return "";
  }

  static std::string counter(const Json& event) {
    if (!event.contains("args") || event["args"].empty()) return "a counter without values";
    for (const Json& value : event["args"]) {
      if (!value.is_number() || value.get<double>() < 0) return "a counter that is no number";
    }
    return "";
  }

  std::string flow(const Json& event, bool start) {
    if (!event.contains("id")) return "a flow without id";
    const std::string id = event["id"].dump();
    if (start) return flows_.insert(id).second ? "" : "a flow that starts twice";
    return flows_.erase(id) == 1 ? "" : "a flow that ends without a start";
  }

  std::string finish() const {
    for (const Track& track : used_) {
      const std::string name = std::to_string(track.first) + "/" + std::to_string(track.second);
      if (named_tracks_.count(track) == 0) return "a track without a name: " + name;
      if (named_processes_.count({track.first, 0}) == 0) return "a process without a name: " + name;
    }
    return flows_.empty() ? "" : "a flow without an end";
  }

  static const std::set<std::string>& scopes() {
    static const std::set<std::string> all = {"g", "p", "t"};
    return all;
  }

  double last_ = 0;
  std::map<Track, std::vector<double>> open_;
  std::set<Track> used_, named_tracks_, named_processes_;
  std::set<std::string> flows_;
};

}  // namespace reprise::exports::test
