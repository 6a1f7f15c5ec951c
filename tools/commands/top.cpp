// `reprise top`: what costs most, on the terminal.
#include "tools/export/top.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "tools/cli/command.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/cli/progress.h"
#include "tools/report/inputs.h"

namespace reprise::tools {
namespace {

// A run log has no kernels and no tensors: "job.trace" and "job.plan" beside "job.run" are taken with it where they are
// of this run.
Status load_with_what_lies_beside(const std::vector<std::string>& paths, LoadedFiles& files) {
  Status loaded = load(paths, files);
  if (!loaded.ok() || files.trace || files.plan) return loaded;
  std::vector<std::string> found = paths;
  for (const char* ending : {".trace", ".plan"}) {
    const std::string beside = std::filesystem::path(paths.front()).replace_extension(ending);
    if (file_size(beside) == 0) continue;
    found.push_back(beside);
    LoadedFiles with;
    if (!load(found, with).ok() || !with.find_iteration().ok()) found.pop_back();
  }
  if (found.size() == paths.size()) return {};
  files = LoadedFiles();
  return load(found, files);
}

int run_top(const std::vector<std::string>& paths) {
  Progress progress;
  progress.step("reading");
  LoadedFiles files;
  const Status loaded = load_with_what_lies_beside(paths, files);
  if (!loaded.ok()) {
    progress.clear();
    return fail(loaded);
  }
  files.find_plan_of_run();
  const report::Inputs inputs = files.examined();
  progress.clear();
  if (!files.belong_together.ok()) return fail(files.belong_together);
  const std::string text = exports::top_text(inputs);
  if (text.empty()) {
    return fail({StatusCode::invalid_argument,
                 fmt::format("top: {} has no call sites, tensors or kernels; add its trace or plan, which `reprise run "
                             "--trace FILE --save-plan FILE` keeps",
                             paths.front())});
  }
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
