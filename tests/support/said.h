// Whether a program's stderr says a cause of preload/base/causes.def, and with which values: by the row's sentence, so
// that tests need not know its words. Callers: tests that run programs under the library or listen to it.
#pragma once
#include "preload/base/causes.h"
#include "tests/support/test.h"

namespace reprise {

// By the names of the holes, as they are shown: {"needed", "2.0 MiB"}.
using SaidValues = std::map<std::string, std::string>;

inline bool may_stand(Unit unit, const std::string& text) {
  if (unit == Unit::text) return true;
  return !text.empty() && isdigit(text[0]) != 0 &&
         text.find_first_not_of("0123456789. KMGTPEiBms") == std::string::npos;
}

// Does the text begin with this sentence, and `whole`, is it nothing else? Values of a hole that `found` has must be
// those; it gets the others.
inline bool is_sentence(std::string_view text, std::string_view sentence, bool whole, SaidValues* found) {
  const Piece piece = take_piece(&sentence);
  if (!text.starts_with(piece.words)) return false;
  text.remove_prefix(piece.words.size());
  if (piece.name.empty()) return !whole || text.empty();
  const std::string name(piece.name);
  for (size_t size = 0; size <= text.size(); ++size) {
    SaidValues values = *found;
    const std::string value(text.substr(0, size));
    if (values.emplace(name, value).first->second != value || !may_stand(piece.unit, value)) continue;
    if (!is_sentence(text.substr(size), sentence, whole, &values)) continue;
    *found = values;
    return true;
  }
  return false;
}

// The values of the first line that says it with these, if one does. A part may stand anywhere in a line.
inline std::optional<SaidValues> said(const std::string& err, Cause cause, const SaidValues& values = {}) {
  const CauseRow& row = row_of(cause);
  std::istringstream lines(err);
  for (std::string line; std::getline(lines, line);) {
    SaidValues found = values;
    if (row.severity != LogLevel::part) {
      if (line.starts_with("reprise: ") && is_sentence(line.substr(9), row.sentence, true, &found)) return found;
      continue;
    }
    for (size_t at = 0; at < line.size(); ++at) {
      if (is_sentence(std::string_view(line).substr(at), row.sentence, false, &found)) return found;
    }
  }
  return std::nullopt;
}

// For EXPECT_TRUE and EXPECT_FALSE.
inline testing::AssertionResult has_cause(const std::string& err, Cause cause, const SaidValues& values = {}) {
  const bool found = said(err, cause, values).has_value();
  auto result = found ? testing::AssertionSuccess() : testing::AssertionFailure();
  result << (found ? "said " : "not said: ") << row_of(cause).id;
  for (const auto& [name, value] : values) result << ", " << name << " " << value;
  return result << ", in: " << err.substr(0, 20000);
}

}  // namespace reprise
