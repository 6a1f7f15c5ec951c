// Sizes and budgets as people write them ("12GiB", "1.5G", "800MB", "50%") and back. Callers: every command with such
// an option, and all output that shows sizes. Errors are one clear line with StatusCode::invalid_argument.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "preload/base/amount.h"
#include "preload/trace/status.h"

namespace reprise::tools {

inline constexpr uint64_t kLargestBudget = kLargestAmount;
// No program fits less than a page: such a number mostly lacks its unit.
inline constexpr uint64_t kSmallestBudget = 4096;

struct Budget {
  uint64_t bytes = 0;  // 0: a percentage
  double percent = 0;  // of the program's own peak
  bool free = false;   // what the device has free when the program begins
  bool set() const { return bytes > 0 || percent > 0 || free; }
};

// Plain bytes or with a unit of the table in preload/base/amount.h: KiB, MiB ... (also K, M ...) of 1024, KB, MB ... of
// 1000. Fractions allowed.
Result<uint64_t> parse_size(std::string_view text);
// A size or a percentage, within the limits above. `option` names it in the error.
Result<Budget> parse_budget(std::string_view text, std::string_view option = "--budget");

// What REPRISE_BUDGET and REPRISE_HOST_MEMORY take: plain bytes, "50%" or "free".
std::string to_variable(const Budget& budget);
// For people: "12.0 GiB", "312 MiB", "17 B".
std::string format_bytes(uint64_t bytes);
// As it can be typed: "36MiB", or KiB where it is no whole number of these, rounded up.
std::string typed_bytes(uint64_t bytes);
// Of a link, in units of 1000, as data sheets have it: "24.0 GB/s", "45.1 MB/s".
std::string format_rate(uint64_t bytes_per_s);
// "24.0 GB/s each way", "45.0 MB/s to the device and 35.0 MB/s back".
std::string format_link(uint64_t to_device, uint64_t to_host);
// "1.24 s", "83.1 ms", "312 us", "12.3 us".
std::string format_duration(uint64_t nanoseconds);

}  // namespace reprise::tools
