// The reader: what a good trace gives, and what it says about every kind of bad one.
#include "preload/trace/names.h"
#include "preload/trace/reader.h"
#include "tests/support/test.h"
#include "tests/support/trace_bytes.h"

namespace reprise::trace {
namespace {

using test::sample_trace;
using test::TraceBytes;

Trace parse(const std::string& bytes) {
  Result<Trace> result = parse_trace(bytes, "t.trace");
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? std::move(result.value()) : Trace{};
}

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(TraceReader, GivesEveryRecordOfAGoodTrace) {
  const Trace trace = parse(sample_trace().bytes());
  EXPECT_TRUE(trace.tail.ok());
  EXPECT_TRUE(trace.ended);
  EXPECT_EQ(trace.info.at("program"), "./saxpy --size 1024");
  ASSERT_EQ(trace.functions.size(), 1u);
  EXPECT_EQ(trace.functions[0].name, "_Z5saxpyIfEviT_PKS0_PS0_");
  EXPECT_EQ(trace.functions[0].parameters.size(), 4u);
  ASSERT_EQ(trace.events.size(), 8u);
  const Op& launch = std::get<Op>(trace.events[4]);
  EXPECT_EQ(find_function(trace, launch.record.function)->id, 1u);
  EXPECT_EQ(launch.accesses.at(1).offset, 64u);
  EXPECT_EQ(launch.parameters, std::vector<uint8_t>(24, 0x11));
  EXPECT_EQ(trace.activities.at(5).end_ns, 1'033'000u);
}

// A trace and its text, as they were written when the format got its version: they must stay readable for ever.
TEST(TraceReader, ReadsTheKeptTraceAsTheKeptText) {
  const std::string folder = REPRISE_TEST_DATA "/traces/";
  auto trace = good(read_trace(folder + "version1.trace"));
  EXPECT_EQ(to_text(trace), file_text(folder + "version1.txt"));
}

TEST(TraceReader, OrdersEventsBySequenceAcrossChunks) {
  TraceBytes bytes;
  for (const uint64_t sequence : {3u, 1u, 4u, 2u}) {
    bytes.add(RecordKind::free, sequence, FreeRecord{}).end_chunk();
  }
  const Trace trace = parse(bytes.bytes());
  ASSERT_EQ(trace.events.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(sequence_of(trace.events[i]), i + 1);
}

TEST(TraceReader, MergesThePiecesOfOneOp) {
  TraceBytes bytes;
  ActivityRecord first{};
  first.start_ns = 50;
  first.end_ns = 60;
  ActivityRecord second{};
  second.start_ns = 20;
  second.end_ns = 55;
  bytes.add(RecordKind::activity, 7, first).add(RecordKind::activity, 7, second).end_chunk();
  const Trace trace = parse(bytes.bytes());
  EXPECT_EQ(trace.activities.at(7).start_ns, 20u);
  EXPECT_EQ(trace.activities.at(7).end_ns, 60u);
}

TEST(TraceReader, EveryPrefixIsReadUpToItsLastWholeChunk) {
  const std::string whole = sample_trace().bytes();
  size_t events = 0;
  for (size_t size = sizeof(FileHeader); size < whole.size(); ++size) {
    const Trace trace = parse(whole.substr(0, size));
    EXPECT_FALSE(trace.ended);
    EXPECT_TRUE(trace.tail.ok() || trace.tail.code() == StatusCode::truncated) << trace.tail.message();
    EXPECT_GE(trace.events.size(), events) << "a longer prefix lost events at " << size;
    events = trace.events.size();
  }
  EXPECT_GT(events, 0u);
}

TEST(TraceReader, SaysWhereAChunkIsDamaged) {
  std::string bytes = sample_trace().bytes();
  bytes[sizeof(FileHeader) + sizeof(ChunkHeader) + 5] ^= 1;
  const Trace trace = parse(bytes);
  EXPECT_EQ(trace.tail.code(), StatusCode::corrupt);
  EXPECT_EQ(trace.tail.message(), "t.trace: a chunk fails its checksum at byte 16");
  EXPECT_TRUE(trace.events.empty());
}

TEST(TraceReader, RefusesWhatIsNoTrace) {
  for (const std::string bytes : {"", "short", "not a trace, but long enough to be one"}) {
    const Result<Trace> result = parse_trace(bytes, "t.trace");
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().message(), "t.trace is not a trace of Reprise");
  }
}

TEST(TraceReader, RefusesAnotherVersion) {
  const Result<Trace> result = parse_trace(TraceBytes(kTraceVersion + 1).bytes(), "t.trace");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), StatusCode::unsupported);
}

