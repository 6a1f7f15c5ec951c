// `reprise export`: traces, plans and run logs in the formats of other tools.
#include "tools/export/export.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "tools/cli/command.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/report/inputs.h"

namespace reprise::tools {
namespace {

struct Format {
  const char* name;
  Result<std::string> (*make)(const report::Inputs& inputs);
};
constexpr Format kFormats[] = {
    {"perfetto", exports::to_perfetto}, {"csv", exports::to_csv}, {"dot", exports::to_dot}, {"json", exports::to_json}};

struct ExportOptions {
  std::vector<std::string> files;
  std::string format;
  std::string output = "-";
};

int run_export(const ExportOptions& options) {
  const Status writable = check_writable(options.output);
  if (!writable.ok()) return fail(writable);
  Progress progress;
  progress.step("reading");
  LoadedFiles files;
  Status status = load(options.files, files);
  for (const Format& format : kFormats) {
    if (!status.ok() || options.format != format.name) continue;
    progress.step("writing");
    Result<std::string> content = format.make(files.inputs());
    status = content.ok() ? write_file(options.output, content.value()) : content.status();
  }
  progress.clear();
  return status.ok() ? finish_incomplete(files.incomplete) : fail(status);
}

}  // namespace

Action declare_export(CLI::App& app, const ProgramArguments&) {
  auto options = std::make_shared<ExportOptions>();
  app.add_option("files", options->files, "A trace, a plan, a run log, in any order")->required()->expected(1, 3);
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.emplace_back(format.name);
  app.add_option("--format", options->format, "perfetto (opens in ui.perfetto.dev), csv, dot or json")
      ->required()
      ->check(CLI::IsMember(names));
  app.add_option("-o,--output", options->output, "Where to write it (default: stdout)");
  return [options] { return run_export(*options); };
}

}  // namespace reprise::tools
