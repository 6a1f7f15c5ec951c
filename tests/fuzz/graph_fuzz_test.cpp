// The reader of task graphs against damaged JSON: it may refuse, in one line, but never crash, hang or ask for memory
// beyond reason; and what it accepts can be planned. REPRISE_FUZZ_ROUNDS and REPRISE_FUZZ_SEED change the defaults for
// long runs.
#include <sys/resource.h>

#include "analyzer/planner/planner.h"
#include "tests/support/test.h"
#include "tools/lab/graphs/json_graph.h"

namespace reprise::tools {
namespace {

constexpr char kSample[] = R"({
  "model": "sample", "batch": 8, "other": [1, [2, {"deep": [3]}], "text"],
  "tensors": [{"id": 7, "bytes": 4194304, "persistent": 1}, {"id": 3, "bytes": 2097152, "persistent": 0},
              {"id": 9, "bytes": 4096}, {"id": 11, "bytes": 6291456}],
  "kernels": [{"id": 0, "name": "forward", "duration_ns": 1000, "inputs": [7], "outputs": [3, 9]},
              {"id": 1, "name": "middle", "duration_ns": 10, "inputs": [3, 9], "outputs": [11], "device": 0},
              {"id": 2, "name": "update", "duration_ns": 2000, "inputs": [3, 7, 11], "outputs": [7],
               "workspace_bytes": 6291456}]})";

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

class GraphFuzz : public ::testing::Test {
 protected:
  uint64_t below(uint64_t limit) { return std::uniform_int_distribution<uint64_t>(0, limit - 1)(random_); }

  // Another number in place of one, or bytes changed, lost, doubled.
  void mutate(std::string& text) {
    if (text.empty()) return;
    const size_t at = below(text.size());
    switch (below(6)) {
      case 0:
        text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1: {
        constexpr char kMarks[] = "{}[],:\"-.0e9\\n";
        text[at] = kMarks[below(sizeof(kMarks) - 1)];
        break;
      }
      case 2:
        text.erase(at, 1 + below(40));
        break;
      case 3:
        text.insert(at, text.substr(below(text.size()), below(120)));
        break;
      default: {
        constexpr const char* kNumbers[] = {"0",
                                            "1",
                                            "-1",
                                            "3",
                                            "7",
                                            "1e9",
                                            "1e99",
                                            "4294967295",
                                            "70368744177664",
                                            "18446744073709551615",
                                            "2.5",
                                            "null",
                                            "\"x\"",
                                            "[]",
                                            "281474976710656"};
        const size_t begin = text.find_first_of("0123456789", at);
        if (begin == std::string::npos) return;
        const size_t end = text.find_first_not_of("0123456789", begin);
        text.replace(begin, end == std::string::npos ? end : end - begin, kNumbers[below(std::size(kNumbers))]);
        break;
      }
    }
  }

  void plan(analyzer::TaskGraph graph) {
    const auto workload = good(analyzer::make_workload(std::move(graph), {}));
    analyzer::PlanOptions options;
    options.policy = "disco";
    options.budget_bytes = workload.minimum_bytes + below(4) * kGraphChunk;
    const Result<plan::Plan> plan = analyzer::make_plan(workload, options);
    EXPECT_EQ(plan.ok() ? std::string::npos : plan.status().message().find('\n'), std::string::npos);
    if (plan.ok()) ++planned_;
  }

  std::mt19937_64 random_{from_environment("REPRISE_FUZZ_SEED", 1)};
  uint64_t planned_ = 0;
};

TEST_F(GraphFuzz, DamagedTexts) {
  const uint64_t rounds = from_environment("REPRISE_FUZZ_ROUNDS", 20'000);
  uint64_t refused = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    std::string text = kSample;
    for (uint64_t i = 0; i <= below(3); ++i) mutate(text);
    Result<analyzer::TaskGraph> graph = parse_graph(text, kGraphChunk);
    if (graph.ok()) {
      // Sizes beyond that are planned, too, but not thousands of times.
      if (graph.value().peak_chunks < 10'000) plan(std::move(graph.value()));
      continue;
    }
    ++refused;
    EXPECT_FALSE(graph.status().message().empty());
    EXPECT_EQ(graph.status().message().find('\n'), std::string::npos) << text;
    EXPECT_LT(graph.status().message().size(), 400u) << text;
  }
  EXPECT_GT(refused, rounds / 4);
  EXPECT_GT(planned_, rounds / 50);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 512 * 1024) << "KiB at the most";
}

}  // namespace
}  // namespace reprise::tools
