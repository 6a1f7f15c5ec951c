#include "preload/access/words.h"

#include <smmintrin.h>

#include <algorithm>
#include <cstring>

namespace reprise {
namespace {

constexpr uint64_t kBlock = 8;           // words that are tested together
constexpr uint64_t kBounceBytes = 4096;  // of write-combined memory at a time

struct WordSearch {
  AddressRange range;
  VisitWord visit;
  void* user;
};

uint64_t word_at(const unsigned char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// `count` words from `bytes` on, the first of which is at `offset` for the visitor.
void search(const WordSearch& what, const unsigned char* bytes, uint64_t count, uint64_t offset) {
  const AddressRange range = what.range;
  uint64_t at = 0;
  for (; at + kBlock <= count; at += kBlock) {
    unsigned hits = 0;
    for (uint64_t i = 0; i < kBlock; ++i) hits |= range.contains(word_at(bytes + (at + i) * 8)) ? 1u : 0u;
    if (__builtin_expect(hits == 0, true)) continue;
    for (uint64_t i = at; i < at + kBlock; ++i) {
      const uint64_t word = word_at(bytes + i * 8);
      if (range.contains(word)) what.visit(what.user, offset + i * 8, word);
    }
  }
  for (; at < count; ++at) {
    const uint64_t word = word_at(bytes + at * 8);
    if (range.contains(word)) what.visit(what.user, offset + at * 8, word);
  }
}

// Loads of this kind take whole lines of write-combined memory; ordinary ones take a word at a time.
__attribute__((target("sse4.1"))) void stream_in(unsigned char* to, const unsigned char* from, uint64_t bytes) {
  uint64_t at = 0;
  for (; at + 16 <= bytes; at += 16) {
    auto* line = reinterpret_cast<__m128i*>(const_cast<unsigned char*>(from + at));
    _mm_store_si128(reinterpret_cast<__m128i*>(to + at), _mm_stream_load_si128(line));
  }
  std::memcpy(to + at, from + at, bytes - at);
}

void search_write_combined(const WordSearch& what, const unsigned char* bytes, uint64_t first, uint64_t end) {
  alignas(64) unsigned char bounce[kBounceBytes + 16];
  const bool fast = __builtin_cpu_supports("sse4.1") != 0;
  for (uint64_t at = first; at + 8 <= end;) {
    const uint64_t part = std::min(end - at, kBounceBytes) / 8 * 8;
    const auto misaligned = reinterpret_cast<uint64_t>(bytes + at) % 16;
    // Up to 15 bytes in front of the word: the same line, so they may be read.
    if (fast) {
      stream_in(bounce, bytes + at - misaligned, part + misaligned);
    } else {
      std::memcpy(bounce + misaligned, bytes + at, part);
    }
    search(what, bounce + misaligned, part / 8, at);
    at += part;
  }
}

}  // namespace

void find_words(const void* data, uint64_t bytes, uint64_t first, const AddressRange& range, bool write_combined,
                VisitWord visit, void* user) noexcept {
  if (range.span == 0 || first + 8 > bytes) return;
  const auto* source = static_cast<const unsigned char*>(data);
  const WordSearch what{range, visit, user};
  if (write_combined) return search_write_combined(what, source, first, bytes);
  search(what, source + first, (bytes - first) / 8, first);
}

}  // namespace reprise
