// What is held and what is promised are one figure: nothing counts twice, and nothing not at all, at any moment
// between.
#include "replay/memory/around.h"

#include "tests/support/test.h"

namespace reprise::replay {
namespace {

TEST(Around, WhatIsPromisedCountsFromThePromiseOn) {
  Around around;
  around.hold(10);
  around.promise(24);
  EXPECT_EQ(around.bytes(), 34u);
  EXPECT_EQ(around.held(), 10u);
  around.promise_ends(24, 0);
  EXPECT_EQ(around.bytes(), 10u) << "it was refused";
}

TEST(Around, WhatWasPromisedAndIsHeldCountsOnce) {
  Around around;
  around.hold(10);
  around.promise(24);
  around.hold(34);  // the driver says so before the call has ended
  EXPECT_EQ(around.bytes(), 34u);
  around.promise_ends(24, 24);
  EXPECT_EQ(around.bytes(), 34u);
}

TEST(Around, SeveralCallsAtATimeCountEach) {
  Around around;
  around.promise(4);
  around.promise(6);
  EXPECT_EQ(around.bytes(), 10u);
  around.hold(4);
  EXPECT_EQ(around.bytes(), 10u);
  around.promise_ends(4, 4);
  EXPECT_EQ(around.bytes(), 10u) << "the other one is still to come";
  around.hold(10);
  around.promise_ends(6, 6);
  EXPECT_EQ(around.bytes(), 10u);
}

TEST(Around, WhatTheDriverTakesBesideIsNotHidden) {
  Around around;
  around.promise(4);
  around.hold(50);
  EXPECT_EQ(around.bytes(), 50u);
}

}  // namespace
}  // namespace reprise::replay
