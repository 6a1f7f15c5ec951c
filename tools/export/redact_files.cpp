#include "tools/export/redact_files.h"

#include <utility>

#include "tools/cli/files.h"
#include "tools/export/redact.h"

namespace reprise::exports {

Status read_run_log_text(const std::vector<std::string>& paths, std::string& text) {
  for (const std::string& path : paths) {
    const Result<tools::FileKind> kind = tools::kind_of(path);
    if (!kind.ok() || kind.value() != tools::FileKind::run_log) continue;
    Result<std::string> content = tools::read_file(path);
    if (!content.ok()) return content.status();
    text = std::move(content.value());
  }
  return {};
}

// The trace is redacted first, because plan and run log quote its names. Call sites get their lines before that,
// because lines are looked up by names.
void redact(tools::LoadedFiles& files, std::string& run_log) {
  files.symbolize();
  Redactor redactor;
  if (files.trace) redactor.redact(*files.trace);
  if (files.plan) redactor.redact(*files.plan);
  run_log = redactor.redact_run_log(run_log);
  if (files.log) files.log = report::parse_run_log(run_log);
}

}  // namespace reprise::exports
