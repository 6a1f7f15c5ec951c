// `reprise dump`: a trace, a plan or a run log as text, one record a line.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "tools/cli/command.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/cli/outputs.h"
#include "tools/report/inputs.h"

namespace reprise::tools {
namespace {

int dump_trace(const std::string& path, const std::string& output) {
  Result<trace::Trace> trace = load_trace_as_recorded(path);
  if (!trace.ok()) return fail(trace.status());
  const Status written = write_file(output, trace::to_text(trace.value()));
  if (!written.ok()) return fail(written);
  return finish_cut_short(cut_short(path, trace.value()));
}

int dump_plan(const std::string& path, const std::string& output) {
  Result<plan::Plan> plan = load_plan(path);
  if (!plan.ok()) return fail(plan.status());
  const Status written = write_file(output, plan::to_text(plan.value()));
  return written.ok() ? 0 : fail(written);
}

int dump_run_log(const std::string& path, const std::string& output) {
  Result<std::string> text = read_file(path);
  const Status status = text.ok() ? write_file(output, text.value()) : text.status();
  if (status.ok()) say_without_end(report::parse_run_log(text.value()));
  return status.ok() ? 0 : fail(status);
}

int run_dump(const std::string& path, const std::string& output) {
  const Status writable = Outputs().reads(path).writes("-o", output).check();
  if (!writable.ok()) return fail(writable);
  Result<FileKind> kind = kind_of(path);
  if (!kind.ok()) return fail(kind.status());
  switch (kind.value()) {
    case FileKind::trace:
      return dump_trace(path, output);
    case FileKind::plan:
      return dump_plan(path, output);
    case FileKind::run_log:
      return dump_run_log(path, output);
    case FileKind::unknown:
      break;
  }
  if (file_size(path) == 0) return fail(load_trace_as_recorded(path).status());
  return fail({StatusCode::corrupt, fmt::format("{}: neither a trace, a plan nor a run log; check the file", path)});
}

}  // namespace

Action declare_dump(CLI::App& app, const ProgramArguments&) {
  struct Options {
    std::string path;
    std::string output = "-";
  };
  auto options = std::make_shared<Options>();
  app.add_option("file", options->path, "The file; what it is shows in its first bytes")->required();
  app.add_option("-o,--output", options->output, "Where to print it (default: stdout)");
  return [options] { return run_dump(options->path, options->output); };
}

}  // namespace reprise::tools
