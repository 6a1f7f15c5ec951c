// What a call of cuBLAS says of its operands holds for the launches that it makes: a program of such launches alone is
// managed as one of proven kernels, without a look at any code. Skipped where cuBLAS's headers, and so the program, are
// missing.
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

constexpr int kLayers = 6;
constexpr int kIterations = 10;

class Declared : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(built("bin/products_program"))) GTEST_SKIP() << "no headers of cuBLAS";
  }

  static Words program(const Words& more = {}) {
    Words words = {
        built("bin/products_program"), "--width", "1024", "--layers", std::to_string(kLayers), "--iterations",
        std::to_string(kIterations)};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  // What the program prints within `budget`, no code being read; `plan_` is the last one that was taken.
  std::string managed(const Words& words, const std::string& budget, const Environment& more = {}) {
    const std::string log = scratch_.path("run" + std::to_string(++runs_));
    const Environment ours = {{"REPRISE_NVDISASM", "none"},
                              {"REPRISE_RUN_LOG", log},
                              {"REPRISE_FACTS", log + ".facts"},
                              {"REPRISE_WAIT_FOR_PLAN", "1"}};
    const Outcome got = run(words, merged(merged(preloaded(budget), ours), more));
    EXPECT_EQ(got.exit_code, 0) << got.err;
    const std::vector<json> lines = read_run_log(log);
    const auto plans = lines_of(lines, "plan");
    plan_ = plans.empty() ? json() : plans.back();
    mappings_ = -1;
    int planned = 0;
    for (const json& line : lines_of(lines, "iteration")) {
      if (line["mode"] != "planned" || ++planned <= 2) continue;
      mappings_ = std::max(mappings_, line["vmm_calls"].get<int64_t>());
    }
    return got.out;
  }

  Scratch scratch_;
  json plan_;
  int64_t mappings_ = -1;  // most in a planned iteration
  int runs_ = 0;
};

TEST_F(Declared, ProductsAreProvenByTheCallsThatMakeThem) {
  const std::string expected = run(program(), simulated_device()).out;
  EXPECT_EQ(managed(program(), "50%"), expected);
  ASSERT_FALSE(plan_.is_null());
  EXPECT_EQ(plan_["launches"], 3 * kLayers);
  EXPECT_EQ(plan_["audited_launches"], 3 * kLayers);
  EXPECT_GE(mappings_, 0);
  EXPECT_LT(mappings_, 2 * kLayers);  // a trusted plan's, for what changes its chunks
  EXPECT_EQ(managed(program(), "50%", {{"REPRISE_SAFETY", "strict"}}), expected);
  ASSERT_FALSE(plan_.is_null());
  EXPECT_EQ(plan_["audited_launches"], 0);
}

TEST_F(Declared, OneOfATableIsNot) {
  const std::string expected = run(program({"tables"}), simulated_device()).out;
  EXPECT_EQ(managed(program({"tables"}), "50%"), expected);
  ASSERT_FALSE(plan_.is_null());
  EXPECT_EQ(plan_["audited_launches"].get<int>(), plan_["launches"].get<int>() - 1);
}

// Its launches may reach it in ways that no argument tells, so it stays where the driver has made it.
TEST(Libraries, MemoryOfALibraryIsNotManaged) {
  const Scratch scratch;
  constexpr uint64_t kBytes = 12 << 20;
  const Environment more = {{"LIBRARY_BYTES", std::to_string(kBytes)}, {"REPRISE_RUN_LOG", scratch.path("run")}};
  Environment environment = merged(preloaded("64MiB"), more);
  environment["LD_LIBRARY_PATH"] += ":" + built("bin/library_with_memory");
  const Outcome got = run({built("bin/library_memory_program")}, environment);
  EXPECT_EQ(got.out, "good\n") << got.err;
  const std::vector<json> lines = read_run_log(scratch.path("run"));
  const std::vector<json> ends = lines_of(lines, "end");
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_GE(ends[0]["outside_bytes"].get<uint64_t>(), kBytes);
}

// No context is current, so its allocation fails: that is the library's own answer.
TEST(Libraries, AnyLoadedLibraryIsFoundForACallerWithout) {
  Environment environment = merged(preloaded("64MiB"), {{"LIBRARY_BYTES", "4096"}});
  environment["LD_LIBRARY_PATH"] += ":" + built("bin/library_with_memory");
  EXPECT_EQ(run({built("bin/library_local_program")}, environment).out, "the library has answered\n");
}

TEST_F(Declared, RecordingsTellOperandsApart) {
  const std::string trace = scratch_.path("a.trace");
  ASSERT_EQ(reprise({"record", "--device", "sim", "-o", trace}, program()).exit_code, 0);
  const std::string text = reprise({"dump", trace}).out;
  size_t declared = 0;
  size_t only_read = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!has(line, " launch ")) continue;
    if (has(line, " declared")) ++declared;
    if (has(line, ":r@")) ++only_read;
  }
  EXPECT_EQ(declared, 3u * kLayers * kIterations);
  EXPECT_EQ(only_read, declared);  // each product has an operand that it leaves alone
}

}  // namespace
}  // namespace reprise::e2e
