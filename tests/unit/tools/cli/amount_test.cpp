// Sizes mean the same wherever they are written: for the preloaded library, the simulated device and the command line.
#include "preload/base/amount.h"

#include <rapidcheck/gtest.h>

#include "tests/support/test.h"
#include "tools/cli/sizes.h"
#include "tools/device/base/settings.h"

namespace reprise {
namespace {

using Bytes = std::optional<uint64_t>;

// Nothing, and more than any device has, are sizes for the command line and the simulated device; the preloaded library
// reads amounts of memory only, and refuses both, as --budget does.
Bytes by_configuration(const std::string& text) {
  Amount amount;
  return parse_amount(text.c_str(), &amount) && amount.fraction == 0 ? Bytes(amount.bytes) : Bytes();
}
Bytes by_command_line(const std::string& text) {
  Result<uint64_t> size = tools::parse_size(text);
  return size.ok() ? Bytes(size.value()) : Bytes();
}
Bytes by_simulated_device(const std::string& text) {
  uint64_t bytes = 0;
  return sim::parse_size(text.c_str(), &bytes) ? Bytes(bytes) : Bytes();
}

void expect_agreement(const std::string& text) {
  const Bytes one = by_command_line(text);
  RC_ASSERT(by_simulated_device(text) == one);
  const bool amount = one && *one > 0 && *one <= kLargestAmount;
  RC_ASSERT(by_configuration(text) == (amount ? one : Bytes()));
}

std::string any_text_of(const std::string& letters) {
  const auto length = *rc::gen::inRange<size_t>(0, 7);
  return *rc::gen::container<std::string>(length, rc::gen::elementOf(letters));
}

RC_GTEST_PROP(Amounts, EverybodyReadsTheSame, ()) {
  expect_agreement(any_text_of("0123456789..  eE+-kKmMgGtTpPiIbB%x"));
}

RC_GTEST_PROP(Amounts, EverybodyReadsEveryUnit, (uint32_t number, bool fraction, bool space)) {
  const auto at = *rc::gen::inRange<size_t>(0, std::size(kSizeUnits));
  const SizeUnit& unit = kSizeUnits[at];
  std::string name(unit.name);
  for (char& letter : name) {
    if (*rc::gen::arbitrary<bool>()) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  const std::string text = std::to_string(number % 8) + (fraction ? ".25" : "") + (space ? " " : "") + name;
  expect_agreement(text);
  const double bytes = (number % 8 + (fraction ? 0.25 : 0)) * unit.bytes;
  RC_ASSERT(by_command_line(text) == Bytes(static_cast<uint64_t>(std::llround(bytes))));
}

TEST(Amounts, WhatOnlyOneOfThemReadBefore) {
  EXPECT_EQ(by_configuration("0.01PiB"), Bytes(11258999068426));
  EXPECT_EQ(by_configuration("10PB"), Bytes());  // a unit that it knows now, and still no memory
  EXPECT_EQ(by_simulated_device("64k"), Bytes(65536));
  EXPECT_EQ(by_simulated_device("1tb"), Bytes(1'000'000'000'000));
  EXPECT_EQ(by_command_line("1e9"), Bytes(1'000'000'000));
  EXPECT_EQ(by_configuration(" 12 GiB "), Bytes(uint64_t{12} << 30));
  EXPECT_EQ(by_configuration("1.7B"), Bytes(2));  // all of them round
}

// What is printed has two or three digits: it reads back as the same up to the last one.
RC_GTEST_PROP(Amounts, WhatIsPrintedReadsBack, (uint64_t any)) {
  const uint64_t bytes = (any >> 1) >> *rc::gen::inRange(0, 63);
  const std::string text = tools::format_bytes(bytes);
  expect_agreement(text);
  const Bytes again = by_command_line(text);
  RC_ASSERT(again.has_value());
  RC_ASSERT(tools::format_bytes(*again) == text);
  RC_ASSERT(std::abs(static_cast<double>(*again) - static_cast<double>(bytes)) <= 0.06 * static_cast<double>(bytes));
}

RC_GTEST_PROP(Amounts, WhatTheLauncherPassesOnIsExact, (uint64_t any)) {
  tools::Budget budget;
  budget.bytes = 1 + any % tools::kLargestBudget;
  RC_ASSERT(by_configuration(tools::to_variable(budget)) == Bytes(budget.bytes));
}

}  // namespace
}  // namespace reprise
