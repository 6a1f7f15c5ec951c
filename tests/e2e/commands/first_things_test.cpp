// The first thing that a person would type for a task works: a run without a budget, files without names, ranks of a
// job that share a line.
#include <future>

#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

class FirstThings : public InScratch {
 protected:
  // In a folder of its own, as names are chosen there.
  Outcome reprise(Words words, const Words& program = {}, const Environment& more = {}) const {
    if (!program.empty()) words.emplace_back("--");
    words.insert(words.end(), program.begin(), program.end());
    std::string line = "cd " + file("") + " && exec " + built("bin/reprise");
    for (const std::string& word : words) line += " '" + word + "'";
    return run({"/bin/sh", "-c", line}, launching(merged({{"REPRISE_SIM_GRANULARITY", "16KiB"}}, more)));
  }
  void record() const { well(reprise({"record", "--device", "sim"}, small_trainer(8))); }
  std::string unpacked() const {
    const std::string folder = file("unpacked");
    std::filesystem::create_directory(folder);
    well(run({"/bin/tar", "-C", folder, "-xzf", file("reprise-bug.tar.gz")}, {}));
    return folder;
  }
  bool there(const std::string& name) const {
    const std::string path = file(name);
    return std::filesystem::exists(path) && std::filesystem::file_size(path) > 0;
  }
};

TEST_F(FirstThings, ARunWithoutABudgetTakesWhatIsFree) {
  const Words program = small_trainer(12);
  const Outcome plain = run(program, merged(simulated_device(), {{"REPRISE_SIM_GRANULARITY", "16KiB"}}));
  const Words words = {"run", "--device", "sim", "--run-log", "a.run"};
  const Outcome large = well(reprise(words, program, {{"REPRISE_SIM_MEMORY", "1GiB"}}));
  EXPECT_EQ(large.out, plain.out);
  EXPECT_TRUE(has(large.err, "within what was free, "));
  const uint64_t needed = end_of("a.run")["peak_program_bytes"].get<uint64_t>();
  EXPECT_EQ(end_of("a.run")["offload_bytes"], 0u);
  // On a device that is too small for it plain.
  const std::string less = std::to_string(needed * 3 / 4);
  EXPECT_NE(
      run(program, merged(simulated_device(), {{"REPRISE_SIM_GRANULARITY", "16KiB"}, {"REPRISE_SIM_MEMORY", less}}))
          .exit_code,
      0);
  const Outcome small = well(reprise(words, program, {{"REPRISE_SIM_MEMORY", less}}));
  EXPECT_EQ(small.out, plain.out);
  EXPECT_GT(end_of("a.run")["offload_bytes"], 0u);
  EXPECT_LE(end_of("a.run")["peak_used_bytes"], needed * 3 / 4);
  EXPECT_FALSE(has(small.err, "the budget is")) << "the user has named none";
}

TEST_F(FirstThings, ABudgetOfTheEnvironmentIsNotOverruled) {
  const Outcome outcome =
      well(reprise({"run", "--device", "sim", "--run-log", "a.run"}, small_trainer(6), {{"REPRISE_BUDGET", "16MiB"}}));
  EXPECT_EQ(end_of("a.run")["budget_bytes"], 16u << 20);
  EXPECT_FALSE(has(outcome.err, "has no effect here"));
  const Outcome empty = reprise({"run", "--device", "sim"}, small_trainer(6), {{"REPRISE_BUDGET", ""}});
  EXPECT_TRUE(has(empty.err, "within what was free, "));
}

TEST_F(FirstThings, FilesThatAreNotNamedGetFreeNames) {
  record();
  record();
  EXPECT_TRUE(there("chargpt.trace"));
  EXPECT_TRUE(there("chargpt-2.trace"));
  for (const char* page : {"chargpt.html", "chargpt-2.html"}) {
    const Outcome made = reprise({"report", "chargpt.trace"});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    EXPECT_TRUE(has(made.err, std::string("; report: ") + page + "\n")) << made.err;
    EXPECT_TRUE(there(page));
  }
}

TEST_F(FirstThings, TwoRunsOrPlansAreCompared) {
  record();
  for (const std::string budget : {"90%", "70%"}) {
    well(reprise({"plan", "chargpt.trace", "--budget", budget, "-o", budget + ".plan"}));
    ASSERT_EQ(reprise({"run", "--device", "sim", "--budget", budget, "--run-log", budget + ".run"}, small_trainer(8))
                  .exit_code,
              0);
  }
  for (const std::string kind : {".plan", ".run"}) {
    EXPECT_TRUE(has(well(reprise({"compare", "90%" + kind, "70%" + kind})).err, "A: 90%" + kind + ", B: 70%" + kind));
  }
  EXPECT_TRUE(there("90%.html"));
  EXPECT_TRUE(there("90%-2.html"));
  EXPECT_EQ(reprise({"compare", "chargpt.trace", "90%.plan"}).exit_code, 2);
}

