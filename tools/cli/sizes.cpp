#include "tools/cli/sizes.h"

#include <fmt/core.h>

#include <cctype>
#include <charconv>
#include <cmath>

namespace reprise::tools {
namespace {

struct Unit {
  std::string_view name;  // lower case
  double bytes;
};
constexpr Unit kUnits[] = {{"", 1},         {"b", 1},     {"k", 0x1p10}, {"kib", 0x1p10}, {"kb", 1e3}, {"m", 0x1p20},
                           {"mib", 0x1p20}, {"mb", 1e6},  {"g", 0x1p30}, {"gib", 0x1p30}, {"gb", 1e9}, {"t", 0x1p40},
                           {"tib", 0x1p40}, {"tb", 1e12}, {"p", 0x1p50}, {"pib", 0x1p50}, {"pb", 1e15}};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::string lower(std::string_view text) {
  std::string result;
  for (const char c : trimmed(text)) result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

// Splits "1.5gib" into 1.5 and "gib". False when it does not begin with a number.
bool split_number(const std::string& text, double& number, std::string_view& rest) {
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (parsed.ec != std::errc() || !std::isfinite(number)) return false;
  rest = trimmed(std::string_view(parsed.ptr, static_cast<size_t>(end - parsed.ptr)));
  return true;
}

Status not_a_size(std::string_view text) {
  return {StatusCode::invalid_argument,
          fmt::format("'{}' is not a size; write for example 12GiB, 800MiB, plain bytes or 50%", text)};
}

Result<Budget> parse_percent(double number, std::string_view text, std::string_view option) {
  if (number <= 0 || number > 100) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("{} {}: a percentage is above 0% and at most 100%; write for example 50%", option, text));
  }
  Budget budget;
  budget.percent = number;
  return budget;
}

}  // namespace

Result<uint64_t> parse_size(std::string_view text) {
  const std::string lowered = lower(text);
  double number = 0;
  std::string_view rest;
  if (!split_number(lowered, number, rest)) return not_a_size(text);
  for (const Unit& unit : kUnits) {
    if (rest != unit.name) continue;
    const double bytes = number * unit.bytes;
    if (bytes < 0)
      return Status(StatusCode::invalid_argument,
                    fmt::format("'{}' is negative; write for example 12GiB or 50%", text));
    if (bytes >= 0x1p63)
      return Status(StatusCode::invalid_argument, fmt::format("'{}' is too large; check the unit", text));
    return static_cast<uint64_t>(std::llround(bytes));
  }
  return not_a_size(text);
}

Result<Budget> parse_budget(std::string_view text, std::string_view option) {
  const std::string lowered = lower(text);
  double number = 0;
  std::string_view rest;
  if (split_number(lowered, number, rest) && rest == "%") return parse_percent(number, text, option);
  Result<uint64_t> size = parse_size(text);
  if (!size.ok()) return Status(StatusCode::invalid_argument, fmt::format("{}: {}", option, size.status().message()));
  Budget budget;
  budget.bytes = size.value();
  if (budget.bytes < kSmallestBudget) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("{} {}: too small to hold anything; write for example 12GiB or 50%", option, text));
  }
  if (budget.bytes > kLargestBudget) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("{} {}: more than any device has; check the unit", option, text));
  }
  return budget;
}

std::string to_variable(const Budget& budget) {
  return budget.bytes > 0 ? fmt::format("{}", budget.bytes) : fmt::format("{:g}%", budget.percent);
}

std::string format_bytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  const char* const names[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1023.5 && unit + 1 < std::size(names)) {
    value /= 1024;
    ++unit;
  }
  return value < 99.95 ? fmt::format("{:.1f} {}", value, names[unit]) : fmt::format("{:.0f} {}", value, names[unit]);
}

std::string format_duration(uint64_t nanoseconds) {
  const double value = static_cast<double>(nanoseconds);
  if (value >= 1e9) return fmt::format("{:.2f} s", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.1f} ms", value / 1e6);
  if (value >= 1e3) return fmt::format("{:.0f} us", value / 1e3);
  return fmt::format("{} ns", nanoseconds);
}

}  // namespace reprise::tools
