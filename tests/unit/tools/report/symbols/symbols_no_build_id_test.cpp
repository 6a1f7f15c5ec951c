// Of this test's own program, which is built with lines and linked without a build id.
#include <fmt/core.h>

#include "preload/record/recorder.h"
#include "tests/support/test.h"
#include "tools/report/symbols/symbols.h"

namespace {
constexpr int kAskingLine = __LINE__ + 3;
// Not in the dynamic symbol table, as most functions of a program are not.
[[gnu::noinline]] uint32_t where_it_asks(reprise::Recorder* recorder) {
  const uint32_t site = recorder->call_site(1);
  asm volatile("");  // no tail call
  return site;
}
}  // namespace

namespace reprise::report {
namespace {

class NoBuildId : public testing::Test {
 protected:
  void SetUp() override {
    const std::string path = testing::TempDir() + "symbols_no_build_id.trace";
    Recorder* const recorder = Recorder::open(path.c_str(), nullptr, true);
    ASSERT_NE(recorder, nullptr);
    const uint32_t site = where_it_asks(recorder);
    recorder->finish();
    Result<trace::Trace> read = trace::read_trace(path);
    std::remove(path.c_str());
    ASSERT_TRUE(read.ok()) << read.status().message();
    trace_ = std::move(read.value());
    ASSERT_GE(trace_.call_sites.size(), site);
    ASSERT_EQ(trace_.info.count("module.symbols_no_build_id_test"), 0u) << "it has a build id: this test shows nothing";
    recorded_ = trace_.call_sites[site - 1];
  }
  // What the report makes of the whole stack.
  std::string shown() const {
    trace::Trace trace = trace_;
    trace.call_sites = {recorded_};
    symbolize(trace);
    return trace.call_sites[0];
  }
  bool has_line() const {
    return shown().find(fmt::format(" at symbols_no_build_id_test.cpp:{} (symbols_no_", kAskingLine)) !=
           std::string::npos;
  }

  trace::Trace trace_;
  std::string recorded_;
};

TEST_F(NoBuildId, AProgramIsKnownAgainByItsContent) { EXPECT_TRUE(has_line()) << shown(); }

TEST_F(NoBuildId, AProgramThatWasBuiltAnewIsNotAsked) {
  std::string& hash = trace_.info["program.hash"];
  hash[0] = hash[0] == '0' ? '1' : '0';
  EXPECT_FALSE(has_line()) << shown();
  trace_.info["program.path"] = "/no/such/symbols_no_build_id_test";
  hash = "0000000000000000";  // of a file that could not be read
  EXPECT_FALSE(has_line()) << shown();
  trace_.info["program"] = trace_.info["program.path"] = "/dev/zero";
  recorded_ = "0x12 (zero)";
  EXPECT_EQ(shown(), recorded_) << "and it comes to an end";
}

TEST_F(NoBuildId, AnotherFileThanTheProgramIsNotAsked) {
  trace_.info["program"] = "other --steps 3";
  const std::string link = testing::TempDir() + "other";
  std::filesystem::remove(link);
  std::filesystem::create_symlink(trace_.info["program.path"], link);
  trace_.info["program.path"] = link;
  EXPECT_FALSE(has_line()) << shown();
  trace_.info["program"] = "./symbols_no_build_id_test --steps 3";  // started by another name than its file's
  EXPECT_TRUE(has_line()) << shown();
  std::filesystem::remove(link);
}

}  // namespace
}  // namespace reprise::report
