// Sizes and other figures for people: "12.0 GiB", "312 MiB", "17 B". In the victim process, too. Callers: messages of
// the replay, and all that the command line prints.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

#include "preload/base/amount.h"

namespace reprise {

// `value` of these units with so many decimal places, half of the last place rounded away from zero, as people round:
// printf and fmt take the even neighbour, and know decimal halves like 1.15 only as what is nearest to them in binary.
// decimal() of tools/report/page/core.js takes the same steps, so that a page's texts and its scripts say the same.
inline std::string decimal(double value, double unit, int places) {
  double scale = 1;
  for (int i = 0; i < places; ++i) scale *= 10;
  const double size = std::fabs(value);
  const double rest = std::fmod(size, unit);  // exact
  double whole = std::round((size - rest) / unit);
  double part = std::floor((2 * scale * rest + unit) / (2 * unit));
  if (part >= scale) {
    whole += 1;
    part -= scale;
  }
  char text[340];  // the largest double has 309 digits
  const char* const sign = value < 0 && whole + part > 0 ? "-" : "";
  if (places == 0) {
    std::snprintf(text, sizeof text, "%s%.0f", sign, whole);
  } else {
    std::snprintf(text, sizeof text, "%s%.0f.%0*.0f", sign, whole, places, part);
  }
  return text;
}

// "+0.4", "-12", "0": of what is told as more or less.
inline std::string signed_decimal(double value, int places) {
  const std::string text = decimal(value, 1, places);
  return value > 0 && text.find_first_of("123456789") != std::string::npos ? '+' + text : text;
}

inline std::string readable_bytes(uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  const SizeUnit* shown = nullptr;
  const auto value = static_cast<double>(bytes);
  for (const SizeUnit& unit : kSizeUnits) {
    if (!unit.name.ends_with("iB")) continue;
    if (shown == nullptr || value / shown->bytes >= 1023.5) shown = &unit;
  }
  return decimal(value, shown->bytes, value / shown->bytes < 99.95 ? 1 : 0) + ' ' + shown->name.data();
}

}  // namespace reprise
