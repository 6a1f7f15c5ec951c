// All words of a range are found, wherever they stand, and no others.
#include "preload/access/words.h"

#include <rapidcheck/gtest.h>

#include "tests/support/test.h"

namespace reprise {
namespace {

constexpr AddressRange kRange{0x600000000000, uint64_t{1} << 40};
using Found = std::map<uint64_t, uint64_t>;

Found find(const std::vector<unsigned char>& bytes, uint64_t first, bool write_combined) {
  Found found;
  find_words(
      bytes.data(), bytes.size(), first, kRange, write_combined,
      [](void* user, uint64_t offset, uint64_t word) { (*static_cast<Found*>(user))[offset] = word; }, &found);
  return found;
}

RC_GTEST_PROP(Words, AreThoseOfTheRange, ()) {
  const auto size = *rc::gen::inRange<size_t>(0, 20000);
  const auto first = *rc::gen::inRange<uint64_t>(0, 8);
  std::vector<unsigned char> bytes(size, 0);
  const auto count = *rc::gen::inRange(0, 12);
  for (int i = 0; i < count && size >= 8; ++i) {
    const auto at = *rc::gen::inRange<size_t>(0, size - 7);
    const uint64_t word = kRange.low + *rc::gen::arbitrary<uint64_t>() % (2 * kRange.span) - kRange.span / 2;
    std::memcpy(bytes.data() + at, &word, 8);
  }
  Found expected;
  for (uint64_t at = first; at + 8 <= size; at += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + at, 8);
    if (word >= kRange.low && word - kRange.low < kRange.span) expected[at] = word;
  }
  RC_ASSERT(find(bytes, first, false) == expected);
  RC_ASSERT(find(bytes, first, true) == expected);
}

TEST(Words, AnEmptyRangeHoldsNone) {
  const uint64_t words[] = {0, 1};
  find_words(
      words, sizeof words, 0, AddressRange{}, false, [](void*, uint64_t, uint64_t) { FAIL(); }, nullptr);
}

}  // namespace
}  // namespace reprise
