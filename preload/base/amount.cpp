#include "preload/base/amount.h"

#include <charconv>
#include <cmath>

#include "preload/base/causes.h"

namespace reprise {
namespace {

// tolower() asks the locale, which is the program's.
constexpr char lower(char letter) noexcept {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool same_letters(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

const SizeUnit* find_unit(std::string_view name) noexcept {
  for (const SizeUnit& unit : kSizeUnits) {
    if (same_letters(name, unit.name)) return &unit;
  }
  return nullptr;
}

}  // namespace

AmountProblem read_amount(std::string_view text, WrittenAmount* written) noexcept {
  *written = WrittenAmount{};
  text = trimmed(text);
  double number = 0;
  const char* end = text.data() + text.size();
  // Not strtod, which takes the program's decimal point for its own.
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || !std::isfinite(number)) return AmountProblem::no_amount;
  const std::string_view suffix = trimmed(std::string_view(rest, static_cast<size_t>(end - rest)));
  if (suffix == "%") {
    written->is_percent = true;
    written->percent = number;
    return AmountProblem::none;
  }
  const SizeUnit* unit = find_unit(suffix);
  if (unit == nullptr) return AmountProblem::no_amount;
  const double bytes = number * unit->bytes;
  if (bytes < 0) return AmountProblem::negative;
  if (bytes >= 0x1p63) return AmountProblem::too_large;
  written->bytes = static_cast<uint64_t>(std::llround(bytes));
  return AmountProblem::none;
}

const char* why_no_amount(std::string_view text) noexcept {
  WrittenAmount written;
  const AmountProblem problem = read_amount(text, &written);
  if (written.is_percent) return written.percent > 100 ? phrase<Cause::above_all>() : phrase<Cause::no_share>();
  if (problem == AmountProblem::negative || (problem == AmountProblem::none && written.bytes == 0)) {
    return phrase<Cause::no_amount>();
  }
  if (problem == AmountProblem::too_large || problem == AmountProblem::none) return phrase<Cause::too_much>();
  return phrase<Cause::not_an_amount>();
}

bool parse_amount(const char* text, Amount* amount) noexcept {
  WrittenAmount written;
  if (text == nullptr || read_amount(text, &written) != AmountProblem::none) return false;
  const bool possible = written.is_percent ? written.percent > 0 && written.percent <= 100
                                           : written.bytes > 0 && written.bytes <= kLargestAmount;
  if (possible) *amount = Amount{written.bytes, written.percent / 100};
  return possible;
}

}  // namespace reprise
