// Which bytes were written: against a model of one flag a byte.
#include "tools/device/base/written.h"

#include <rapidcheck/gtest.h>

#include "tests/support/test.h"

namespace reprise::sim {
namespace {

constexpr uint64_t kBytes = 64;
using Flags = std::vector<bool>;

std::vector<WrittenBytes::Interval> intervals_of(const Flags& flags) {
  std::vector<WrittenBytes::Interval> found;
  for (uint64_t i = 0; i < flags.size(); ++i) {
    if (!flags[i]) continue;
    if (found.empty() || found.back().second != i) found.push_back({i, i});
    found.back().second = i + 1;
  }
  return found;
}

RC_GTEST_PROP(Written, IsWhatAFlagAByteSays, ()) {
  WrittenBytes written[2] = {WrittenBytes(kBytes), WrittenBytes(kBytes)};
  Flags flags[2] = {Flags(kBytes), Flags(kBytes)};
  const auto steps = *rc::gen::inRange(1, 40);
  for (int step = 0; step < steps; ++step) {
    const auto to = *rc::gen::inRange(0, 2);
    const auto begin = *rc::gen::inRange<uint64_t>(0, kBytes);
    const auto bytes = *rc::gen::inRange<uint64_t>(0, kBytes + 8);
    if (*rc::gen::arbitrary<bool>()) {
      written[to].mark(begin, begin + bytes);
      for (uint64_t i = begin; i < std::min(begin + bytes, kBytes); ++i) flags[to][i] = true;
    } else {
      const auto from = *rc::gen::inRange(0, 2);
      const auto source = *rc::gen::inRange<uint64_t>(0, kBytes);
      const uint64_t fits = std::min({bytes, kBytes - begin, kBytes - source});
      const Flags before = flags[from];
      written[to].copy(begin, written[from], source, fits);
      for (uint64_t i = 0; i < fits; ++i) flags[to][begin + i] = before[source + i];
    }
    for (int i = 0; i < 2; ++i) {
      RC_ASSERT(written[i].intervals() == intervals_of(flags[i]));
      RC_ASSERT(written[i].complete() == (flags[i] == Flags(kBytes, true)));
    }
  }
}

}  // namespace
}  // namespace reprise::sim
