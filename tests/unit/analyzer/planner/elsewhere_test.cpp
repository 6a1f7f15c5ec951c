// The largest call of a whole recording, by what a run on demand needs for it.
#include "analyzer/planner/planner.h"
#include "tests/support/test.h"
#include "tests/support/trace_builder.h"

namespace reprise::analyzer {
namespace {

using testing::kChunk;
using testing::reads;
using testing::TraceBuilder;
using testing::updates;
using testing::writes;

TEST(LargestCall, CountsEachAllocationOnce) {
  TraceBuilder program;
  const uint64_t a = program.allocate(kChunk + 1), b = program.allocate(3 * kChunk);
  program.launch("both", {reads(a), writes(b)});
  program.launch("twice", {updates(b), reads(b)});
  const LargestCall largest = Planning(program.trace(), {}).largest_call(kChunk);
  EXPECT_EQ(largest.name, "both");
  EXPECT_EQ(largest.bytes, 5 * kChunk);
}

// Two share the first block, the third begins the second one.
TEST(LargestCall, SmallAllocationsShareChunks) {
  TraceBuilder program;
  const uint64_t a = program.allocate(kChunk / 4), b = program.allocate(kChunk / 3);
  const uint64_t c = program.allocate(kChunk / 2 - 512);
  program.launch("shared", {reads(a), reads(b)});
  EXPECT_EQ(Planning(program.trace(), {}).largest_call(kChunk).bytes, kChunk);
  program.launch("all", {reads(a), reads(b), reads(c)});
  EXPECT_EQ(Planning(program.trace(), {}).largest_call(kChunk).bytes, 2 * kChunk);
  EXPECT_EQ(Planning(program.trace(), {}).largest_call(kChunk).name, "all");
}

TEST(LargestCall, AnOpaqueCallWorksOnWhatIsAlive) {
  TraceBuilder program;
  const uint64_t a = program.allocate(kChunk), gone = program.allocate(7 * kChunk);
  program.free(gone);
  program.allocate(2 * kChunk);
  program.op(trace::OpKind::other, "", {reads(a)}, 0, trace::kOpOpaque, 0);
  EXPECT_EQ(Planning(program.trace(), {}).largest_call(kChunk).bytes, 3 * kChunk);
}

TEST(LargestCall, ProgramWithoutMemoryHasNone) {
  TraceBuilder program;
  for (int i = 0; i < 5; ++i) program.launch("nothing", {});
  EXPECT_EQ(Planning(program.trace(), {}).largest_call(kChunk).bytes, 0u);
  EXPECT_EQ(Planning(program.trace(), {}).largest_call(kChunk).name, "");
}

}  // namespace
}  // namespace reprise::analyzer
