

#include "preload/trace/write.h"
#include "tests/support/test.h"
#include "tests/support/trace_bytes.h"

namespace reprise::trace {
namespace {

std::string path_of(const char* name) { return ::testing::TempDir() + name; }

TEST(TraceWrite, WhatIsReadIsWrittenRecordByRecord) {
  const Trace read = parse_trace(test::sample_trace().bytes(), "sample").value();
  const std::string path = path_of("written.trace");
  ASSERT_TRUE(write_trace(read, path).ok());
  const auto again = good(read_trace(path));
  EXPECT_TRUE(again.tail.ok()) << again.tail.message();
  EXPECT_TRUE(again.ended);
  EXPECT_EQ(to_text(again), to_text(read));
  std::remove(path.c_str());
}

TEST(TraceWrite, KernelsGapsPausesAndTheirLossesAreKept) {
  Trace trace;
  trace.functions.push_back({1, "gemm", {{0, 8}}, true, 0x1234});
  trace.functions.push_back({});  // id 2 is missing
  trace.functions.push_back({3, "other", {}, false, 0});
  GapRecord gap{};
  gap.header.sequence = 9;
  gap.after_sequence = 4;
  gap.records = 7;
  trace.gaps.push_back(gap);
  gap.header.sequence = 20;
  gap.header.flags = kGapSeam;
  gap.records = 0;
  trace.pauses.push_back(gap);
  trace.ended = true;
  trace.dropped = 7;
  const std::string path = path_of("gaps.trace");
  ASSERT_TRUE(write_trace(trace, path).ok());
  const Trace again = read_trace(path).value();
  EXPECT_EQ(to_text(again), to_text(trace));
  ASSERT_EQ(again.functions.size(), 3u);
  EXPECT_EQ(again.functions[0].identity, 0x1234u);
  EXPECT_EQ(again.functions[1].id, 0u);
  ASSERT_EQ(again.pauses.size(), 1u);
  EXPECT_EQ(again.pauses[0].header.flags, kGapSeam);
  EXPECT_EQ(again.dropped, 7u);
  std::remove(path.c_str());
}

TEST(TraceWrite, AFolderThatIsNotThereIsNamed) {
  const Status status = write_trace({}, "/no/such/folder/a.trace");
  EXPECT_EQ(status.code(), StatusCode::io_error);
  EXPECT_TRUE(has(status.message(), "/no/such/folder/a.trace"));
}

}  // namespace
}  // namespace reprise::trace
