// The Recorder: every call it understands comes back from the file field by field.
#include "preload/record/recorder.h"

#include <dlfcn.h>
#include <errno.h>

#include "preload/record/build_id.h"
#include "preload/trace/identity.h"
#include "preload/trace/reader.h"
#include "tests/support/test.h"

namespace reprise {
namespace {

using trace::Trace;

class RecorderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* why = "";
    recorder_ = Recorder::open(path_.c_str(), &why);
    ASSERT_NE(recorder_, nullptr) << why;
  }

  Trace finish() {
    recorder_->finish();
    Trace trace = good(trace::read_trace(path_));
    EXPECT_TRUE(trace.tail.ok() && trace.ended);
    return trace;
  }

  const Scratch scratch_;
  const std::string path_ = scratch_.path("t.trace");
  Recorder* recorder_ = nullptr;
};

Command launch_command() {
  static const Access kAccesses[2] = {{{5, 16, 0, 0, trace::kAccessRead}, 0x1000}, {{6, 0, 64, 8, 3}, 0x2000}};
  static const uint8_t kParameters[20] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
  Command command{};
  command.op = trace::OpKind::launch;
  command.flags = trace::kOpSynchronous;
  command.stream_id = 3;
  command.sequence = 42;
  command.signature = 0xabcdef;
  command.device = 1;
  command.function = 7;
  command.call_site = 2;
  command.access_count = 2;
  command.accesses = kAccesses;
  command.parameters = kParameters;
  command.parameter_bytes = sizeof(kParameters);
  for (uint32_t i = 0; i < 3; ++i) {
    command.grid[i] = 10 + i;
    command.block[i] = 20 + i;
  }
  command.shared_bytes = 99;
  return command;
}

// Whatever it was started as: `./train` is no path for those who read the trace.
TEST(Modules, AFileIsFoundByWhereItIsMapped) {
  char path[4096];
  mapped_file(reinterpret_cast<const void*>(&launch_command), path, sizeof path);
  EXPECT_EQ(path, std::filesystem::read_symlink("/proc/self/exe").string());
  Dl_info library{};
  ASSERT_NE(dladdr(reinterpret_cast<const void*>(&::strtoull), &library), 0);
  mapped_file(reinterpret_cast<const void*>(&::strtoull), path, sizeof path);
  EXPECT_EQ(path, std::filesystem::canonical(library.dli_fname).string());
  mapped_file(reinterpret_cast<const void*>(&::strtoull), path, 4);
  EXPECT_STREQ(path, "") << "too long for its place";
  mapped_file(path, path, sizeof path);
  EXPECT_STREQ(path, "") << "a stack is no file";
}

TEST_F(RecorderTest, APauseIsRecordedAsOne) {
  Command command = launch_command();
  recorder_->op(command, CUDA_SUCCESS, 0);
  recorder_->pause();
  recorder_->op(command, CUDA_SUCCESS, 0);
  recorder_->stream(5, true, true, 0, 43);
  recorder_->resume(42, 50, true);
  command.sequence = 50;
  recorder_->op(command, CUDA_SUCCESS, 0);
  const Trace trace = finish();
  ASSERT_EQ(trace.events.size(), 2u);
  EXPECT_EQ(trace::sequence_of(trace.events[1]), 50u);
  EXPECT_TRUE(trace.gaps.empty()) << "nothing was lost";
  EXPECT_EQ(trace.streams.size(), 1u) << "streams are facts";
  ASSERT_EQ(trace.pauses.size(), 1u);
  EXPECT_EQ(trace.pauses[0].after_sequence, 42u);
  EXPECT_EQ(trace.pauses[0].header.sequence, 50u);
  EXPECT_EQ(trace.pauses[0].header.flags, trace::kGapSeam);
  EXPECT_TRUE(has(trace::to_text(trace), "\npause between calls 42 and 50 seam\n"));
}

