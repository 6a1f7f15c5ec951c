#include "tools/cli/sizes.h"

#include <rapidcheck/gtest.h>

#include "tests/support/test.h"

namespace reprise::tools {
namespace {

uint64_t size_of(const char* text) {
  Result<uint64_t> size = parse_size(text);
  return size.ok() ? size.value() : ~uint64_t{0};
}

TEST(Sizes, UnitsAreBinaryUnlessTheyEndInB) {
  EXPECT_EQ(size_of("12GiB"), uint64_t{12} << 30);
  EXPECT_EQ(size_of("12G"), uint64_t{12} << 30);
  EXPECT_EQ(size_of("12GB"), 12'000'000'000u);
  EXPECT_EQ(size_of("800mib"), uint64_t{800} << 20);
  EXPECT_EQ(size_of("1.5 KiB"), 1536u);
  EXPECT_EQ(size_of("4096"), 4096u);
  EXPECT_EQ(size_of("7B"), 7u);
}

TEST(Sizes, WhatIsNoSizeIsRefusedWithItsText) {
  for (const char* text : {"", "abc", "12GiBs", "GiB", "1e", "0x10", "--5", "12 12", "nan", "inf"}) {
    Result<uint64_t> size = parse_size(text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_EQ(size.status().code(), StatusCode::invalid_argument);
    EXPECT_TRUE(has(size.status().message(), std::string("'") + text + "'"));
  }
  EXPECT_TRUE(has(parse_size("-1GiB").status().message(), "negative"));
  EXPECT_TRUE(has(parse_size("99999999PiB").status().message(), "too large"));
}

TEST(Sizes, BudgetsAreSizesOrShares) {
  EXPECT_EQ(parse_budget("2GiB").value().bytes, uint64_t{2} << 30);
  EXPECT_EQ(parse_budget("2GiB").value().percent, 0);
  EXPECT_EQ(parse_budget("37.5%").value().percent, 37.5);
  EXPECT_EQ(parse_budget("100%").value().percent, 100);
  EXPECT_EQ(parse_budget("16TiB").value().bytes, kLargestBudget);
}

TEST(Sizes, ImpossibleBudgetsAreRefused) {
  for (const char* text : {"0", "0%", "101%", "-5%", "-1", "10PB", "17TiB", "4095", "abc", "%"}) {
    EXPECT_FALSE(parse_budget(text).ok()) << text;
  }
  EXPECT_TRUE(has(parse_budget("abc", "--host-memory").status().message(), "--host-memory"));
}

TEST(Sizes, AForgottenPercentSignIsNamed) {
  EXPECT_EQ(parse_budget("70").status().message(),
            "--budget 70: 70 bytes are too few to hold anything; did you mean 70%?");
  EXPECT_FALSE(has(parse_budget("700").status().message(), "did you mean"));
  EXPECT_FALSE(has(parse_budget("0").status().message(), "did you mean"));
  EXPECT_FALSE(has(parse_budget("70B").status().message(), "did you mean"));
}

RC_GTEST_PROP(Sizes, WhatGoesToTheShimReadsBackTheSame, (uint32_t kilobytes)) {
  Budget budget;
  budget.bytes = kSmallestBudget + uint64_t{kilobytes} * 1024;
  RC_ASSERT(parse_budget(to_variable(budget)).value().bytes == budget.bytes);
}

// Half of the last place is rounded up, as in the page's scripts: 2.25 MiB was 2.2 in a text and 2.3 in a table.
TEST(Sizes, AHalfIsRoundedUp) {
  EXPECT_EQ(format_bytes(2'359'296), "2.3 MiB");
  EXPECT_EQ(format_bytes(102'912), "101 KiB") << "100.5";
  EXPECT_EQ(format_duration(1'250'000), "1.3 ms");
  EXPECT_EQ(format_duration(1'150'000), "1.2 ms") << "in binary below the half";
  EXPECT_EQ(format_duration(1'005'000'000), "1.01 s") << "likewise";
  EXPECT_EQ(format_duration(12'250), "12.3 us") << "as the charts tell short kernels apart";
  EXPECT_EQ(format_duration(100'500), "101 us");
  EXPECT_EQ(format_rate(2'250'000'000), "2.3 GB/s");
}

// In whole numbers: nothing is rounded before the last place.
std::string by_whole_numbers(uint64_t value, uint64_t unit, uint64_t scale) {
  const auto places = static_cast<uint64_t>((static_cast<unsigned __int128>(value) * scale * 2 + unit) / (2 * unit));
  if (scale == 1) return std::to_string(places);
  const std::string part = std::to_string(scale + places % scale).substr(1);
  return std::to_string(places / scale) + '.' + part;
}

RC_GTEST_PROP(Sizes, FiguresAreRoundedAsWholeNumbersSay, (uint64_t random)) {
  const uint64_t ns = random >> (random % 60 + 4);
  const std::string duration = ns >= 1'000'000'000 ? by_whole_numbers(ns, 1'000'000'000, 100) + " s"
                               : ns >= 1'000'000   ? by_whole_numbers(ns, 1'000'000, 10) + " ms"
                               : ns >= 1'000       ? by_whole_numbers(ns, 1'000, ns < 99'950 ? 10 : 1) + " us"
                                                   : std::to_string(ns) + " ns";
  RC_ASSERT(ns > uint64_t{1} << 52 || format_duration(ns) == duration);
  const uint64_t size = (4 + random % 395) << 28;  // every second one is a half of the last place
  RC_ASSERT(format_bytes(size) == by_whole_numbers(size, uint64_t{1} << 30, 10) + " GiB");
}

TEST(Sizes, PeopleReadThreeDigits) {
  EXPECT_EQ(format_bytes(17), "17 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(uint64_t{312} << 20), "312 MiB");
  EXPECT_EQ(format_bytes((uint64_t{1} << 30) - 1), "1.0 GiB");
  EXPECT_EQ(format_duration(999), "999 ns");
  EXPECT_EQ(format_duration(83'120'000), "83.1 ms");
  EXPECT_EQ(format_duration(1'240'000'000), "1.24 s");
}

}  // namespace
}  // namespace reprise::tools
