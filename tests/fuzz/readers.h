// What libFuzzer, the seeds and the replay of found inputs have in common: the product's readers, by name. Callers:
// target.cpp, seeds.cpp, corpus_test.cpp. A new reader is a row of readers.def and a function.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace reprise::fuzz {

#define FUZZ_READER(name, longest, what) bool read_##name(std::string_view bytes);
#include "tests/fuzz/readers.def"
#undef FUZZ_READER

struct Reader {
  const char* name;
  size_t longest;
  bool (*read)(std::string_view bytes);
};

inline constexpr Reader kReaders[] = {
#define FUZZ_READER(name, longest, what) {#name, longest, read_##name},
#include "tests/fuzz/readers.def"
#undef FUZZ_READER
};

// What holds for all inputs: where it does not, that is a finding.
#define FUZZ_CHECK(condition)                                              \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                        \
    }                                                                      \
  } while (false)

// Errors are one line, whatever stands in the input.
inline bool one_line(std::string_view message) {
  return !message.empty() && message.find('\n') == std::string_view::npos;
}

}  // namespace reprise::fuzz
