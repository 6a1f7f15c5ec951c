// A program that asks NVML is told what CUDA tells: of a device of the budget's size, where the budget is one of bytes.
#include <gtest/gtest.h>

#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

constexpr const char* kReal = "1000 = 900 + 100, 1000 = 890 + 100 + 10";

// What stands behind `where` on its line.
std::string behind(const std::string& out, const std::string& where) {
  const size_t at = out.find(where);
  return at == std::string::npos ? "" : out.substr(at + where.size(), out.find('\n', at) - at - where.size());
}

class Nvml : public testing::Test {
 protected:
  Outcome within(const std::string& budget, bool has_nvml = true) {
    const Environment real = {{"LD_LIBRARY_PATH", built("lib/fake_nvml")}};
    return reprise({"run", "--device", "sim", "--budget", budget, "-o", scratch_.path("a.html")},
                   {built("bin/nvml_program")}, has_nvml ? real : Environment{});
  }
  Scratch scratch_;
};

TEST_F(Nvml, TellsOfTheBudgetAsCudaDoes) {
  const Outcome outcome = within("40MiB");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  EXPECT_EQ(behind(outcome.out, "taken, CUDA: "), "36 of 40");
  EXPECT_EQ(behind(outcome.out, "taken, device 0: "), "40 = 36 + 4, 40 = 36 + 4 + 0");
}

TEST_F(Nvml, OtherDevicesAndOtherTimesAreTheirOwn) {
  const std::string out = within("40MiB").out;
  for (const char* where : {"before, device 0: ", "before, device 1: ", "taken, device 1: "}) {
    EXPECT_EQ(behind(out, where), kReal) << where << out;
  }
}

TEST_F(Nvml, AllElseIsTheRealLibrarys) {
  EXPECT_EQ(behind(within("40MiB").out, "rows "), "0: 5 7 7 7, power 13") << "NVML_ERROR_FUNCTION_NOT_FOUND";
}

TEST_F(Nvml, APercentageLeavesTheDeviceAsItIs) {
  const std::string out = within("80%").out;
  EXPECT_EQ(behind(out, "taken, device 0: "), kReal) << out;
  EXPECT_EQ(behind(out, "power "), "-1") << "nothing stands in front of the library: " << out;
}

// The inner command finds the library that the outer one has preloaded.
TEST_F(Nvml, ACommandWithinACommandFindsTheRealOne) {
  const Words inner = {
      built("bin/reprise"),     "run", "--device", "sim", "--budget", "40MiB", "-o", scratch_.path("inner.html"), "--",
      built("bin/nvml_program")};
  const Outcome outcome = reprise({"run", "--device", "sim", "--budget", "80MiB", "-o", scratch_.path("outer.html")},
                                  inner, {{"LD_LIBRARY_PATH", built("lib/fake_nvml")}});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(behind(outcome.out, "taken, device 0: "), "40 = 36 + 4, 40 = 36 + 4 + 0");
  EXPECT_EQ(behind(outcome.out, "rows "), "0: 5 7 7 7, power 13");
}

TEST_F(Nvml, WhereThereIsNoneThereIsNone) { EXPECT_EQ(within("40MiB", false).out, "no NVML\n"); }

}  // namespace
}  // namespace reprise::e2e
