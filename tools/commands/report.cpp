// `reprise report`: one HTML file from a trace, a plan and a run log, or from those of them that there are.
#include "tools/report/report.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "tools/cli/command.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/cli/progress.h"
#include "tools/commands/page_options.h"
#include "tools/export/redact_files.h"
#include "tools/report/inputs.h"
#include "tools/report/log/redacted.h"

namespace reprise::tools {
namespace {

// A page that can be shown to others.
void redact(const PageOptions& options, LoadedFiles& files) {
  std::string run_log;
  if (!exports::read_run_log_text(options.files, run_log).ok()) run_log.clear();
  exports::redact(files, run_log);
  for (report::Inputs::File& file : files.named) file.name = report::kRedacted;
}

int run_report(const PageOptions& options) {
  if (to_be_compared(options.files)) return compare_files(options);
  std::string page = options.page();
  if (const Status writable = check_page(options, page); !writable.ok()) return fail(writable);
  Progress progress;
  progress.step("reading");
  LoadedFiles files;
  const Status loaded = load(options.files, files);
  if (!loaded.ok()) {
    progress.clear();
    return fail(loaded);
  }
  files.find_plan_of_run();
  if (options.redact) redact(options, files);
  progress.step("laying out the report");
  const report::Inputs inputs = files.examined();
  if (!files.belong_together.ok()) {
    progress.clear();
    return fail(files.belong_together);
  }
  const report::Json data = report::make_data(inputs);
  const Status written =
      write_output(page, !options.output.empty(), options.data_only ? report::as_file(data) : report::make_page(data));
  progress.clear();
  if (!written.ok()) return fail(written);
  say(fmt::format("{}; report: {}", report::make_summary(inputs), page));
  if (report::lacks_plan(inputs)) say(report::plan_is_lacking(inputs));
  if (files.log) say_without_end(*files.log);
  return finish_cut_short(files.cut_short);
}

}  // namespace

Action declare_report(CLI::App& app, const ProgramArguments&) {
  auto options = std::make_shared<PageOptions>();
  app.add_option("files", options->files, "A trace, a plan, a run log, in any order; what `compare` takes is compared")
      ->required()
      ->expected(1, 3);
  add_page_options(app, *options);
  app.add_flag("--redact", options->redact, "Replace names of programs, kernels, functions and files by numbers");
  return [options] { return run_report(*options); };
}

}  // namespace reprise::tools
