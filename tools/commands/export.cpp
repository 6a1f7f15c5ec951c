// `reprise export`: traces, plans and run logs in the formats of other tools.
#include "tools/export/export.h"

#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "preload/trace/write.h"
#include "tools/cli/command.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/cli/outputs.h"
#include "tools/cli/progress.h"
#include "tools/export/redact_files.h"
#include "tools/report/inputs.h"

namespace reprise::tools {
namespace {

struct ExportOptions {
  std::vector<std::string> files;
  std::string format = "perfetto";
  std::string output = "-";
  std::string window;
  bool redact = false;
};

// What was read: with the run log's own text, which some formats show whole.
struct Export {
  report::Inputs inputs;
  std::string run_log = {};
};

struct Part {
  const char* name;
  report::Inputs inputs;
};

// What was given, one by one.
std::vector<Part> parts_of(const report::Inputs& all) {
  std::vector<Part> parts;
  if (all.trace != nullptr) parts.push_back({"trace", {all.trace, nullptr, nullptr}});
  if (all.plan != nullptr) parts.push_back({"plan", {nullptr, all.plan, nullptr}});
  if (all.log != nullptr) parts.push_back({"run", {nullptr, nullptr, all.log}});
  return parts;
}

// "a.csv" and "plan": "a.plan.csv"
std::string name_of_part(const std::string& output, const char* part) {
  const size_t dot = output.rfind('.');
  const size_t slash = output.rfind('/');
  const bool has_ending = dot != std::string::npos && (slash == std::string::npos || dot > slash + 1);
  return has_ending ? fmt::format("{}.{}{}", output.substr(0, dot), part, output.substr(dot))
                    : fmt::format("{}.{}", output, part);
}

// Of our own files each has the ending of what it is, which commands and pages call it by: "a", "a.trace" and "plan":
// "a.plan". A pipe or device has none.
std::string name_of_file(const std::string& output, const std::vector<Part>& parts, const char* part) {
  if (parts.size() == 1 && !can_be_lost(output)) return output;
  const auto given = std::find_if(parts.begin(), parts.end(),
                                  [&](const Part& one) { return output.ends_with(std::string(".") + one.name); });
  const size_t ending = given == parts.end() ? 0 : std::strlen(given->name) + 1;
  return fmt::format("{}.{}", output.substr(0, output.size() - ending), part);
}

Status write(const std::string& output, const Result<std::string>& content) {
  return content.ok() ? write_file(output, content.value()) : content.status();
}

// Each part into a file of its own.
template <typename N, typename F>
Status write_parts(const ExportOptions& options, const std::vector<Part>& parts, N name_of, F write_one) {
  Outputs outputs;
  outputs.reads(options.files);
  for (const Part& part : parts) outputs.writes("-o", name_of(part));
  Status status = outputs.check();
  std::string names;
  for (const Part& part : parts) {
    const std::string name = name_of(part);
    if (status.ok()) status = write_one(part, name);
    names += (names.empty() ? "" : ", ") + name;
  }
  if (status.ok()) say("wrote " + names);
  return status;
}

// A table has one sort of rows, so each file gets one of its own.
Status export_csv(const ExportOptions& options, const Export& all) {
  const report::Inputs& inputs = all.inputs;
  const std::vector<Part> parts = parts_of(inputs);
  if (parts.size() == 1) return write(options.output, exports::to_csv(inputs));
  if (options.output == "-") {
    return {StatusCode::invalid_argument,
            "csv: each file makes a table of its own; give one file, or a name with -o: -o a.csv writes a.trace.csv, "
            "a.plan.csv and a.run.csv"};
  }
  return write_parts(
      options, parts, [&](const Part& part) { return name_of_part(options.output, part.name); },
      [](const Part& part, const std::string& name) { return write(name, exports::to_csv(part.inputs)); });
}

// Our own files again: of use where --redact has changed them.
Status export_reprise(const ExportOptions& options, const Export& all) {
  const std::vector<Part> parts = parts_of(all.inputs);
  if (options.output == "-") {
    return {StatusCode::invalid_argument,
            "reprise: these are no texts; give a name with -o: -o a writes a.trace, a.plan and a.run"};
  }
  const auto write_one = [&](const Part& part, const std::string& name) {
    if (part.inputs.trace != nullptr) {
      return write_whole(name, [&](const std::string& to) { return trace::write_trace(*part.inputs.trace, to); });
    }
    if (part.inputs.plan != nullptr) return plan::write_plan(*part.inputs.plan, name);
    return write_file(name, all.run_log);
  };
  return write_parts(
      options, parts, [&](const Part& part) { return name_of_file(options.output, parts, part.name); }, write_one);
}

// "100:500": 500 from the 100th on.
Status read_window(const std::string& text, exports::Window& window) {
  if (text.empty()) return {};
  const char* const end = text.data() + text.size();
  const auto [colon, no_first] = std::from_chars(text.data(), end, window.first);
  if (no_first == std::errc() && colon != end && *colon == ':') {
    const auto [at, no_count] = std::from_chars(colon + 1, end, window.count);
    if (no_count == std::errc() && at == end && window.count > 0) return {};
  }
  return {StatusCode::invalid_argument, fmt::format("--window {}: write FIRST:COUNT, as in 0:500", text)};
}

Status export_dot(const ExportOptions& options, const Export& all) {
  const report::Inputs& inputs = all.inputs;
  exports::Window window;
  if (Status status = read_window(options.window, window); !status.ok()) return status;
  Status status = write(options.output, exports::to_dot(inputs, window));
  if (status.ok() && parts_of(inputs).size() > 1) {
    say(fmt::format("dot: one graph a file; this is the {}, the rest was left out",
                    inputs.plan != nullptr ? "plan's" : "trace's"));
  }
  return status;
}

Status export_perfetto(const ExportOptions& options, const Export& all) {
  return write(options.output, exports::to_perfetto(all.inputs));
}

Status export_json(const ExportOptions& options, const Export& all) {
  return write(options.output, exports::to_json(all.inputs, all.run_log));
}

Status export_tensors(const ExportOptions& options, const Export& all) {
  return write(options.output, exports::to_tensor_table(all.inputs));
}

struct Format {
  const char* name;
  Status (*write)(const ExportOptions& options, const Export& all);
};
constexpr Format kFormats[] = {{"perfetto", export_perfetto}, {"csv", export_csv},   {"tensors", export_tensors},
                               {"dot", export_dot},           {"json", export_json}, {"reprise", export_reprise}};

// Parts have said it by their names.
void tell_what_was_written(const ExportOptions& options, const report::Inputs& inputs) {
  const bool by_parts = options.format == "reprise" || (options.format == "csv" && parts_of(inputs).size() > 1);
  if (options.output != "-" && !by_parts) say("wrote " + options.output);
}

int run_export(ExportOptions options) {
  // What opens in a browser is of no use on a terminal.
  if (options.output == "-" && options.format == "perfetto" && isatty(STDOUT_FILENO) == 1) {
    const Result<std::string> free =
        reserve_name(std::filesystem::path(options.files.front()).replace_extension(".json").string());
    if (!free.ok()) return fail(free.status());
    options.output = free.value();
  }
  const Status writable = Outputs().reads(options.files).writes("-o", options.output).check();
  if (!writable.ok()) return fail(writable);
  if (!options.window.empty() && options.format != "dot") {
    return fail_usage(fmt::format("--window is of --format dot; {} has all of it anyway", options.format));
  }
  Progress progress;
  progress.step("reading");
  LoadedFiles files;
  Export all;
  Status status = load(options.files, files);
  if (status.ok()) status = files.find_iteration();  // no export has two recordings in it, and no page either
  if (status.ok()) status = exports::read_run_log_text(options.files, all.run_log);
  if (options.redact) {
    exports::redact(files, all.run_log);
  } else if (options.format == "tensors") {
    files.symbolize();
  }
  files.count_iterations();
  all.inputs = files.inputs();
  for (const Format& format : kFormats) {
    if (!status.ok() || options.format != format.name) continue;
    progress.step("writing");
    status = format.write(options, all);
  }
  progress.clear();
  if (!status.ok()) return fail(status);
  tell_what_was_written(options, all.inputs);
  if (files.log) say_without_end(*files.log);
  return finish_cut_short(files.cut_short);
}

}  // namespace

Action declare_export(CLI::App& app, const ProgramArguments&) {
  auto options = std::make_shared<ExportOptions>();
  app.add_option("files", options->files, "A trace, a plan, a run log, in any order")->required()->expected(1, 3);
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.emplace_back(format.name);
  app.add_option(
         "--format", options->format,
         "perfetto (opens in ui.perfetto.dev), csv, tensors (csv: what each tensor of a plan costs), dot, json, "
         "or reprise: its own files again")
      ->capture_default_str()
      ->check(CLI::IsMember(names));
  app.add_option("-o,--output", options->output,
                 "Where to write it (default: stdout); as reprise NAME makes NAME.trace, NAME.plan and NAME.run, of "
                 "one file, too; "
                 "of several as csv NAME.csv makes NAME.trace.csv, NAME.plan.csv and NAME.run.csv");
  app.add_flag("--redact", options->redact,
               "For others to see: names of kernels, functions, files, marks and the command line become numbers, and "
               "parameters go; sizes, times and order stay");
  app.add_option("--window", options->window,
                 "dot: only so many of a plan's vertices or a trace's calls, as FIRST:COUNT, for graphs that are too "
                 "large to draw");
  return [options] { return run_export(*options); };
}

}  // namespace reprise::tools
