// `reprise workload` as people call it, and what `reprise simulate` makes of its files.
#include "tests/e2e/cli/installed.h"
#include "tools/lab/workloads/registry.h"

namespace reprise::tools::test {
namespace {

class WorkloadCommand : public Installed {};

TEST_F(WorkloadCommand, WritesToStdoutPlainAndPacked) {
  const std::vector<std::string> start = {"workload", "llama-prefill", "--tokens", "128"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = start;
    all.insert(all.end(), more.begin(), more.end());
    return reprise(all);
  };
  const Finished shown = with({});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_EQ(shown.out.rfind("{\"model\":\"LLaMA 7B prefill\"", 0), 0u) << shown.out.substr(0, 80);
  EXPECT_NE(shown.out.find("reprise workload llama-prefill --size 7 --batch 1 --tokens 128 --devices 1 --machine h200"),
            std::string::npos);
  ASSERT_EQ(with({"-o", path("tmp/a.json")}).exit_code, 0);
  EXPECT_EQ(read(path("tmp/a.json")), shown.out);
  ASSERT_EQ(with({"-o", path("tmp/a.json.zst")}).exit_code, 0);
  EXPECT_LT(read(path("tmp/a.json.zst")).size(), shown.out.size() / 4);
  const auto simulate = [&](const std::string& file) {
    return reprise({"simulate", file, "--budget", "50%", "--policy", "disco", "--machine", "h200"});
  };
  const Finished plain = simulate(path("tmp/a.json"));
  EXPECT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_EQ(simulate(path("tmp/a.json.zst")).out, plain.out);
}

TEST_F(WorkloadCommand, OtherMachinesHaveOtherTimes) {
  const Finished fast = reprise({"workload", "llama-prefill", "--tokens", "128"});
  const Finished slow = reprise({"workload", "llama-prefill", "--tokens", "128", "--machine", "p100x4"});
  ASSERT_EQ(slow.exit_code, 0) << slow.err;
  EXPECT_NE(slow.out.find("\"gpu\":\"p100x4\""), std::string::npos);
  EXPECT_NE(slow.out.substr(slow.out.find("\"kernels\"")), fast.out.substr(fast.out.find("\"kernels\"")));
}

TEST_F(WorkloadCommand, RefusesWhatItDoesNotKnow) {
  expect_refused(reprise({"workload"}), 2, "no workload");
  expect_refused(reprise({"workload", "gpt9"}), 2, "gpt9");
  expect_refused(reprise({"workload", "llama-lora", "--layers", "3"}), 2, "--layers");
  expect_refused(reprise({"workload", "llama-lora", "--size", "13"}), 2, "--size");
  expect_refused(reprise({"workload", "llama-lora", "--devices", "3"}), 2, "--devices");
  expect_refused(reprise({"workload", "llama-lora", "--batch", "0"}), 2, "--batch");
  expect_refused(reprise({"workload", "bert", "--tokens", "513"}), 2, "--tokens");  // it has 512 positions
  expect_refused(reprise({"workload", "llama-lora", "--machine", "moon"}), 2, "moon");
  expect_refused(reprise({"workload", "llama-lora", "-o", path("tmp/a.txt")}), 2, ".json");
  expect_refused(reprise({"workload", "llama-lora", "-o", "/nonexistent/a.json"}), 1, "/nonexistent");
}

// Numbers at the ends of all options: a graph that can be read, or one line that says what is too large.
TEST_F(WorkloadCommand, LargestAndSmallestOptions) {
  expect_refused(reprise({"workload", "llama-prefill", "--batch", "1048576", "--tokens", "1048576"}), 2, "bytes");
  expect_refused(reprise({"workload", "llama-lora", "--tokens", "1048576", "--batch", "64", "--machine", "p100x4"}), 2,
                 "kernel attention.0 would run for");
  expect_refused(reprise({"workload", "llama-lora", "--tokens", "1048576", "--batch", "1048576", "--plain-attention"}),
                 2, "bytes");
  for (const workloads::Row& row : workloads::all_workloads()) {
    const std::string name = row.name;
    std::vector<std::string> command = {"workload", name, "-o", path("tmp/a.json")};
    for (const char* option : {"--batch", "--tokens", "--layers"}) {
      const std::string help = reprise({"workload", name, "--help"}).out;
      if (help.find(std::string("  ") + option + " ") != std::string::npos)
        command.insert(command.end(), {option, "1"});
    }
    ASSERT_EQ(reprise(command).exit_code, 0) << name;
    const Finished simulated = reprise({"simulate", path("tmp/a.json"), "--budget", "100%", "--policy", "lru"});
    EXPECT_EQ(simulated.exit_code, 0) << name << simulated.err;
  }
}

}  // namespace
}  // namespace reprise::tools::test
