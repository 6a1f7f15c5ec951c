#include "tools/export/redact.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string_view>

#include "preload/base/causes.h"
#include "preload/base/run_log_keys.h"
#include "preload/trace/names.h"
#include "tools/cli/run_log_value.h"
#include "tools/export/words.h"
#include "tools/report/log/demangle.h"
#include "tools/report/log/redacted.h"
#include "tools/report/view/frames.h"

namespace reprise::exports {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kKernel = "kernel_";
constexpr const char* kCall = "call_";

// Of a trace's info, what says nothing of the program but its hash.
bool keeps_info(const std::string& key) {
  static const std::set<std::string> kKept = {
      "activity.source",   "device.granularity", "device.memory",     "device.name",        "driver.version",
      "program.hash",      "recorder.unwinder",  "recorder.waits",    "recorder.waited_ns", "time.start_ns",
      "memory.held_bytes", "memory.managed",     "memory.peak_bytes",
#define REPRISE_MEASURED(field, key, ...) key,
#include "preload/trace/measured_keys.def"
#undef REPRISE_MEASURED
  };
  return kKept.count(key) != 0 || key.rfind("unmanaged.", 0) == 0;
}

// Of a run log: texts that are one of a few words, hashes and names of ours.
bool keeps_text(const std::string& kind, const std::string& key, const std::string& value) {
  if (key == "kind") return true;
#define RUN_LOG_WORD(line, name, word, old_word, help) \
  if (kind == #line && key == #name && (value == #word || (*old_word != '\0' && value == old_word))) return true;
#include "preload/base/run_log_keys.def"
  const auto is_cause = [&](const CauseRow& row) { return value == row.id; };
  if (kind == run_log::warning::line.name && key == run_log::warning::cause.name) {
    return std::any_of(std::begin(kCauses), std::end(kCauses), is_cause);
  }
  const std::string name = kind + "." + key;
  return name == run_log::start::line.name + std::string(".program_hash") || name == "start.device" ||
         name == "start.mode" || name == "unmanaged.what" || name == "plan.iteration_hash" || name == "plan.policy" ||
         name == "activity.engine";
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Does it stand there on its own, not within a longer word?
bool stands_alone(const std::string& text, size_t at, size_t bytes) {
  return (at == 0 || !is_word(text[at - 1])) && (at + bytes == text.size() || !is_word(text[at + bytes]));
}

std::string replace_all(std::string text, const std::string& name, const std::string& by) {
  for (size_t at = 0; !name.empty() && (at = text.find(name, at)) != std::string::npos;) {
    if (stands_alone(text, at, name.size())) {
      text.replace(at, name.size(), by);
      at += by.size();
    } else {
      ++at;
    }
  }
  return text;
}

bool is_number(const std::string& text) { return text.find_first_not_of("0123456789.,%") == std::string::npos; }

// cuMemAlloc_v2
bool is_of_the_driver(const std::string& call) {
  return call.rfind("cu", 0) == 0 && call.size() > 2 && std::isupper(static_cast<unsigned char>(call[2])) != 0;
}

bool is_our_word(const std::string& text) {
  static const std::set<std::string_view> kWords(kOurWords.begin(), kOurWords.end());
  return kWords.count(text) != 0 || (is_of_the_driver(text) && std::all_of(text.begin(), text.end(), is_word));
}

// "kernel_3": what stands here for a name.
bool stands_for_a_name(const std::string& text) {
  const size_t digits = text.find_last_not_of("0123456789") + 1;
  return digits < text.size() && (text.compare(0, digits, kKernel) == 0 || text.compare(0, digits, kCall) == 0);
}

// All that is no word, number or name of ours may be a name that no file has told: of a kernel, a file, a program.
bool may_be_shown(const std::string& word) {
  constexpr const char* kAround = "()[]{}\"'.,:;!?-";
  const size_t first = word.find_first_not_of(kAround);
  if (first == std::string::npos) return true;
  std::string parts = word.substr(first, word.find_last_not_of(kAround) + 1 - first);
  std::replace_if(
      parts.begin(), parts.end(), [](char c) { return c == '-' || c == '\'' || c == '='; }, ' ');
  std::istringstream stream(parts);
  for (std::string part; stream >> part;) {
    if (!is_number(part) && !is_our_word(part) && !stands_for_a_name(part)) return false;
  }
  return true;
}

// Of a run log: texts that name a call.
bool is_a_call(const std::string& key) {
  return key == run_log::divergence::expected.name || key == run_log::divergence::got.name ||
         key == run_log::shortage::call.name;
}

// What calls are in our words. Names of kernels may begin like them, so that only whole ones are.
bool is_ours(const std::string& call) {
  static const std::set<std::string_view> kWhole = {"a free",
                                                    "a stream capture",
                                                    "an allocation",
                                                    "copy_device_to_device",
                                                    "copy_device_to_host",
                                                    "copy_host_to_device",
                                                    "copy_host_to_host",
                                                    "copy_peer",
                                                    "graph_launch",
                                                    "host function",
                                                    "memory for one more device",
                                                    "memset",
                                                    "stream callback",
                                                    "the end of a context",
                                                    "the end of the context",
                                                    "the program's end",
                                                    "write value"};
  if (kWhole.count(call) != 0) return true;
  const auto begins = [&](std::string_view word) { return call.rfind(word, 0) == 0; };
  return is_of_the_driver(call) || begins("allocate ") || begins("free ") || begins("memcpy ");
}

}  // namespace

std::string Redactor::number(const std::string& what, const std::string& name) {
  auto& known = numbers_[what];
  const auto [place, is_new] = known.try_emplace(name);
  if (is_new) place->second = fmt::format("{}{}", what, known.size());
  return place->second;
}

std::string Redactor::kernel(const std::string& name) {
  std::string shown = number(kKernel, report::demangle(name));
  // As our texts may have it.
  for (const std::string& one : {name, report::demangle(name), trace::short_name(name)}) quoted_.emplace(one, shown);
  return shown;
}

// "symbol+0x1b (file)", "0x1b (file)" or, with symbols, "symbol at line (file)". Reports group by functions and by
// lines, so each has its number; whose function it is decides who is said to have asked for a tensor, so that stays,
// too.
std::string Redactor::frame(const std::string& text) {
  const size_t file = text.rfind(" (");
  const std::string place = text.substr(0, file);
  std::string function = report::function_of(text);
  std::string more = place.size() > function.size() ? " at " + number("line_", place.substr(function.size())) : "";
  if (const size_t offset = function.rfind("+0x"); offset != std::string::npos) {
    more = function.substr(offset);
    function.erase(offset);
  }
  std::string shown = number(report::is_foreign(text) ? report::kForeign : "frame_", function) + more;
  if (file != std::string::npos) shown += fmt::format(" ({})", number("file_", text.substr(file)));
  return shown;
}

// One frame a line: equal frames stay equal, so that trees of them keep their form.
std::string Redactor::call_site(const std::string& frames) {
  std::istringstream lines(frames);
  std::string text;
  for (std::string one; std::getline(lines, one);) text += (text.empty() ? "" : "\n") + frame(one);
  return text;
}

void Redactor::redact(trace::Trace& trace) {
  std::erase_if(trace.info, [](const auto& one) { return !keeps_info(one.first); });
  trace.info["program"] = report::kRedacted;
  for (trace::TracedFunction& function : trace.functions) {
    if (function.id != 0) function.name = kernel(function.name);
  }
  for (std::string& site : trace.call_sites) site = call_site(site);
  for (trace::Event& event : trace.events) {
    if (auto* op = std::get_if<trace::Op>(&event)) {
      op->parameters.clear();
      op->record.thread = threads_.try_emplace(op->record.thread, threads_.size() + 1).first->second;
    }
    if (auto* mark = std::get_if<trace::Mark>(&event)) mark->text = number("mark_", mark->text);
  }
}

void Redactor::redact(plan::Plan& plan) {
  plan.program = report::kRedacted;
  for (plan::Call& call : plan.calls) {
    if (call.kind == plan::CallKind::op && call.op == trace::OpKind::launch) call.name = kernel(call.name);
  }
}

// Sentences of ours, in which names stand.
std::string Redactor::words(const std::string& text) const {
  std::string result = text;
  std::vector<std::pair<std::string, std::string>> names(quoted_.begin(), quoted_.end());
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  for (const auto& [name, shown] : names) result = replace_all(std::move(result), name, shown);
  std::istringstream spaced(result);
  std::string kept;
  for (std::string word; spaced >> word;) {
    if (!may_be_shown(word)) {
      if (kept.ends_with(report::kRedacted)) continue;
      word = report::kRedacted;
    }
    kept += (kept.empty() ? "" : " ") + word;
  }
  return kept;
}

// A call of a plan or of the program: a kernel's name, or what the call is in our words.
std::string Redactor::call(const std::string& text) {
  if (const auto known = quoted_.find(text); known != quoted_.end()) return known->second;
  if (text.empty() || is_ours(text)) return text;
  return quoted_.emplace(text, number(kCall, text)).first->second;
}

// Names that lines tell, which sentences of lines before them may quote.
void Redactor::find_names(const std::string& lines) {
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    const Json value = Json::parse(line, nullptr, false);
    if (!value.is_object()) continue;
    for (const auto& [key, one] : value.items()) {
      const std::string name = one.is_string() ? one.get<std::string>() : std::string();
      if (!name.empty() && key == run_log::examine::kernel.name) kernel(name);
      if (!name.empty() && is_a_call(key)) call(name);
    }
  }
}

std::string Redactor::redact_run_log(const std::string& lines) {
  find_names(lines);
  std::istringstream stream(lines);
  std::string text;
  for (std::string line; std::getline(stream, line);) {
    Json value = Json::parse(line, nullptr, false);
    if (!value.is_object()) continue;
    const std::string kind = tools::kind_of(nlohmann::json(value));
    for (auto& [key, one] : value.items()) {
      const bool is_process = key == run_log::every::process.name || key == run_log::start::run.name ||
                              key == run_log::program_end::command.name;
      if (is_process && one.is_number_unsigned()) {
        one = processes_.try_emplace(one.get<uint64_t>(), processes_.size() + 1).first->second;
        continue;
      }
      if (!one.is_string() && !one.is_structured()) continue;
      const std::string was = one.is_string() ? one.get<std::string>() : std::string();
      if (keeps_text(kind, key, was)) continue;
      if (key == run_log::examine::kernel.name) {
        one = kernel(was);
      } else if (is_a_call(key)) {
        one = call(was);
      } else if (key == run_log::on_demand::reason.name || key == run_log::every::message.name ||
                 key == run_log::divergence::difference.name) {
        one = words(was);
      } else {
        one = report::kRedacted;
      }
    }
    text += value.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  return text;
}

}  // namespace reprise::exports
