// Where in what repeats an iteration starts.
#include "analyzer/iteration/finder.h"
#include "tests/support/test.h"
#include "tests/support/trace_builder.h"
#include "tests/unit/analyzer/iteration/found.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

TEST(IterationStart, StartsWhereLeastIsAlive) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk);
  for (int i = 0; i < 3; ++i) {
    program.launch("middle", {updates(w)});
    const uint64_t a = program.allocate(kChunk);
    program.launch("big", {updates(a)});
    program.free(a);
  }
  // The start has nothing transient alive; "middle" comes first among those points, for the run begins with it.
  EXPECT_EQ(first_op(program.trace(), good(find(program.trace()))), "middle");
}

// What repeats begins where the most is alive: the place with the least has not come often enough to start there.
TEST(IterationStart, EarlyIfALaterStartHasFewerBytesAlive) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk);
  uint64_t large = 0;
  const auto begin = [&](const char* name) {
    large = program.allocate(8 * kChunk);
    program.launch(name, {writes(large)});
  };
  const auto end = [&] {
    program.launch("much", {updates(large)});
    program.free(large);
    program.launch("little", {updates(w)});
  };
  begin("once");
  end();
  begin("fill");
  end();
  begin("fill");
  const auto early = good(find(program.trace()));
  EXPECT_EQ(first_op(program.trace(), early), "much");
  EXPECT_TRUE(early.early);
  end();
  const auto later = good(find(program.trace()));
  EXPECT_EQ(first_op(program.trace(), later), "little");
  EXPECT_FALSE(later.early);
}

TEST(IterationStart, PrefersToStartBehindAWait) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk);
  for (int i = 0; i < 4; ++i) {
    program.launch("second half", {updates(w)});
    program.synchronize();
    program.launch("first half", {updates(w)});
  }
  EXPECT_EQ(first_op(program.trace(), good(find(program.trace()))), "first half");
}

}  // namespace
}  // namespace reprise::analyzer