TEST_F(FirstThings, TheSmallestBudgetWithinASlowdownIsLookedFor) {
  record();
  const Outcome few = well(reprise({"simulate", "chargpt.trace", "--slowdown", "5%", "--no-fluid"}));
  EXPECT_TRUE(has(few.err, "at most 5 % slower than computing alone: --budget ")) << few.out;
  EXPECT_TRUE(has(few.out, "slower"));
  EXPECT_FALSE(has(few.out, "SSD"));
  EXPECT_TRUE(has(well(reprise({"simulate", "chargpt.trace", "--no-fluid"})).out, "100% "));
  EXPECT_EQ(reprise({"simulate", "chargpt.trace", "--slowdown", "1MiB"}).exit_code, 2);
}

TEST_F(FirstThings, WhatCostsMostIsPrinted) {
  record();
  const Outcome of_trace = well(reprise({"top", "chargpt.trace"}));
  for (const char* word : {"call site", "alive when most is", "kernel", "Model::layer_forward", "gelu"}) {
    EXPECT_TRUE(has(of_trace.out, word)) << word;
  }
  well(reprise({"plan", "chargpt.trace", "--budget", "70%", "-o", "a.plan"}));
  const Outcome of_plan = reprise({"top", "chargpt.trace", "a.plan"});
  EXPECT_TRUE(has(of_plan.out, "waited")) << of_plan.err;
}

// What lies beside a run log, and is of its run, is taken with it.
TEST_F(FirstThings, WhatCostsMostOfARunNeedsItsTrace) {
  well(reprise({"run", "--device", "sim", "--budget", "70%", "--trace", "a.trace", "--run-log", "a.run"},
               small_trainer(8)));
  EXPECT_TRUE(has(well(reprise({"top", "a.run"})).out, "gelu"));
  well(reprise({"run", "--device", "sim", "--budget", "1GiB", "--run-log", "b.run"}, small_trainer(2)));
  std::filesystem::copy_file(file("a.trace"), file("b.trace"));
  const Outcome alone = reprise({"top", "b.run"});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_TRUE(has(alone.err, "top: b.run has no call sites, tensors or kernels; add its trace or plan, ")) << alone.err;
}

TEST_F(FirstThings, ABugIsPackedWithoutNames) {
  ASSERT_EQ(reprise({"run", "--device", "sim", "--budget", "70%", "--trace", "a.trace", "--run-log", "a.run"},
                    small_trainer(8))
                .exit_code,
            0);
  well(reprise({"bug", "a.trace", "a.run"}));
  const std::string folder = unpacked();
  for (const char* name : {"doctor.txt", "bug.trace", "bug.run", "bug.html"}) {
    EXPECT_TRUE(there(std::string("unpacked/") + name)) << name;
  }
  const std::string texts =
      read_file(folder + "/bug.html") + read_file(folder + "/bug.run") + reprise({"dump", "unpacked/bug.trace"}).out;
  for (const char* name : {"chargpt", "layer_forward", "Trainer", "gelu", file("").c_str()}) {
    EXPECT_FALSE(has(texts, name)) << name;
  }
  EXPECT_EQ(reprise({"bug", "none.trace"}).exit_code, 1);
}

// ... whatever is given: the page alone is of what belongs together.
TEST_F(FirstThings, ABugOfSeveralRunsIsPackedToo) {
  record();
  const Words run = {"run", "--device", "sim", "--budget", "70%", "--run-log"};
  for (const char* log : {"a.run", "b.run"}) well(reprise(joined(run, {log}), small_trainer(8)));
  std::filesystem::copy_file(file("chargpt.trace"), file("torn.trace"));
  std::filesystem::resize_file(file("torn.trace"), std::filesystem::file_size(file("torn.trace")) * 2 / 3);
  std::ofstream(file("notes.txt")) << "the trainer fails\n";
  const Outcome made = well(reprise({"bug", "chargpt.trace", "a.run", "b.run", "torn.trace", "notes.txt"}));
  for (const char* words :
       {"left out of the page: a.run (bug-2.run: the run made another recording than this trace), b.run (bug-3.run: ",
        "torn.trace (bug-4.trace: another file of the same kind); not packed: notes.txt (neither a trace, "}) {
    EXPECT_TRUE(has(made.err, words)) << made.err;
  }
  unpacked();
  std::string texts;
  for (const char* name : {"bug.trace", "bug-2.run", "bug-3.run", "bug-4.trace", "bug.html"}) {
    const std::string part = std::string("unpacked/") + name;
    EXPECT_TRUE(there(part)) << name;
    texts += read_file(file(part));
    if (part.ends_with(".trace")) texts += reprise({"dump", part}).out;
  }
  for (const char* name : {"chargpt", "layer_forward", "Trainer", "gelu", file("").c_str()}) {
    EXPECT_FALSE(has(texts, name)) << name;
  }
  well(reprise({"bug", "b.run", "a.run"}));
  EXPECT_EQ(reprise({"bug", "notes.txt"}).exit_code, 2);
}

