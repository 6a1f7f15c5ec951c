#include "tools/report/log/demangle.h"

#include <cxxabi.h>

#include <cctype>
#include <cstdlib>
#include <unordered_map>

namespace reprise::report {

std::string demangle(const std::string& name) {
  static auto& known = *new std::unordered_map<std::string, std::string>;  // the same few names, op after op
  const auto [found, added] = known.emplace(name, name);
  if (!added) return found->second;
  int status = 0;
  char* plain = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  if (plain != nullptr) found->second = plain;
  std::free(plain);
  return found->second;
}

std::string demangle_words(const std::string& text) {
  std::string result;
  const auto of_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; };
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && of_name(text[end]) == of_name(text[at])) ++end;
    const std::string word = text.substr(at, end - at);
    result += word.rfind("_Z", 0) == 0 ? demangle(word) : word;
    at = end;
  }
  return result;
}

}  // namespace reprise::report
