// The run log from its writer to its reader: one table names its keys for both.
#include "replay/base/run_log.h"

#include "tests/support/said.h"
#include "tests/support/test.h"
#include "tools/cli/files.h"
#include "tools/report/log/run_log.h"

namespace reprise::replay {
namespace {

template <typename Line, typename Key, typename Value>
constexpr bool takes = requires(Line line, Key key, Value value) {
  line.add(key, value);
};

using End = RunLogLine<run_log::end::Tag>;
static_assert(takes<End, decltype(run_log::end::divergences), uint64_t>);
static_assert(!takes<End, decltype(run_log::memory::device_bytes), uint64_t>, "a key of another kind of line");
static_assert(!takes<End, decltype(run_log::end::divergences), std::string>, "a text for a number");
static_assert(!takes<End, const char*, uint64_t>, "a key without a row");

class RunLogFile : public testing::Test {
 protected:
  void SetUp() override { writer_.open(path_.c_str()); }
  void TearDown() override { std::remove(path_.c_str()); }
  report::RunLog read_back() {
    writer_.flush();
    return report::read_run_log(path_).value();
  }

  const std::string path_ = testing::TempDir() + "run_log_test." + std::to_string(getpid());
  RunLogWriter writer_;
};

TEST_F(RunLogFile, WhatIsWrittenIsRead) {
  RunLogLine start(run_log::start::line);
  start.add(run_log::start::program, std::string("a \"b\"\n\xff")).add(run_log::start::chunk_bytes, 4096);
  writer_.write(start);
  RunLogLine iteration(run_log::iteration::line);
  iteration.add(run_log::iteration::index, 3).add(run_log::iteration::mode, run_log::iteration::on_demand);
  writer_.write(iteration);
  RunLogLine left(run_log::divergence::line);
  left.add(run_log::divergence::iteration, 7).add(run_log::divergence::got, std::string("a free"));
  writer_.write(left);
  const report::RunLog log = read_back();
  EXPECT_EQ(log.program, "a \"b\"\n\xc3\xbf");
  EXPECT_EQ(log.chunk_bytes, 4096u);
  ASSERT_EQ(log.iterations.size(), 1u);
  EXPECT_EQ(log.iterations[0].index, 3u);
  EXPECT_FALSE(log.iterations[0].planned);
  ASSERT_EQ(log.divergences.size(), 1u);
  EXPECT_EQ(log.divergences[0].iteration, 7u);
  EXPECT_EQ(log.divergences[0].got, "a free");
  EXPECT_GT(log.divergences[0].at_ns, 0u);
}

TEST_F(RunLogFile, APlannedIterationIsOne) {
  RunLogLine iteration(run_log::iteration::line);
  iteration.add(run_log::iteration::mode, run_log::iteration::planned);
  writer_.write(iteration);
  ASSERT_EQ(read_back().iterations.size(), 1u);
  EXPECT_TRUE(read_back().iterations[0].planned);
}

void write_start(RunLogWriter& writer, const std::string& program) {
  RunLogLine start(run_log::start::line);
  start.add(run_log::start::program, program);
  writer.write(start);
  writer.flush();
}

// Two programs that are started with one REPRISE_RUN_LOG, without a launcher.
TEST_F(RunLogFile, WhatAnotherProgramIsWritingStays) {
  write_start(writer_, "first");
  RunLogWriter second;
  testing::internal::CaptureStderr();
  second.open(path_.c_str());
  EXPECT_TRUE(has_cause(testing::internal::GetCapturedStderr(), Cause::run_log_shared));
  write_start(second, "second");
  write_start(writer_, "first again");
  const std::string text = tools::read_file(path_).value();
  for (const char* program : {"\"first\"", "\"second\"", "\"first again\""}) {
    EXPECT_TRUE(has(text, program));
  }
}

TEST_F(RunLogFile, WhatAnEarlierRunWroteGoesAndIsSaidTo) {
  const std::string path = path_ + ".2";
  ASSERT_TRUE(tools::write_file(path, "{\"kind\":\"start\",\"program\":\"earlier\"}\n").ok());
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  RunLogWriter later;
  testing::internal::CaptureStderr();
  later.open(path.c_str());
  EXPECT_TRUE(has_cause(testing::internal::GetCapturedStderr(), Cause::run_log_replaced, {{"path", path}}));
  write_start(later, "later");
  EXPECT_EQ(report::read_run_log(path).value().program, "later");
  EXPECT_FALSE(has(tools::read_file(path).value(), "earlier"));
  std::remove(path.c_str());
}

// It was killed within a line.
TEST_F(RunLogFile, WhatAnEarlierProgramOfTheCommandWroteStays) {
  const std::string path = path_ + ".3";
  std::this_thread::sleep_for(std::chrono::milliseconds(30));  // this process is the command
  ASSERT_TRUE(tools::write_file(path, "{\"kind\":\"start\",\"program\":\"earlier\"}\n{\"kind\":\"mem").ok());
  RunLogWriter later;
  testing::internal::CaptureStderr();
  later.open(path.c_str());
  EXPECT_TRUE(has_cause(testing::internal::GetCapturedStderr(), Cause::run_log_continued));
  write_start(later, "later");
  const std::string text = tools::read_file(path).value();
  EXPECT_EQ(text.find("{\"kind\":\"start\",\"program\":\"earlier\"}\n{\"kind\":\"mem\n{"), 0u) << text;
  std::remove(path.c_str());
}

}  // namespace
}  // namespace reprise::replay