TEST_F(FirstThings, ARunSaysHowItGoes) {
  std::string words =
      "cd " + file("") + "; " + built("bin/reprise") + " run --device sim --budget 70% --metrics job-%r.prom --";
  for (const std::string& word : small_trainer(60)) words += " " + word;
  words += " >/dev/null 2>&1 & run=$!; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 0.3; line=$(" +
           built("bin/reprise") +
           " status $run 2>/dev/null); case $line in *iteration*) break;; esac; done; echo \"$line\"; wait $run";
  const Outcome outcome =
      run({"/bin/sh", "-c", words}, merged(simulated_device(), {{"REPRISE_SIM_GRANULARITY", "16KiB"}}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "iteration "));
  EXPECT_TRUE(has(outcome.out, ", peak "));
  const std::string metrics = read_file(file("job-0.prom"));
  for (const char* name : {"reprise_iterations_total{process=\"", "mode=\"planned\"} ", "reprise_device_peak_bytes{"}) {
    EXPECT_TRUE(has(metrics, name));
  }
  EXPECT_EQ(reprise({"status", "1"}).exit_code, 1);
}

// util-linux's `script` is the terminal.
TEST_F(FirstThings, ATerminalHasALineThatSaysHowItGoes) {
  const auto on_terminal = [&](const std::string& option) {
    std::string words = built("bin/reprise") + " run --device sim --budget 70% " + option + " --";
    for (const std::string& word : small_trainer(400)) words += " " + word;
    Environment environment = launching({{"REPRISE_SIM_GRANULARITY", "16KiB"}});
    return run({"/bin/sh", "-c", "cd " + file("") + " && exec script -qec '" + words + "' /dev/null"}, environment).out;
  };
  const std::string line = "\r\033[Kreprise: iteration ";
  const std::string shown = on_terminal("");
  EXPECT_TRUE(has(shown, line)) << shown.substr(0, 2000);
  EXPECT_FALSE(has(shown, "ended")) << "it said so behind a plan's first line";
  EXPECT_FALSE(has(on_terminal("--quiet"), line));
}

// As srun and torchrun start them: the same words, and a number in the environment.
class Ranks : public FirstThings, public testing::WithParamInterface<const char*> {
 protected:
  std::array<Outcome, 2> start(const Words& words) const {
    const auto rank = [&](const char* number) {
      return std::async(std::launch::async, [=, this] {
        return reprise(words, small_trainer(8), {{GetParam(), number}});
      });
    };
    auto first = rank("0");
    auto second = rank("1");
    return {first.get(), second.get()};
  }
};

TEST_P(Ranks, WithNamesOfTheirOwnLoseNothing) {
  for (const Outcome& outcome : start({"run", "--device", "sim", "--budget", "90%", "--run-log", "job-%r.run",
                                       "--trace", "job-%r.trace", "-o", "job-%r.html"})) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  for (const char* name : {"job-0.run", "job-1.run", "job-0.trace", "job-1.trace", "job-0.html", "job-1.html"}) {
    EXPECT_TRUE(there(name)) << name;
  }
}

TEST_P(Ranks, WithOneNameLoseNothingEither) {
  const auto outcomes = start({"run", "--device", "sim", "--budget", "90%", "--run-log", "job.run"});
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcomes[0].out, "");
  EXPECT_EQ(outcomes[0].out, outcomes[1].out);
  EXPECT_TRUE(there("job.run"));
}

INSTANTIATE_TEST_SUITE_P(Launchers, Ranks, testing::Values("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"));

TEST_F(FirstThings, ALogThatCannotBeWrittenStopsNoProgram) {
  const Outcome outcome =
      reprise({"run", "--device", "sim", "--budget", "90%", "--run-log", "no/such/folder.run"}, small_trainer(6));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "no run log is kept"));
  EXPECT_TRUE(has(outcome.err, "; report: "));
}

TEST_F(FirstThings, AnOnDemandRunsLineHasItsTimeAndWhatItMoved) {
  const Outcome outcome =
      reprise({"run", "--device", "sim", "--budget", "70%"}, small_trainer(6), {{"REPRISE_PLANNER", "/bin/false"}});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, " on demand"));
  EXPECT_TRUE(has(outcome.err, " moved"));
}

}  // namespace
}  // namespace reprise::e2e
