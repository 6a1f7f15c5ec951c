#include "tools/launch/recording.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "preload/trace/ending.h"
#include "preload/trace/format.h"
#include "preload/trace/reader.h"
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

// What the link leads to; the file itself, where it is none.
std::string behind_link(const std::string& path) {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::read_symlink(path, error);
  return error ? path : file.string();
}

// By another name, or where that cannot be, as it may be another disk, as a copy.
Status move_file(const std::string& from, const std::string& to) {
  std::error_code error;
  std::filesystem::rename(from, to, error);
  if (!error) return {};
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing, error);
  if (error) {
    return {StatusCode::io_error, fmt::format("{}: cannot be moved to {}: {}", from, to, error.message())};
  }
  std::filesystem::remove(from, error);
  return {};
}

// What the user named has nothing of a program that is not chosen.
Status put_away(const std::string& path, bool keep, const std::string& to) {
  const std::string file = behind_link(path);
  if (!keep) {
    unlink(file.c_str());
    return {};
  }
  if (file == to) return {};
  if (path == to) unlink(path.c_str());
  return move_file(file, to);
}

}  // namespace

std::vector<std::string> recordings_beside(const std::string& own) {
  std::vector<std::string> all;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(own).parent_path(), error)) {
    const std::string path = entry.path().string();
    if (path.ends_with(".trace") && path != own) all.push_back(path);
  }
  return all;
}

uint64_t recorded_since(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (!file) return 0;
  std::string beginning(trace::kMaxChunkBytes, '\0');  // the first chunk has it
  beginning.resize(std::fread(beginning.data(), 1, beginning.size(), file.get()));
  const Result<trace::Trace> trace = trace::parse_trace(beginning, path);
  if (!trace.ok()) return 0;
  const auto found = trace.value().info.find("time.start_ns");
  return found == trace.value().info.end() ? 0 : std::strtoull(found->second.c_str(), nullptr, 10);
}

Status choose_recording(const std::string& own, const std::string& chosen, bool keep) {
  Status status;
  for (const std::string& path : recordings_beside(own)) {
    if (const Status moved = path == chosen ? Status() : put_away(path, keep, path); !moved.ok()) status = moved;
  }
  if (chosen == own) return status;
  if (const Status moved = put_away(own, keep, std::filesystem::path(own).replace_filename("first.trace")); !moved.ok())
    status = moved;
  if (chosen.empty()) return status;
  const Status moved = move_file(behind_link(chosen), behind_link(own));
  if (moved.ok() && behind_link(chosen) != chosen) unlink(chosen.c_str());
  return moved.ok() ? status : moved;
}

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
