#include "tools/report/log/recognize.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tools/cli/json_depth.h"
#include "tools/cli/run_log_value.h"

namespace reprise::report {
namespace {

using nlohmann::json;

// Longer lines are not ours, and a log of ours has a whole line before that many bytes.
constexpr std::streamsize kMostOfALine = 256 * 1024;
constexpr std::streamoff kMostOfAFile = 16 * 1024 * 1024;

constexpr const char* kKinds[] = {
#define RUN_LOG_LINE(kind, help) #kind,
#include "preload/base/run_log_keys.def"
};

struct KeyRow {
  std::string_view kind;
  const char* name;
  const char* old_name;
};
constexpr KeyRow kKeys[] = {
#define RUN_LOG_KEY(kind, name, Value, unit, old_name, help) {#kind, #name, old_name},
#include "preload/base/run_log_keys.def"
};

bool is_line_of_ours(const char* text) {
  if (text[0] != '{' || tools::json_depth(text) > tools::kMostJsonDepth) return false;
  const json line = json::parse(text, nullptr, false);
  if (!line.is_object()) return false;
  const std::string kind = tools::kind_of(line);
  if (kind == "every" || std::find(std::begin(kKinds), std::end(kKinds), kind) == std::end(kKinds)) return false;
  return std::any_of(std::begin(kKeys), std::end(kKeys), [&](const KeyRow& key) {
    return (key.kind == kind || key.kind == "every") && tools::find_key(line, key.name, key.old_name) != nullptr;
  });
}

}  // namespace

bool is_run_log(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const auto line = std::make_unique<char[]>(kMostOfALine);
  for (std::streamoff read = 0; file && read < kMostOfAFile;) {
    file.getline(line.get(), kMostOfALine);
    if (file.gcount() == 0) break;
    read += file.gcount();
    const bool whole = !file.fail();
    if (whole && is_line_of_ours(line.get())) return true;
    if (whole || file.eof()) continue;
    file.clear();
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    read += file.gcount();
  }
  return false;
}

}  // namespace reprise::report
