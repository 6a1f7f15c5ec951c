// The builds of habits.cu in data/, unpacked. `check --keep` makes them anew. Callers: tests.
#pragma once
#include <zstd.h>

#include <string>

#include "tests/support/test.h"

namespace reprise::code {

inline std::string kept(const std::string& name) {
  const std::string packed = read_file(std::string(REPRISE_CODE_TESTS) + "/data/" + name + ".zst");
  std::string content(ZSTD_getFrameContentSize(packed.data(), packed.size()), '\0');
  const size_t got = ZSTD_decompress(content.data(), content.size(), packed.data(), packed.size());
  EXPECT_EQ(ZSTD_isError(got), 0U) << name;
  EXPECT_EQ(got, content.size()) << name;
  return content;
}

}  // namespace reprise::code
