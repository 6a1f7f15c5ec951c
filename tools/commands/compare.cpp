// `reprise compare`: what changed from one run or plan to another; and the options that it shares with `report`.
#include "tools/report/compare/compare.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "tools/cli/command.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/cli/outputs.h"
#include "tools/cli/progress.h"
#include "tools/commands/page_options.h"
#include "tools/report/compare/two_plans.h"
#include "tools/report/inputs.h"
#include "tools/report/page.h"

namespace reprise::tools {
namespace {

bool is_run_log(const std::string& path) {
  const Result<FileKind> kind = kind_of(path);
  return kind.ok() && kind.value() == FileKind::run_log;
}

bool are_two_runs(const std::vector<std::string>& files) {
  return std::count_if(files.begin(), files.end(), is_run_log) == 2;
}

int write_comparison(const PageOptions& options, std::string page, const report::Json& data) {
  const Status written =
      write_output(page, !options.output.empty(),
                   options.data_only ? report::as_file(data) : report::make_page(data, report::kCompareScript, true));
  if (!written.ok()) return fail(written);
  std::string summary = report::compare_summary(data);
  if (summary.ends_with('.')) summary.pop_back();  // the line goes on
  say(fmt::format("A: {}, B: {}: {}; report: {}", data.at("names").at(0).get<std::string>(),
                  data.at("names").at(1).get<std::string>(), summary, page));
  return 0;
}

int compare_runs(const PageOptions& options, const std::string& page) {
  for (const std::string& file : options.files) {
    if (is_run_log(file)) continue;
    return fail({StatusCode::invalid_argument,
                 fmt::format("{}: two run logs are compared without any other file; leave this one out", file)});
  }
  Result<report::RunLog> before = report::read_run_log(options.files[0]);
  if (!before.ok()) return fail(before.status());
  Result<report::RunLog> after = report::read_run_log(options.files[1]);
  if (!after.ok()) return fail(after.status());
  return write_comparison(
      options, page, report::compare_data({options.files[0], &before.value()}, {options.files[1], &after.value()}));
}

int compare_plans(const PageOptions& options, const std::string& page) {
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
  const int written = write_comparison(options, page, data);
  return written == 0 ? finish_cut_short(files.cut_short) : written;
}

}  // namespace

std::string PageOptions::page() const {
  if (!output.empty()) return output;
  return std::filesystem::path(files.front()).replace_extension(data_only ? ".json" : ".html").string();
}

void add_page_options(CLI::App& app, PageOptions& options) {
  app.add_option("-o,--output", options.output, "What to write (default: a free name beside the first file)");
  app.add_flag("--json", options.data_only, "Write the data as JSON instead of a page");
}

Status check_page(const PageOptions& options, const std::string& page) {
  Outputs outputs;
  outputs.reads(options.files);
  return (options.output.empty() ? outputs.chooses(page) : outputs.writes("-o", page)).check();
}

bool to_be_compared(const std::vector<std::string>& files) { return are_two_runs(files) || are_two_plans(files); }

int compare_files(const PageOptions& options) {
  const std::string page = options.page();
  if (const Status writable = check_page(options, page); !writable.ok()) return fail(writable);
  if (are_two_runs(options.files)) return compare_runs(options, page);
  if (are_two_plans(options.files)) return compare_plans(options, page);
  for (const std::string& file : options.files) {
    if (const Status readable = check_readable(file); !readable.ok()) return fail(readable);
  }
  return fail_usage(
      "compare: two run logs, or two plans, which may have their trace with them; `reprise report` shows other files");
}

Action declare_compare(CLI::App& app, const ProgramArguments&) {
  auto options = std::make_shared<PageOptions>();
  app.add_option("files", options->files, "Two run logs, or two plans, which may have their trace with them")
      ->required()
      ->expected(2, 3);
  add_page_options(app, *options);
  return [options] { return compare_files(*options); };
}

}  // namespace reprise::tools