TEST(TraceReader, NamesAFileThatIsNotThere) {
  const Result<Trace> result = read_trace("/nonexistent/t.trace");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), StatusCode::not_found);
  EXPECT_TRUE(has(result.status().message(), "/nonexistent/t.trace"));
  EXPECT_EQ(read_trace("/").status().code(), StatusCode::io_error);
}

TEST(TraceReader, SkipsAndCountsKindsItDoesNotKnow) {
  TraceBytes bytes;
  bytes.add(RecordKind{999}, 1, FreeRecord{}).add(RecordKind::free, 2, FreeRecord{}).end_chunk();
  const Trace trace = parse(bytes.bytes());
  EXPECT_TRUE(trace.tail.ok());
  EXPECT_EQ(trace.unknown, 1u);
  EXPECT_EQ(trace.events.size(), 1u);
}

// Each of these has a right checksum, so only the structure tells.
TEST(TraceReader, StopsAtRecordsThatContradictThemselves) {
  const auto tail_of = [](const std::string& raw) {
    TraceBytes bytes;
    return parse(bytes.chunk_of(raw).bytes()).tail.code();
  };
  const auto raw_of = [](RecordKind kind, auto record) { return TraceBytes().add(kind, 1, record).raw(); };
  OpRecord many_accesses{};
  many_accesses.access_count = 0x10000000;
  OpRecord many_parameters{};
  many_parameters.parameter_bytes = 0xffffffff;
  FunctionRecord no_id{};
  InfoRecord long_text{};
  long_text.text_bytes = 100;
  ActivityRecord backwards{};
  backwards.start_ns = 2;
  backwards.end_ns = 1;
  EXPECT_EQ(tail_of(raw_of(RecordKind::op, many_accesses)), StatusCode::corrupt);
  EXPECT_EQ(tail_of(raw_of(RecordKind::op, many_parameters)), StatusCode::corrupt);
  EXPECT_EQ(tail_of(raw_of(RecordKind::op, FreeRecord{})), StatusCode::corrupt);
  EXPECT_EQ(tail_of(raw_of(RecordKind::function, no_id)), StatusCode::corrupt);
  EXPECT_EQ(tail_of(raw_of(RecordKind::info, long_text)), StatusCode::corrupt);
  EXPECT_EQ(tail_of(raw_of(RecordKind::activity, backwards)), StatusCode::corrupt);
  EXPECT_EQ(tail_of(std::string(24, '\0')), StatusCode::corrupt);
  EXPECT_EQ(tail_of("short"), StatusCode::corrupt);
}

TEST(TraceReader, AHugeIdDoesNotCostMemory) {
  FunctionRecord function{};
  function.function = 0xfffffff0;
  TraceBytes bytes;
  bytes.add(RecordKind::function, 0, function).end_chunk();
  const Trace trace = parse(bytes.bytes());
  EXPECT_EQ(trace.tail.code(), StatusCode::corrupt);
  EXPECT_TRUE(trace.functions.empty());
}

TEST(TraceReader, AChunkThatClaimsTooMuchIsRefused) {
  TraceBytes bytes;
  bytes.info("a=b").end_chunk();
  ChunkHeader header;
  std::memcpy(&header, bytes.bytes().data() + sizeof(FileHeader), sizeof(header));
  header.raw_bytes = kMaxChunkBytes + 8;
  std::memcpy(bytes.bytes().data() + sizeof(FileHeader), &header, sizeof(header));
  EXPECT_EQ(parse(bytes.bytes()).tail.code(), StatusCode::corrupt);
}

TEST(TraceNames, ShortensMangledNames) {
  EXPECT_EQ(short_name("_Z5saxpyIfEviT_PKS0_PS0_"), "saxpy");
  EXPECT_EQ(short_name("_ZN2at6native13reduce_kernelILi512ELi1EfEEvT1_"), "at::native::reduce_kernel");
  EXPECT_EQ(short_name("_ZN12_GLOBAL__N_16kernelEv"), "(anonymous namespace)::kernel");
  EXPECT_EQ(short_name("triton_poi_fused_0"), "triton_poi_fused_0");
  EXPECT_EQ(short_name("_Znot mangled"), "_Znot mangled");
  EXPECT_EQ(short_name(""), "");
  EXPECT_EQ(shown_name("_Z5saxpyIfEviT_PKS0_PS0_"), "saxpy");
  EXPECT_EQ(shown_name("two\nlines\x1b[31m"), "two < lines\\x1b[31m");
}

}  // namespace
}  // namespace reprise::trace
