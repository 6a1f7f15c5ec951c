#include "tools/launch/recording.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <cstring>

#include "preload/trace/ending.h"
#include "tools/cli/files.h"
#include "tools/cli/sizes.h"

namespace reprise::tools {
namespace {

std::string cut_short(const std::string& name, const std::string& path, const std::string& why) {
  return fmt::format("{}: the recording is cut short ({}): {}; report, dump and export use what is there", name,
                     format_bytes(file_size(path)), why);
}

std::string why_it_has_no_end(const Outcome& outcome) {
  if (outcome.signal != 0) {
    return fmt::format("the program died of signal {} ({})", outcome.signal, strsignal(outcome.signal));
  }
  return "the program ended without its exit handlers, and what it called in its last moments may be missing";
}

}  // namespace

Recording look_at_recording(const std::string& name, const std::string& path, const Outcome& outcome) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return {RecordingState::none, ""};
  if (!S_ISREG(info.st_mode)) return {RecordingState::whole, name};  // a pipe or /dev/null: nothing to look at
  if (info.st_size == 0) {
    return {RecordingState::failed, fmt::format("{}: nothing could be written; make room, or name another file", name)};
  }
  const Result<trace::Ending> ending = trace::read_ending(path);
  if (!ending.ok()) return {RecordingState::failed, ending.status().message()};
  if (const uint32_t error = ending.value().stopped_by; error != 0) {
    const std::string why = std::string(std::strerror(static_cast<int>(error))) + "; make room and record again";
    return {RecordingState::failed, cut_short(name, path, why)};
  }
  if (!ending.value().ended) return {RecordingState::cut_short, cut_short(name, path, why_it_has_no_end(outcome))};
  const uint64_t lost = ending.value().dropped;
  return {RecordingState::whole, fmt::format("recorded {} ({}){}", name, format_bytes(file_size(path)),
                                             lost == 0 ? "" : fmt::format(", but {} records were lost", lost))};
}

}  // namespace reprise::tools
