// Where in what repeats an iteration starts.
#include <gtest/gtest.h>

#include "analyzer/iteration/finder.h"
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
  const Result<Iteration> iteration = find(program.trace());
  ASSERT_TRUE(iteration.ok());
  EXPECT_EQ(first_op(program.trace(), iteration.value()), "middle");
}

// What repeats begins where the most is alive: the place with the least has not come often enough to start there.
TEST(IterationStart, ThatCouldStartWhereLessIsAliveSoonIsEarly) {
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
  const Result<Iteration> early = find(program.trace());
  ASSERT_TRUE(early.ok()) << early.status().message();
  EXPECT_EQ(first_op(program.trace(), early.value()), "much");
  EXPECT_TRUE(early.value().early);
  end();
  const Result<Iteration> later = find(program.trace());
  ASSERT_TRUE(later.ok()) << later.status().message();
  EXPECT_EQ(first_op(program.trace(), later.value()), "little");
  EXPECT_FALSE(later.value().early);
}

TEST(IterationStart, PrefersToStartBehindAWait) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk);
  for (int i = 0; i < 4; ++i) {
    program.launch("second half", {updates(w)});
    program.synchronize();
    program.launch("first half", {updates(w)});
  }
  const Result<Iteration> iteration = find(program.trace());
  ASSERT_TRUE(iteration.ok());
  EXPECT_EQ(first_op(program.trace(), iteration.value()), "first half");
}

}  // namespace
}  // namespace reprise::analyzer
