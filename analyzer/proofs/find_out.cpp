#include "analyzer/proofs/find_out.h"

#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>
#include <unordered_map>
#include <vector>

#include "analyzer/base/parallel.h"
#include "analyzer/code/store.h"
#include "analyzer/proofs/disassembler.h"
#include "analyzer/proofs/image_analysis.h"
#include "analyzer/proofs/licence.h"
#include "preload/images/code.h"
#include "preload/images/image.h"
#include "preload/trace/kernel_identity.h"

namespace reprise::code {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint64_t kMostImageBytes = uint64_t{1} << 31;
constexpr std::string_view kImageKey = "image.";

struct ImagePlace {
  uint64_t code = 0;
  uint32_t architecture = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::string path;
};

std::optional<ImagePlace> place_of(const std::string& key, const std::string& value) {
  if (!key.starts_with(kImageKey)) return std::nullopt;
  ImagePlace place;
  std::istringstream hash(key.substr(kImageKey.size()));
  std::istringstream words(value);
  hash >> std::hex >> place.code;
  words >> place.architecture >> place.offset >> place.bytes;
  std::getline(words >> std::ws, place.path);
  if (hash.fail() || words.fail() || place.bytes > kMostImageBytes) return std::nullopt;
  return place;
}

Result<std::string> content_of(const ImagePlace& place) {
  std::ifstream file(place.path, std::ios::binary);
  std::string content(place.bytes, '\0');
  if (!file.seekg(static_cast<std::streamoff>(place.offset)) ||
      !file.read(content.data(), static_cast<std::streamsize>(content.size()))) {
    return Status(StatusCode::io_error, fmt::format("{}: the kernels' code cannot be read", place.path));
  }
  // The file may be another one by now.
  const Result<images::Image> image = images::parse_image(content, place.architecture);
  if (!image.ok()) return image.status();
  if (trace::code_of_image(0, image.value().content) == place.code) return content;
  return Status(StatusCode::corrupt, fmt::format("{}: it holds other code than the program has loaded", place.path));
}

using Wanted = std::unordered_map<std::string, const trace::TracedFunction*>;  // by name

struct Task {
  ImagePlace place;
  Wanted wanted;
};

// By image, those of whose kernels something is not known yet.
std::vector<Task> tasks_of(const trace::Trace& trace, const CodeStore& store) {
  std::vector<const trace::TracedFunction*> missing;
  for (const trace::TracedFunction& function : trace.functions) {
    if (function.identity != 0 && !store.load(function.identity).ok()) missing.push_back(&function);
  }
  std::vector<Task> tasks;
  for (const auto& [key, value] : trace.info) {
    const auto place = place_of(key, value);
    if (!place || missing.empty()) continue;
    Task task{*place, {}};
    for (const trace::TracedFunction* function : missing) {
      const uint64_t here = trace::kernel_identity(place->code, function->name, function->parameters);
      if (here == function->identity) task.wanted.emplace(function->name, function);
    }
    if (!task.wanted.empty()) tasks.push_back(std::move(task));
  }
  return tasks;
}

class Finder {
 public:
  Finder(const std::string& facts, const std::string& named, double seconds)
      : store_(facts),
        named_(named),
        end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}

  FoundOut run(const trace::Trace& trace) {
    const std::vector<Task> tasks = tasks_of(trace, store_);
    if (tasks.empty()) return {};
    std::string near;
    for (const Task& task : tasks) {
      if (task.place.path.find("-packages/") != std::string::npos) near = task.place.path;
    }
    const Result<std::string> program = find_disassembler(named_, near);
    if (!program.ok()) return {0, 0, program.status()};
    analyzer::in_parallel(tasks.size(), [&](size_t i) { work_on(tasks[i], program.value()); });
    return found_;
  }

 private:
  void work_on(const Task& task, const std::string& program) {
    if (Clock::now() > end_) {
      const std::lock_guard lock(mutex_);
      found_.left += task.wanted.size();
      return;
    }
    size_t made = 0;
    const Status status = look_at(task, program, made);
    const std::lock_guard lock(mutex_);
    found_.made += made;
    if (found_.problem.ok()) found_.problem = status;
  }

  Status look_at(const Task& task, const std::string& program, size_t& made) const {
    if (is_nvidias_file(task.place.path)) return keep_unknown(task, made);
    const Result<std::string> content = content_of(task.place);
    if (!content.ok()) return content.status();
    const auto cubins = images::cubins_of(content.value(), task.place.architecture);
    if (!cubins.ok()) return cubins.status();
    std::unordered_map<std::string, CodeFacts> all;
    for (const std::string& cubin : cubins.value()) {
      auto found = analyse_cubin(program, cubin, [&](const std::string& name) { return task.wanted.contains(name); });
      if (!found.ok()) return found.status();
      for (CodeFacts& facts : found.value()) {
        const auto [at, fresh] = all.emplace(facts.kernel, facts);
        if (!fresh) at->second.unknown = "two kernels of this name";
      }
    }
    for (const auto& [name, facts] : all) {
      if (Status kept = store_.keep(task.wanted.at(name)->identity, facts); !kept.ok()) return kept;
      ++made;
    }
    return {};
  }

  Status keep_unknown(const Task& task, size_t& made) const {
    for (const auto& [name, function] : task.wanted) {
      CodeFacts facts;
      facts.kernel = name;
      facts.unknown = kNotDisassembled;
      if (Status kept = store_.keep(function->identity, facts); !kept.ok()) return kept;
      ++made;
    }
    return {};
  }

  const CodeStore store_;
  const std::string named_;
  const Clock::time_point end_;
  std::mutex mutex_;
  FoundOut found_;
};

}  // namespace

FoundOut find_out(const trace::Trace& trace, const std::string& facts, const std::string& named, double seconds) {
  return Finder(facts, named, seconds).run(trace);
}

}  // namespace reprise::code
