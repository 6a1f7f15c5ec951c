// A key's value in one parsed line of the run log, under its name or the one that it had before. Callers: the report's
// reader and the summary of `run --defragment`. Nothing throws: what is missing or of another type is 0 or empty.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "preload/base/run_log_keys.h"

namespace reprise::tools {

inline const nlohmann::json* find_key(const nlohmann::json& line, const char* name, const char* old_name) {
  auto found = line.find(name);
  if (found == line.end() && *old_name != '\0') found = line.find(old_name);
  return found == line.end() ? nullptr : &*found;
}

template <typename Tag>
uint64_t value_of(const nlohmann::json& line, const run_log::Key<Tag, run_log::Number>& key) {
  const nlohmann::json* found = find_key(line, key.name, key.old_name);
  if (found == nullptr || !found->is_number()) return 0;
  if (found->is_number_unsigned()) return found->get<uint64_t>();
  const double value = found->get<double>();
  if (value >= 0x1p64) return UINT64_MAX;
  return value > 0 ? static_cast<uint64_t>(value) : 0;
}

// Texts of the program's own (kernel names, paths) may hold anything; numbers stand for themselves.
template <typename Tag>
std::string value_of(const nlohmann::json& line, const run_log::Key<Tag, run_log::Text>& key) {
  const nlohmann::json* found = find_key(line, key.name, key.old_name);
  if (found == nullptr) return {};
  return found->is_string() ? found->get<std::string>()
                            : found->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

inline std::string kind_of(const nlohmann::json& line) {
  const auto found = line.find("kind");
  return found != line.end() && found->is_string() ? found->get<std::string>() : std::string();
}

template <typename Tag>
bool says(const std::string& text, const run_log::Word<Tag>& word) {
  return text == word.name || (*word.old_name != '\0' && text == word.old_name);
}

}  // namespace reprise::tools
