#include "replay/examine/disturbance.h"

#include <algorithm>
#include <cstring>

namespace reprise::replay {
namespace {

constexpr uint64_t kLine = 128;
constexpr uint64_t kPiece = 32;
constexpr uint32_t kLargestCounter = 4095;
// In each half of a word: the last bit but one or two of a float's fraction, whether it has 2, 4 or 8 bytes.
constexpr uint32_t kLastBits = 0x00010001;

uint32_t word_at(const unsigned char* bytes, uint64_t at) noexcept {
  uint32_t word;
  std::memcpy(&word, bytes + at, sizeof word);
  return word;
}

bool is_number(uint32_t word) noexcept { return word >> 24 != 0 && word >> 24 != 0xff; }

bool counts(uint32_t word) noexcept { return word != 0 && word <= kLargestCounter; }

// Between 2^-41 and 2^41 or so, as one float or as the upper one of two.
bool is_likely_float(uint32_t word) noexcept {
  const uint32_t exponent = word >> 24 & 0x7f;
  return exponent >= 0x2b && exponent <= 0x53;
}

bool is_mask(const unsigned char* bytes, uint64_t size) noexcept {
  bool several = false;  // of a word's bytes are not zero
  for (uint64_t at = 0; at + 4 <= size; at += 4) {
    const uint32_t word = word_at(bytes, at);
    if ((word & ~0x01010101u) != 0) return false;
    several = several || (word & (word - 1)) != 0;
  }
  return several;
}

// Has it changed any word to a number that counters have? Floats have none, and there may be hundreds of MiB of them.
bool may_have_counted(const AroundLaunch& launch) noexcept {
  uint32_t found = 0;
  for (uint64_t at = 0; at + 4 <= launch.size; at += 4) {
    const uint32_t now = word_at(launch.after, at);
    found |= static_cast<uint32_t>(counts(now)) & static_cast<uint32_t>(now != word_at(launch.before, at));
  }
  return found != 0;
}

// One word that lay_pattern puts: all of it the pattern where it was changed, other bits where it is a number.
uint32_t patterned(uint32_t before, uint32_t after, uint32_t pattern, uint32_t bits) noexcept {
  const uint32_t other = is_number(before) ? before ^ bits : before;
  return before != after ? pattern : other;
}

}  // namespace

bool looks_like_numbers(const unsigned char* bytes, uint64_t size) noexcept {
  uint64_t words = 0;
  uint64_t numbers = 0;
  for (uint64_t at = 0; at + 4 <= size; at += 4) {
    const uint32_t word = word_at(bytes, at);
    if (word != 0) ++words;
    if (is_number(word)) ++numbers;
  }
  return words > 0 && 4 * numbers >= 3 * words;
}

uint64_t disturb_words(unsigned char* to, const unsigned char* from, uint64_t size, uint32_t pattern) noexcept {
  uint64_t disturbed = 0;
  std::memcpy(to, from, size);
  for (uint64_t at = 0; at + 4 <= size; at += 4) {
    const uint32_t word = word_at(to, at);
    const uint32_t number = is_number(word) ? 1 : 0;
    const uint32_t other = word ^ number * pattern;
    std::memcpy(to + at, &other, sizeof other);
    disturbed += number;
  }
  return disturbed;
}

bool has_counted(const AroundLaunch& launch) noexcept {
  if (!may_have_counted(launch)) return false;
  uint64_t counts_in_all = 0;
  uint64_t likely = 0;
  uint64_t changed = 0;  // to something else than zero
  bool apart = false;    // a piece holds nothing else
  for (uint64_t piece = 0; piece < launch.size; piece += kPiece) {
    uint64_t counted = 0;
    uint64_t others = 0;
    for (uint64_t at = piece; at + 4 <= std::min(piece + kPiece, launch.size); at += 4) {
      const uint32_t now = word_at(launch.after, at);
      if (now == word_at(launch.before, at)) continue;
      ++(counts(now) ? counted : others);
      changed += now != 0 ? 1u : 0u;
      likely += is_likely_float(now) ? 1u : 0u;
    }
    counts_in_all += counted;
    apart = apart || (counted != 0 && others == 0);
  }
  const bool among_floats = counts_in_all != 0 && 10 * likely >= 9 * changed;
  return (apart || among_floats) && !is_mask(launch.after, launch.size);
}

bool lay_pattern(unsigned char* to, const AroundLaunch& launch, unsigned char pattern) noexcept {
  const uint32_t bits = looks_like_numbers(launch.before, launch.size) ? kLastBits << (pattern & 1u) : 0;
  bool everywhere = true;
  for (uint64_t line = 0; line < launch.size; line += kLine) {
    const uint64_t end = std::min(line + kLine, launch.size);
    uint32_t turned = 0;
    uint64_t at = line;
    for (; at + 4 <= end; at += 4) {
      const uint32_t before = word_at(launch.before, at);
      const uint32_t word = patterned(before, word_at(launch.after, at), pattern * 0x01010101u, bits);
      std::memcpy(to + at, &word, sizeof word);
      turned |= word ^ before;
    }
    for (; at < end; ++at) {  // the tensor's last bytes
      to[at] = launch.before[at] != launch.after[at] ? pattern : launch.before[at];
      turned |= static_cast<uint32_t>(to[at] ^ launch.before[at]);
    }
    everywhere = everywhere && turned != 0;
  }
  return everywhere;
}

}  // namespace reprise::replay
