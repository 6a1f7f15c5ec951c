// What stands in files of `export --redact` for a text of the program's own: its name, its arguments, a path. It is no
// such text, so nothing is the same as it, nor another: hashes and numbers say what is. Callers: all that compare or
// name what files say of a program; the Redactor, which writes it.
#pragma once
#include <string>
#include <string_view>

namespace reprise::report {

inline constexpr const char* kRedacted = "(redacted)";

inline bool is_redacted(std::string_view text) { return text == kRedacted; }

// For within parentheses.
inline std::string in_parentheses(const std::string& text) { return is_redacted(text) ? "redacted" : text; }

}  // namespace reprise::report
