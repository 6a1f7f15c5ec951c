// Sizes as people write them ("12GiB", "1.5G", "800 MB", "4096", "50%"): one table of units and one parser for all
// readers. Callers: the configuration, the simulated device's settings, the options of the command line. It allocates
// nothing and asks no locale, for it runs in the victim process, too.
#pragma once
#include <cstdint>
#include <string_view>

namespace reprise {

// In either case of letters. A new unit is a row here and nothing else.
struct SizeUnit {
  std::string_view name;
  double bytes;
};
inline constexpr SizeUnit kSizeUnits[] = {
    {"", 1},         {"B", 1},                       // plain bytes
    {"K", 0x1p10},   {"KiB", 0x1p10}, {"KB", 1e3},   //
    {"M", 0x1p20},   {"MiB", 0x1p20}, {"MB", 1e6},   //
    {"G", 0x1p30},   {"GiB", 0x1p30}, {"GB", 1e9},   //
    {"T", 0x1p40},   {"TiB", 0x1p40}, {"TB", 1e12},  //
    {"P", 0x1p50},   {"PiB", 0x1p50}, {"PB", 1e15},  //
    {"EiB", 0x1p60}, {"EB", 1e18},                   // no "E": 1E3 is a number
};

enum class AmountProblem : uint8_t { none, no_amount, negative, too_large };

// What a text says, before its reader decides whether a share or nothing at all makes sense for it.
struct WrittenAmount {
  uint64_t bytes = 0;  // rounded; 0 for a percentage
  double percent = 0;  // as written, below 0 and above 100, too
  bool is_percent = false;
};

// A decimal number, fractions and exponents allowed, and a unit of the table or "%"; spaces around both do not count.
// From 0 to below 2^63 bytes. Whatever the problem is, *written says whether it was a percentage.
AmountProblem read_amount(std::string_view text, WrittenAmount* written) noexcept;

// A switch: 1, true, yes or on, and their opposites. false: not readable, *on is untouched.
inline bool read_switch(std::string_view text, bool* on) noexcept {
  for (const std::string_view yes : {"1", "true", "yes", "on"}) {
    if (text == yes) return *on = true, true;
  }
  for (const std::string_view no : {"0", "false", "no", "off"}) {
    if (text == no) return *on = false, true;
  }
  return false;
}

// Bytes, or a share of something that the variable's help names.
struct Amount {
  uint64_t bytes = 0;
  double fraction = 0;  // > 0: this share, bytes is 0
  bool given() const noexcept { return bytes != 0 || fraction > 0; }
};

inline constexpr const char* kFreeMemory = "free";

// Device memory to stay within.
struct DeviceBudget : Amount {
  bool free = false;  // what the device has free when the program begins; then neither of the others
  bool given() const noexcept { return free || Amount::given(); }
};

// No device has more memory than this; a larger amount is a typing error.
inline constexpr uint64_t kLargestAmount = uint64_t{16} << 40;

// Something that is more than nothing, up to the above. false: not readable, *amount is untouched.
bool parse_amount(const char* text, Amount* amount) noexcept;
// Why parse_amount() does not read it, in words.
const char* why_no_amount(std::string_view text) noexcept;

}  // namespace reprise
