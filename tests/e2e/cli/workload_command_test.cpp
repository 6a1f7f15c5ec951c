// `reprise workload` as people call it, and what `reprise simulate` makes of its files.
#include "tests/e2e/cli/installed.h"
#include "tools/lab/workloads/registry.h"

namespace reprise::tools::test {
namespace {

class WorkloadCommand : public Installed {};

TEST_F(WorkloadCommand, WritesToStdoutPlainAndPacked) {
  const Words start = {"workload", "llama-prefill", "--tokens", "128"};
  const auto with = [&](const Words& more) {
    Words all = joined(start, more);
    return reprise(all);
  };
  const Finished shown = well(with({}));
  EXPECT_TRUE(begins(shown.out, "{\"model\":\"LLaMA 7B prefill\"")) << shown.out.substr(0, 80);
  EXPECT_TRUE(
      has(shown.out, "reprise workload llama-prefill --size 7 --batch 1 --tokens 128 --devices 1 --machine h200"));
  well(with({"-o", path("tmp/a.json")}));
  EXPECT_EQ(read(path("tmp/a.json")), shown.out);
  well(with({"-o", path("tmp/a.json.zst")}));
  EXPECT_LT(read(path("tmp/a.json.zst")).size(), shown.out.size() / 4);
  const auto simulate = [&](const std::string& file) {
    return reprise({"simulate", file, "--budget", "50%", "--policy", "disco", "--machine", "h200"});
  };
  EXPECT_EQ(simulate(path("tmp/a.json.zst")).out, well(simulate(path("tmp/a.json"))).out);
}

TEST_F(WorkloadCommand, OtherMachinesHaveOtherTimes) {
  const Finished fast = reprise({"workload", "llama-prefill", "--tokens", "128"});
  const Finished slow = well(reprise({"workload", "llama-prefill", "--tokens", "128", "--machine", "p100x4"}));
  EXPECT_TRUE(has(slow.out, "\"gpu\":\"p100x4\""));
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
    Words command = {"workload", name, "-o", path("tmp/a.json")};
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
