// `reprise top`: what costs most, on the terminal.
#include "tools/export/top.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "tools/cli/command.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/cli/progress.h"
#include "tools/report/inputs.h"

namespace reprise::tools {
namespace {

int run_top(const std::vector<std::string>& paths) {
  Progress progress;
  progress.step("reading");
  LoadedFiles files;
  const Status loaded = load(paths, files);
  if (!loaded.ok()) {
    progress.clear();
    return fail(loaded);
  }
  files.find_plan_of_run();
  const report::Inputs inputs = files.examined();
  progress.clear();
  if (!files.belong_together.ok()) return fail(files.belong_together);
  const std::string text = exports::top_text(inputs);
  if (text.empty())
    return fail({StatusCode::invalid_argument, "top: a run log alone says neither; add its trace or plan"});
  const Status written = write_file("-", text);
  return written.ok() ? finish_cut_short(files.cut_short) : fail(written);
}

}  // namespace

Action declare_top(CLI::App& app, const ProgramArguments&) {
  auto files = std::make_shared<std::vector<std::string>>();
  app.add_option("files", *files, "A trace, a plan, a run log, in any order")->required()->expected(1, 3);
  return [files] { return run_top(*files); };
}

}  // namespace reprise::tools
