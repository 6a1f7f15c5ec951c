// Words that do not exist: the one that was probably meant is named, on the one line that says what is wrong.
#include "tests/e2e/cli/installed.h"

namespace reprise::tools::test {
namespace {

class Misspelt : public Installed {
 protected:
  std::string graph() const {
    return write("layers.json",
                 R"({"tensors":[{"id":0,"bytes":2097152,"persistent":1},{"id":1,"bytes":2097152,"persistent":1}],)"
                 R"("kernels":[{"name":"a","duration_ns":1000000,"inputs":[0],"outputs":[]},)"
                 R"({"name":"b","duration_ns":1000000,"inputs":[1],"outputs":[]}]})");
  }
  Finished with_variable(const std::string& name, const std::string& value) const {
    Start start = this->start({"help", "dump"});
    start.environment[name] = value;
    return run(start);
  }
};

TEST_F(Misspelt, Commands) {
  expect_refused(reprise({"rnu"}), 2, "did you mean run?");
  expect_refused(reprise({"help", "simulat"}), 2, "did you mean simulate?");
  expect_refused(reprise({"workload", "lama-lora"}), 2, "did you mean llama-lora?");
  expect_refused(reprise({"frobnicate"}), 2, "see 'reprise --help'");
  expect_refused(reprise({"help", "environment", "budget"}), 2,
                 "budget: 'reprise help environment' takes no more words");
  EXPECT_TRUE(begins(reprise({"help", "workload", "gpt"}).out, "GPT training"));
}

TEST_F(Misspelt, Options) {
  expect_refused(reprise({"run", "--bugdet", "1GiB", "--", "/bin/true"}), 2,
                 "--bugdet: 'reprise run' has no such option");
  expect_refused(reprise({"run", "--bugdet=1GiB", "--", "/bin/true"}), 2, "did you mean --budget?");
  expect_refused(reprise({"workload", "gpt", "--layer", "3"}), 2, "did you mean --layers?");
  expect_refused(reprise({"dump", "a", "--frobnicate"}), 2, "see 'reprise dump --help'");
}

// Of the program, whose place is behind the dashes.
TEST_F(Misspelt, OptionsOfTheProgramAreToldWhereTheyBelong) {
  expect_refused(reprise({"run", "--steps", "3", "--", "/bin/true"}), 2,
                 "--steps: 'reprise run' has no such option; the program's options stand behind it: -- /bin/true "
                 "--steps ...; see 'reprise run --help'");
}

// The message names the misspelt option, not the required one that is missing because of it.
TEST_F(Misspelt, OptionsThatWereMeantForARequiredOne) {
  expect_refused(reprise({"simulate", graph(), "--budgt", "30%"}), 2, "did you mean --budget?");
  expect_refused(reprise({"export", graph(), "--fromat", "csv"}), 2, "did you mean --format?");
  expect_refused(reprise({"plan", graph()}), 2, "--budget is required");
}

TEST_F(Misspelt, TooManyAndTooFewAreCounted) {
  expect_refused(reprise({"report", "a", "b", "c", "d"}), 2, "files: 4 are given, and 3 at most can be; see");
  expect_refused(reprise({"report", "a", "-o", "b", "-o", "c"}), 2, "--output: 2 are given, and 1 at most can be; see");
  expect_refused(reprise({"plan", "a", "--budget"}), 2, "--budget: its SIZE is missing; see");
}

TEST_F(Misspelt, HelpIsInPlainWords) {
  const std::string run_help = reprise({"run", "--help"}).out;
  EXPECT_TRUE(has(run_help, "--device gpu|sim"));
  EXPECT_TRUE(has(run_help, "--examine SECONDS (0 to 86400) (not with --defragment)"));
  EXPECT_TRUE(has(run_help, "--defragment (not with --budget, --examine, --no-memory, --output, "));
  EXPECT_TRUE(has(reprise({"export", "--help"}).out, "Usage: reprise export [OPTIONS] files...\n"));
  for (const char* command :
       {"run", "record", "plan", "simulate", "replay", "report", "export", "facts", "audit", "code"}) {
    const std::string help = reprise({command, "--help"}).out;
    for (const char* word : {"TEXT:", "INT", "REQUIRED", "Excludes:", "x)"}) {
      EXPECT_FALSE(has(help, word)) << command << word;
    }
  }
}

TEST_F(Misspelt, AProgramThatDoesNotStandBehindTheDashes) {
  expect_refused(reprise({"run", "--budget", "1GiB", "./train"}), 2,
                 "./train: the program stands behind '--', as in: reprise run --budget 1GiB -- ./train");
  expect_refused(reprise({"run", "--device=sim", "--keep", "python3", "train.py", "--epochs", "3", "a b"}), 2,
                 "python3: the program stands behind '--', as in: reprise run --device=sim --keep -- python3 train.py "
                 "--epochs 3 'a b'");
  // Options of both, with values that ours do not take.
  expect_refused(reprise({"record", "-o", "a.trace", "./train", "--device", "cuda"}), 2,
                 "./train: the program stands behind '--', as in: reprise record -o a.trace -- ./train --device cuda");
  expect_refused(reprise({"run", "--budget", "1GiB", "./train", "--", "again"}), 2, "as in: -- ./train");
  expect_refused(reprise({"run", "--bugdet", "1GiB", "./train", "--steps", "3"}), 2, "did you mean --budget?");
}

TEST_F(Misspelt, Values) {
  expect_refused(reprise({"run", "--device", "simm", "--budget", "1G", "--", "/bin/true"}), 2, "did you mean sim?");
  expect_refused(reprise({"export", graph(), "--format", "jsno"}), 2, "did you mean json?");
  expect_refused(reprise({"plan", graph(), "--budget", "50%", "--policy", "disko"}), 2, "did you mean disco?");
  expect_refused(reprise({"simulate", graph(), "--budget", "50%", "--machine", "h20"}), 2, "did you mean h200?");
}

TEST_F(Misspelt, Variables) {
  const Finished plain = reprise({"help", "dump"});
  EXPECT_EQ(plain.err, "");
  const Finished misspelt = with_variable("REPRISE_BUGDET", "50%");
  EXPECT_EQ(misspelt.err, "reprise: REPRISE_BUGDET: no such variable; did you mean REPRISE_BUDGET?\n");
  EXPECT_EQ(misspelt.out, plain.out);
  EXPECT_EQ(misspelt.exit_code, 0);
  EXPECT_TRUE(has(with_variable("REPRISE_FROBNICATE", "1").err, "see 'reprise help environment'"));
  for (const char* known : {"REPRISE_SIM_MEMORY", "REPRISE_COUNT_OUTPUT", "REPRISE_TORCH_PYTHON", "REPRISE_TEST_X"}) {
    EXPECT_EQ(with_variable(known, "1").err, "") << known;
  }
}

// One that is not in its list would only be told where something is planned.
TEST_F(Misspelt, ThePoliciesOfTheVariableAreThoseOfTheOption) {
  const std::string variables = reprise({"help", "environment"}).out, help = reprise({"plan", "--help"}).out;
  const auto words_behind = [](const std::string& text, const std::string& before, const char* end) {
    const size_t at = text.find(before);
    if (at == std::string::npos) return before + " is not there";
    return text.substr(at + before.size(), text.find(end, at) - at - before.size());
  };
  std::string policies = words_behind(help, "--policy ", "\n");
  for (size_t at = policies.find('|'); at != std::string::npos; at = policies.find('|', at))
    policies.replace(at, 1, ", ");
  EXPECT_TRUE(has(variables, policies)) << policies;
}

TEST_F(Misspelt, TheVersionNamesItsCommit) {
  const std::string version = reprise({"--version"}).out;
  EXPECT_TRUE(std::string_view(version).starts_with("reprise 0.")) << version;
  EXPECT_NE(version.find('('), std::string::npos) << version;
}

TEST_F(Misspelt, SimulateEndsWithWhatToTake) {
  // Behind what it says of the link, of which the graph says nothing.
  const auto said = [this](const std::string& budgets, const std::string& policy) {
    const std::string all = reprise({"simulate", graph(), "--budget", budgets, "--policy", policy, "--no-fluid"}).err;
    const size_t end = all.find('\n');
    EXPECT_TRUE(has(all.substr(0, end), "24.0 GB/s each way are assumed")) << all;
    return end == std::string::npos ? "" : all.substr(end + 1);
  };
  const std::string last = said("50%,100%,5MiB", "auto");
  EXPECT_TRUE(begins(last, "reprise: recommended of those asked for: --budget "));
  EXPECT_EQ(std::count(last.begin(), last.end(), '\n'), 1) << last;
  EXPECT_TRUE(has(last, "100% or 4MiB, the smallest within 2 % of the fastest: +0.0 % against computing alone"));
  EXPECT_TRUE(has(last, "the smallest of them that works is 50% or 2MiB"));
  EXPECT_EQ(said("50%,100%", "all"), said("50%,100%", "auto")) << "the same policy where several are as fast";
  EXPECT_EQ(said("100%", "auto"), "") << "nothing to choose from";
}

// The first rows are there while the others are still made.
TEST_F(Misspelt, SimulateShowsRowsAsTheyAreReady) {
  well(reprise({"workload", "gpt", "--layers", "4", "-o", path("gpt.json")}));
  Start start =
      this->start({"simulate", path("gpt.json"), "--budget", "100%,60%..90%:1%", "--policy", "auto", "--no-fluid"});
  bool stopped = false;
  start.meanwhile = [&stopped](int pid) { stopped = kill(pid, SIGTERM) == 0; };  // after the first byte
  const Finished finished = run(start);
  EXPECT_TRUE(stopped);
  EXPECT_EQ(finished.signal, SIGTERM);
  EXPECT_TRUE(begins(finished.out, "budget"));
  EXPECT_LT(std::count(finished.out.begin(), finished.out.end(), '\n'), 30);
}

}  // namespace
}  // namespace reprise::tools::test