TEST_F(RecorderTest, AnOpComesBackWhole) {
  const Command command = launch_command();
  const uint64_t before = Recorder::now_ns();
  recorder_->op(command, CUDA_SUCCESS, 0);
  const uint64_t after = Recorder::now_ns();
  const Trace trace = finish();
  ASSERT_EQ(trace.events.size(), 1u);
  const auto& op = std::get<trace::Op>(trace.events[0]);
  EXPECT_EQ(op.record.header.sequence, 42u);
  EXPECT_EQ(op.record.header.flags, trace::kOpSynchronous);
  EXPECT_GE(op.record.time_ns, before);
  EXPECT_LE(op.record.time_ns, after);
  EXPECT_EQ(op.record.signature, 0xabcdefu);
  EXPECT_EQ(op.record.op, trace::OpKind::launch);
  EXPECT_EQ(op.record.device, 1u);
  EXPECT_EQ(op.record.thread, static_cast<uint32_t>(::gettid()));
  EXPECT_EQ(op.record.stream, 3u);
  EXPECT_EQ(op.record.function, 7u);
  EXPECT_EQ(op.record.call_site, 2u);
  EXPECT_EQ(op.record.grid[2], 12u);
  EXPECT_EQ(op.record.block[0], 20u);
  EXPECT_EQ(op.record.shared_bytes, 99u);
  ASSERT_EQ(op.accesses.size(), 2u);
  EXPECT_EQ(op.accesses[0].allocation, 5u);
  EXPECT_EQ(op.accesses[0].offset, 16u);
  EXPECT_EQ(op.accesses[1].size, 64u);
  EXPECT_EQ(op.accesses[1].parameter_offset, 8u);
  EXPECT_EQ(op.accesses[1].mode, 3u);
  EXPECT_EQ(op.parameters, std::vector<uint8_t>(command.parameters, command.parameters + 20));
}

TEST_F(RecorderTest, ARefusedOpIsMarked) {
  recorder_->op(launch_command(), CUDA_ERROR_INVALID_VALUE, 1234);
  const Trace trace = finish();
  const auto& op = std::get<trace::Op>(trace.events.at(0));
  EXPECT_EQ(op.record.header.flags, trace::kOpSynchronous | trace::kOpFailed);
  EXPECT_EQ(op.record.time_ns, 1234u);
}

TEST_F(RecorderTest, EveryOtherCallComesBack) {
  recorder_->info("driver", 13000);
  recorder_->info("device.name", "a device");
  const trace::ParameterLayout layout[2] = {{0, 8}, {8, 4}};
  recorder_->function(1, "_Z1kPfi", layout, 2, true);
  recorder_->function(2, "unknown_layout", nullptr, 0, false);
  recorder_->stream(4, true, true, -2, 1);
  AllocateCall allocate{};
  allocate.size = 4096;
  allocate.origin = trace::Origin::async;
  allocate.device = 1;
  allocate.stream_id = 4;
  recorder_->allocated(9, allocate, 0x1234000, 2, 0);
  recorder_->order(trace::OrderKind::event_wait, 4, 17, 3);
  recorder_->mark("forward", 2, 4);
  FreeCall release{};
  release.allocation = 9;
  release.origin = trace::Origin::async;
  release.stream_id = 4;
  recorder_->freed(release, 5);
  recorder_->activity(42, 100, 200);
  recorder_->stream(4, false, true, -2, 6);
  const Trace trace = finish();
  EXPECT_EQ(trace.info.at("driver"), "13000");
  EXPECT_EQ(trace.info.at("device.name"), "a device");
  ASSERT_EQ(trace.functions.size(), 2u);
  EXPECT_EQ(trace.functions[0].name, "_Z1kPfi");
  EXPECT_EQ(trace.functions[0].parameters.at(1).offset, 8u);
  EXPECT_FALSE(trace.functions[1].parameters_known);
  ASSERT_EQ(trace.streams.size(), 2u);
  EXPECT_EQ(trace.streams[0].priority, -2);
  EXPECT_EQ(trace.streams[1].created, 0u);
  ASSERT_EQ(trace.events.size(), 4u);
  const auto& allocated = std::get<trace::Allocate>(trace.events[0]).record;
  EXPECT_EQ(allocated.allocation, 9u);
  EXPECT_EQ(allocated.address, 0x1234000u);
  EXPECT_EQ(allocated.size, 4096u);
  EXPECT_EQ(allocated.device, 1u);
  EXPECT_EQ(allocated.stream, 4u);
  const auto& order = std::get<trace::Order>(trace.events[1]).record;
  EXPECT_EQ(order.order, trace::OrderKind::event_wait);
  EXPECT_EQ(order.event, 17u);
  EXPECT_EQ(std::get<trace::Mark>(trace.events[2]).text, "forward");
  EXPECT_EQ(std::get<trace::Free>(trace.events[3]).record.allocation, 9u);
  EXPECT_EQ(trace.activities.at(42).start_ns, 100u);
}

