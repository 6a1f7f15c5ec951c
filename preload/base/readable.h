// Sizes for people: "12.0 GiB", "312 MiB", "17 B". In the victim process, too. Callers: messages of the replay, and
// all that the command line prints.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>

#include "preload/base/amount.h"

namespace reprise {

inline std::string readable_bytes(uint64_t bytes) {
  char text[40];
  if (bytes < 1024) return std::to_string(bytes) + " B";
  const SizeUnit* shown = nullptr;
  const auto value = static_cast<double>(bytes);
  for (const SizeUnit& unit : kSizeUnits) {
    if (!unit.name.ends_with("iB")) continue;
    if (shown == nullptr || value / shown->bytes >= 1023.5) shown = &unit;
  }
  const double number = value / shown->bytes;
  std::snprintf(text, sizeof text, number < 99.95 ? "%.1f %s" : "%.0f %s", number, shown->name.data());
  return text;
}

}  // namespace reprise
