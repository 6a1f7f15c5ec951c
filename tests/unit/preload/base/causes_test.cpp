// What the library says: each sentence as the golden file has it, and the line that comes of it.
#include "preload/base/causes.h"

#include <cerrno>
#include <fstream>
#include <set>

#include "tests/support/test.h"

namespace reprise {
namespace {

const std::string kGolden = REPRISE_TEST_DATA "/causes.txt";

// With a sample for each hole: texts are the holes' names.
std::string line_of(const CauseRow& row) {
  std::vector<std::string> names;
  std::vector<Unit> units;
  std::string_view rest = row.sentence;
  for (Piece piece = take_piece(&rest); !piece.name.empty(); piece = take_piece(&rest)) {
    names.push_back("<" + std::string(piece.name) + ">");
    units.push_back(piece.unit);
  }
  std::vector<CauseValue> values;
  for (size_t i = 0; i < names.size(); ++i) {
    if (units[i] == Unit::text) {
      values.emplace_back(names[i]);
    } else if (units[i] == Unit::percent) {
      values.emplace_back(12.34);
    } else {
      values.emplace_back(units[i] == Unit::count ? 7 + i : (1 + i) * 1610612736);
    }
  }
  constexpr const char* kSeverities[] = {"warn", "info", "debug", "part"};
  return std::string(row.id) + " " + kSeverities[static_cast<int>(row.severity)] + ": " + text_of(row, values) + "\n";
}

TEST(Causes, AreSaidInTheWordsOfTheGoldenFile) {
  std::string all;
  for (const CauseRow& row : kCauses) all += line_of(row);
  const std::string made = testing::TempDir() + "causes.txt";
  std::ofstream(made) << all;
  EXPECT_TRUE(all == read_file(kGolden)) << "if these words are meant: cp " << made << " " << kGolden;
}

// A kernel by the driver's name for it tells people nothing.
TEST(Causes, CallKernelsWhatPeopleCallThem) {
  EXPECT_EQ(words<Cause::repeat_was_other>("_Z4gemmPKfS0_S0_Pf9GemmShape"),
            "launched again, gemm did something else than the first time");
  for (const CauseRow& row : kCauses) {
    std::vector<CauseValue> values;
    std::string_view rest = row.sentence;
    for (Piece piece = take_piece(&rest); !piece.name.empty(); piece = take_piece(&rest)) {
      const bool is_kernel = piece.unit == Unit::text && (piece.name == "call" || piece.name == "kernel");
      values.emplace_back(is_kernel ? "_Z5saxpyIfEviT_PKS0_PS0_" : "a text");
    }
    EXPECT_FALSE(has(text_of(row, values), "_Z")) << row.id;
  }
  EXPECT_TRUE(has(words<Cause::call_not_supported>("cuMemMap"), "cuMemMap is not")) << "a call of the driver";
}

TEST(Causes, HaveNumbersWhoseKeysAreFreeInTheRunLog) {
  for (const CauseRow& row : kCauses) {
    std::set<std::string> keys = {"kind", "at_ns", "process", "run", "command", "message", "cause"};
    std::string_view rest = row.sentence;
    for (Piece piece = take_piece(&rest); !piece.name.empty(); piece = take_piece(&rest)) {
      const std::string key = key_of(piece);
      EXPECT_TRUE(key.empty() || keys.insert(key).second) << row.id << ": " << key;
    }
  }
}

std::string told;

class SayTest : public testing::Test {
 protected:
  void SetUp() override {
    told.clear();
    set_log_listener([](const Said& said) noexcept { told = std::string(said.row.id) + "|" + said.text; });
  }
  void TearDown() override {
    set_log_listener(nullptr);
    set_log_level(LogLevel::warn);
  }
};

TEST(Causes, ShowSizesThatDifferToTheByteWhereRoundedOnesWouldBeTheSame) {
  const auto line = [](uint64_t used, uint64_t budget) {
    return words<Cause::budget_was_raised>(std::string(), used, budget);
  };
  EXPECT_EQ(line(109051905, 109051904),
            "the budget of 109051905 B was raised to 109051904 B, which the smallest plan takes");
  EXPECT_EQ(line(109051904, 109051904), "the budget of 104 MiB was raised to 104 MiB, which the smallest plan takes");
  EXPECT_EQ(line(54525952, 109051904), "the budget of 52.0 MiB was raised to 104 MiB, which the smallest plan takes");
}

TEST_F(SayTest, WritesOneLineAndTellsTheListener) {
  testing::internal::CaptureStderr();
  errno = EBUSY;
  say<Cause::budget_above_room>(uint64_t{3} << 30, 1536, std::string("others have it"));
  EXPECT_EQ(errno, EBUSY);
  const std::string text = "the budget is 3.0 GiB, but the device has room for 1.5 KiB: others have it";
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "reprise: " + text + "\n");
  EXPECT_EQ(told, "budget_above_room|" + text);
}

TEST_F(SayTest, SaysWhatIsInfoOnlyWhereThatIsAskedFor) {
  testing::internal::CaptureStderr();
  say<Cause::plan_left>("a");
  say_as_info<Cause::on_demand>("b");
  set_log_level(LogLevel::info);
  say<Cause::plan_left>("c");
  say_as_info<Cause::on_demand>("d");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "reprise: left the plan: c\nreprise: memory is managed on demand: d\n");
  EXPECT_EQ(told, "") << "the run log has warnings";
}

// Names of kernels may be longer than a line.
TEST_F(SayTest, CutsLinesAloneWhereTheyAreTooLong) {
  EXPECT_EQ(words<Cause::plan_left>(std::string(3000, 'x')).size(), 3015u);
  testing::internal::CaptureStderr();
  say<Cause::not_defragmented>(std::string(3000, 'x'));
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_EQ(line.size(), 1024u);
  EXPECT_TRUE(line.ends_with("xxx\n"));
  EXPECT_TRUE(told.ends_with("xxx"));
}

TEST_F(SayTest, PartsAreWordsOfTheirOwn) {
  EXPECT_EQ(words<Cause::name_at_end>("chargpt", 12), "chargpt (process 12): ");
  EXPECT_STREQ(phrase<Cause::nothing_planned>(), "nothing was planned; ");
}

}  // namespace
}  // namespace reprise