TEST_F(RecorderTest, PollingIsRecordedOnce) {
  using trace::OrderKind;
  uint64_t sequence = 0;
  for (int i = 0; i < 1000; ++i) recorder_->order(OrderKind::event_query, 0, 5, ++sequence);
  for (int i = 0; i < 1000; ++i) recorder_->order(OrderKind::event_query, 0, 6, ++sequence);
  recorder_->op(launch_command(), CUDA_SUCCESS, 0);
  recorder_->order(OrderKind::event_query, 0, 6, ++sequence);
  recorder_->order(OrderKind::stream_query, 6, 0, ++sequence);
  recorder_->order(OrderKind::stream_synchronize, 6, 0, ++sequence);
  recorder_->order(OrderKind::stream_synchronize, 6, 0, ++sequence);
  recorder_->order(OrderKind::stream_query, 6, 0, ++sequence);
  EXPECT_EQ(finish().events.size(), 8u);
}

TEST_F(RecorderTest, SaysWhichProgramWasRecorded) {
  const Trace trace = finish();
  EXPECT_EQ(trace.info.at("program.path"), std::filesystem::read_symlink("/proc/self/exe").string());
  char hash[17];
  trace::format_identity(trace::program_identity("/proc/self/exe"), hash);
  EXPECT_EQ(trace.info.at("program.hash"), hash);
  EXPECT_TRUE(has(trace.info.at("program"), program_invocation_short_name));
  EXPECT_EQ(trace.info.at("process.id"), std::to_string(::getpid()));
}

// Two functions with equal stack depth: the key tells them apart, as an op's signature does.
__attribute__((noinline)) uint32_t site_in_first(Recorder* recorder, uint64_t key) {
  const uint32_t site = recorder->call_site(key);
  asm volatile("");
  return site;
}
__attribute__((noinline)) uint32_t site_in_second(Recorder* recorder, uint64_t key) {
  const uint32_t site = recorder->call_site(key);
  asm volatile("" : : "r"(key));
  return site;
}

TEST_F(RecorderTest, CallSitesRepeatAndDiffer) {
  std::vector<uint32_t> first;
  std::vector<uint32_t> second;
  for (int i = 0; i < 20; ++i) {
    first.push_back(site_in_first(recorder_, 1));
    second.push_back(site_in_second(recorder_, 2));
  }
  EXPECT_NE(first[0], 0u);
  EXPECT_NE(second[0], 0u);
  EXPECT_NE(first[0], second[0]);
  EXPECT_EQ(first, std::vector<uint32_t>(20, first[0]));
  EXPECT_EQ(second, std::vector<uint32_t>(20, second[0]));
  const Trace trace = finish();
  ASSERT_GE(trace.call_sites.size(), std::max(first[0], second[0]));
  // The test's own functions have no dynamic symbols, so only the file is named.
  EXPECT_TRUE(has(trace.call_sites[first[0] - 1], program_invocation_short_name));
  EXPECT_TRUE(has(trace.call_sites[first[0] - 1], "libc.so.6"));
}

TEST_F(RecorderTest, CallSitesFromManyThreads) {
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (uint64_t key = 1; key <= 2000; ++key) recorder_->call_site(key % 50);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Trace trace = finish();
  EXPECT_GE(trace.call_sites.size(), 1u);
  EXPECT_LE(trace.call_sites.size(), 8u);  // one place, walked from 4 threads: a few stacks at most
  for (const std::string& site : trace.call_sites) EXPECT_FALSE(site.empty());
}

TEST_F(RecorderTest, AFinishedRecorderDoesNothing) {
  recorder_->finish();
  recorder_->op(launch_command(), CUDA_SUCCESS, 0);
  recorder_->info("late", "1");
  EXPECT_FALSE(recorder_->flush(10));
  const Trace trace = finish();
  EXPECT_TRUE(trace.events.empty());
  EXPECT_FALSE(trace.info.contains("late"));
}

TEST_F(RecorderTest, AnOpWithTooManyAccessesIsDroppedAndCounted) {
  std::vector<Access> many(10'000);
  Command command = launch_command();
  command.accesses = many.data();
  command.access_count = static_cast<uint32_t>(many.size());
  recorder_->op(command, CUDA_SUCCESS, 0);
  const Trace trace = finish();
  EXPECT_TRUE(trace.events.empty());
  EXPECT_EQ(trace.dropped, 1u);
}

}  // namespace
}  // namespace reprise
