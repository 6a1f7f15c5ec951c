// `reprise report`: one HTML file from a trace, a plan and a run log, or from those of them that there are.
#include "tools/report/report.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "tools/cli/command.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/cli/outputs.h"
#include "tools/cli/progress.h"
#include "tools/report/compare/compare.h"
#include "tools/report/compare/two_plans.h"
#include "tools/report/inputs.h"
#include "tools/report/page.h"

namespace reprise::tools {
namespace {

struct ReportOptions {
  std::vector<std::string> files;
  std::string output;
  bool data_only = false;
};

// Those that cannot be read are none, either.
std::vector<std::string> all_but_run_logs(const std::vector<std::string>& files) {
  std::vector<std::string> others;
  for (const std::string& path : files) {
    const Result<FileKind> kind = kind_of(path);
    if (!kind.ok() || kind.value() != FileKind::run_log) others.push_back(path);
  }
  return others;
}

std::string text_of(const report::Json& data) {
  return data.dump(1, ' ', false, report::Json::error_handler_t::replace) + "\n";
}

int write_comparison(const ReportOptions& options, const report::Json& data) {
  const Status written = write_file(
      options.output, options.data_only ? text_of(data) : report::make_page(data, report::kCompareScript, true));
  if (!written.ok()) return fail(written);
  std::string summary = report::compare_summary(data);
  if (summary.ends_with('.')) summary.pop_back();  // the line goes on
  say(fmt::format("A: {}, B: {}: {}; report: {}", data.at("names").at(0).get<std::string>(),
                  data.at("names").at(1).get<std::string>(), summary, options.output));
  return 0;
}

int compare_runs(const ReportOptions& options) {
  Result<report::RunLog> before = report::read_run_log(options.files[0]);
  if (!before.ok()) return fail(before.status());
  Result<report::RunLog> after = report::read_run_log(options.files[1]);
  if (!after.ok()) return fail(after.status());
  return write_comparison(
      options, report::compare_data({options.files[0], &before.value()}, {options.files[1], &after.value()}));
}

int compare_plans(const ReportOptions& options) {
  Progress progress;
  progress.step("reading");
  TwoPlans files;
  const Status loaded = load(options.files, files);
  progress.clear();
  if (!loaded.ok()) return fail(loaded);
  const TwoPlans::One& a = files.plans[0];
  const TwoPlans::One& b = files.plans[1];
  const report::Json data = report::compare_data({a.path, &a.plan, a.bound_ns}, {b.path, &b.plan, b.bound_ns},
                                                 files.trace ? &*files.trace : nullptr);
  const int written = write_comparison(options, data);
  return written == 0 ? finish_cut_short(files.cut_short) : written;
}

int run_report(const ReportOptions& options) {
  const Status writable = Outputs().reads(options.files).writes("-o", options.output).check();
  if (!writable.ok()) return fail(writable);
  const std::vector<std::string> others = all_but_run_logs(options.files);
  const bool two_runs = options.files.size() == others.size() + 2;
  if (two_runs && others.empty()) return compare_runs(options);
  if (two_runs) {
    return fail({StatusCode::invalid_argument,
                 fmt::format("{}: two run logs are compared without any other file; leave this one out", others[0])});
  }
  if (are_two_plans(options.files)) return compare_plans(options);
  Progress progress;
  progress.step("reading");
  LoadedFiles files;
  const Status loaded = load(options.files, files);
  if (!loaded.ok()) {
    progress.clear();
    return fail(loaded);
  }
  files.find_plan_of_run();
  progress.step("laying out the report");
  const report::Inputs inputs = files.examined();
  if (!files.belong_together.ok()) {
    progress.clear();
    return fail(files.belong_together);
  }
  const report::Json data = report::make_data(inputs);
  const std::string content = options.data_only ? text_of(data) : report::make_page(data);
  const Status written = write_file(options.output, content);
  progress.clear();
  if (!written.ok()) return fail(written);
  say(fmt::format("{}; report: {}", report::make_summary(inputs), options.output));
  if (report::lacks_plan(inputs)) say(report::plan_is_lacking(inputs));
  if (files.log) say_without_end(*files.log);
  return finish_cut_short(files.cut_short);
}

}  // namespace

Action declare_report(CLI::App& app, const ProgramArguments&) {
  auto options = std::make_shared<ReportOptions>();
  app.add_option(
         "files", options->files,
         "A trace, a plan, a run log, in any order; or to compare: two run logs alone, or two plans, which may have "
         "their trace with them")
      ->required()
      ->expected(1, 3);
  app.add_option("-o,--output", options->output, "The report to write")->required();
  app.add_flag("--json", options->data_only, "Write the report's data as JSON instead of a page");
  return [options] { return run_report(*options); };
}

}  // namespace reprise::tools
