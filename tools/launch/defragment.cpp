#include "tools/launch/defragment.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "preload/base/readable.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/cli/run_log_value.h"
#include "tools/cli/sizes.h"
#include "tools/launch/old_files.h"

namespace reprise::tools {
namespace {

// Every process that used the device left a line.
void say_what_it_saved(const std::string& path) {
  const Result<std::string> log = read_file(path);
  std::istringstream lines(log.ok() ? log.value() : std::string());
  bool said = false;
  for (std::string line; std::getline(lines, line);) {
    const std::string summary = defragment_summary(line);
    if (summary.empty()) continue;
    say(summary);
    said = true;
  }
  if (!said) {
    say("nothing was defragmented: where no line before this one gives another reason, the program asked for no large "
        "device memory");
  }
}

}  // namespace

std::string defragment_summary(const std::string& line) {
  const nlohmann::json data = nlohmann::json::parse(line, nullptr, false);
  if (!data.is_object() || kind_of(data) != run_log::defragment::line.name) return {};
  const auto count = [&](const auto& key) { return value_of(data, key); };
  using namespace run_log::defragment;
  const uint64_t live = count(peak_live_bytes);
  const uint64_t reserved = count(peak_reserved_bytes);
  const uint64_t served = count(exact) + count(single) + count(multiple) + count(insufficient);
  if (reserved == 0) return {};
  return fmt::format(
      "large allocations: at most {} live, in {} of device memory ({} % used; in whole chunks the live ones take "
      "{}); "
      "{} of {} found at their size, {} split, {} stitched",
      format_bytes(live), format_bytes(reserved),
      decimal(100.0 * static_cast<double>(live), static_cast<double>(reserved), 1),
      format_bytes(count(peak_live_chunks) * count(chunk_bytes)), count(exact), served, count(splits), count(stitches));
}

int run_defragmented(SessionOptions& options, const ProgramArguments& program) {
  Result<Settings> checked = check_session(options, program);
  if (!checked.ok()) return fail(checked.status());
  Settings settings = checked.value();
  Result<TemporaryFolder> folder = TemporaryFolder::create();
  if (!folder.ok()) return fail(folder.status());
  if (settings.run_log.empty()) settings.run_log = folder.value().file("program.run");
  OldFiles old;
  old.set_aside(options.run_log);
  Result<Outcome> outcome = run_program(settings, program);
  if (!outcome.ok()) return fail(outcome.status());
  say_what_it_saved(settings.run_log);
  old.settle();
  folder.value().remove();
  return end_like(outcome.value());
}

}  // namespace reprise::tools
