// Sizes, times, rates and percentages as the command line writes them, many thousands: a JSON array of [function of
// core.js, its arguments, text], in lines. figures_test.py has a page's scripts write the same.
#include <fmt/core.h>

#include <random>

#include "preload/base/readable.h"
#include "tools/cli/sizes.h"

namespace reprise::tools {
namespace {

void put(const char* function, uint64_t value, const std::string& text) {
  fmt::print("[\"{}\",[{}],\"{}\"],\n", function, value, text);
}

void put_all(uint64_t value) {
  put("bytes", value, format_bytes(value));
  put("duration", value, format_duration(value));
  put("rate", value, format_rate(value));
}

void put_share(uint64_t part, uint64_t whole, int places) {
  fmt::print("[\"percent\",[{0},{1},{2}],\"{3}\"],\n", part, whole, places,
             decimal(100 * static_cast<double>(part), static_cast<double>(whole), places));
}

// Halves of the last place of each unit, and what is beside them.
void put_halves() {
  for (const uint64_t unit : {uint64_t{1} << 10, uint64_t{1} << 20, uint64_t{1} << 30, uint64_t{1} << 40,
                              uint64_t{1'000}, uint64_t{1'000'000}, uint64_t{1'000'000'000}}) {
    for (uint64_t twentieths = 20; twentieths < 2'100; ++twentieths) {
      for (uint64_t beside = 0; beside < 3; ++beside) put_all(unit * twentieths / 20 + beside - 1);
    }
  }
}

}  // namespace
}  // namespace reprise::tools

int main() {
  using namespace reprise::tools;
  std::mt19937_64 random(1);
  fmt::print("[\n");
  put_halves();
  for (int i = 0; i < 30'000; ++i) put_all(random() >> (12 + random() % 52));  // what a number of a script can be
  for (int i = 0; i < 30'000; ++i) {
    const uint64_t whole = 1 + (random() >> (24 + random() % 40));
    put_share(random() % (whole + 1), whole, static_cast<int>(i % 3));
  }
  fmt::print("[\"bytes\",[0],\"0 B\"]]\n");
  return 0;
}
