// A CUPTI of before CUDA 12.9 crashes when a buffer is declined, so it is left alone. A process of its own, as a
// library is looked for once: ctest sets the fake one's version.
#include "preload/record/activity/sources.h"
#include "tests/support/test.h"

namespace reprise {
namespace {

TEST(OldCupti, IsNotUsed) {
  EXPECT_EQ(cupti_activity_source(), nullptr);
  EXPECT_EQ(choose_activity_source("cupti"), nullptr);
}

}  // namespace
}  // namespace reprise
