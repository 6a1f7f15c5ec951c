// What users get wrong on the command line: one clear line, exit code 2 for usage and 1 for the rest, and the program
// is never started.
#include "analyzer/plan/plan.h"
#include "preload/trace/identity.h"
#include "tests/e2e/cli/installed.h"
#include "tests/support/sample.h"
#include "tests/support/trace_bytes.h"

namespace reprise::tools::test {
namespace {

class Cli : public Installed {
 protected:
  Words run_with(const std::string& budget) const {
    return {"run", "--budget", budget, "--", "/bin/touch", path("tmp/started")};
  }
  bool started() const { return std::filesystem::exists(path("tmp/started")); }
  std::string trace_file() const { return write("a.trace", trace::test::sample_trace().bytes()); }
  std::string plan_file(uint64_t identity = 0) const {
    plan::Plan plan = sample_plan();
    plan.program_hash = identity;
    const Status written = plan::write_plan(plan, path("a.plan"));
    EXPECT_TRUE(written.ok()) << written.message();
    return path("a.plan");
  }
};

TEST_F(Cli, BudgetsThatMakeNoSense) {
  expect_refused(reprise(run_with("0")), 2, "--budget 0");
  expect_refused(reprise(run_with("10PB")), 2, "more than any device");
  expect_refused(reprise(run_with("-1GiB")), 2, "--budget");
  expect_refused(reprise(run_with("abc")), 2, "'abc'");
  expect_refused(reprise(run_with("150%")), 2, "100%");
  expect_refused(reprise(run_with("")), 2, "budget");
  EXPECT_FALSE(started());
}

TEST_F(Cli, OptionsAndCommandsThatDoNotExist) {
  expect_refused(reprise({"run", "--frobnicate", "--", "/bin/true"}), 2, "--frobnicate");
  expect_refused(reprise({"frobnicate"}), 2, "frobnicate");
  expect_refused(reprise({}), 2, "no command");
  expect_refused(reprise({"run", "--device", "tpu", "--budget", "1G", "--", "/bin/true"}), 2, "tpu");
  expect_refused(reprise({"export", trace_file(), "--format", "xml"}), 2, "xml");
}

TEST_F(Cli, ProgramsThatCannotBeRun) {
  expect_refused(reprise({"run", "--budget", "1GiB"}), 2, "--");
  expect_refused(reprise({"run", "--budget", "1GiB", "--"}), 2, "program");
  expect_refused(reprise({"run", "--budget", "1GiB", "--", "/no/such/program"}), 2, "/no/such/program");
  expect_refused(reprise({"run", "--budget", "1GiB", "--", "no-such-program-anywhere"}), 2, "no-such-program-anywhere");
  expect_refused(reprise({"run", "--budget", "1GiB", "--", write("data.txt", "x")}), 2, "data.txt");
}

TEST_F(Cli, HelpAndVersionGoToStdout) {
  const Finished help = well(reprise({"run", "--help"}));
  EXPECT_TRUE(has(help.out, "--budget"));
  EXPECT_EQ(help.err, "");
  EXPECT_TRUE(begins(reprise({"--version"}).out, "reprise "));
}

TEST_F(Cli, HelpIsACommandToo) {
  EXPECT_EQ(reprise({"help"}).out, reprise({"--help"}).out);
  for (const char* command : {"run", "simulate", "help"}) {
    const Finished help = well(reprise({"help", command}));
    EXPECT_EQ(help.out, reprise({command, "--help"}).out);
    EXPECT_NE(help.out, "");
  }
  expect_refused(reprise({"help", "frobnicate"}), 2, "frobnicate");
}

TEST_F(Cli, HelpEnvironmentNamesTheVariablesOfAllParts) {
  const Finished help = well(reprise({"help", "environment"}));
  EXPECT_EQ(help.err, "");
  for (const char* words :
       {"REPRISE_BUDGET ", "REPRISE_HOST_MEMORY          amount; default 80%", "auto, cupti, events",
        "REPRISE_SIM_MEMORY           amount; default 8GiB", "REPRISE_COUNT_OUTPUT ", " KiB "}) {
    EXPECT_TRUE(has(help.out, words)) << words;
  }
}

TEST_F(Cli, OutputsAreCheckedBeforeTheProgramRuns) {
  expect_refused(reprise({"record", "-o", path("no/such/folder/a.trace"), "--", "/bin/touch", path("tmp/started")}), 1,
                 "no/such/folder");
  expect_refused(reprise({"run", "--budget", "1G", "-o", path("lib"), "--", "/bin/touch", path("tmp/started")}), 1,
                 "lib");
  Start start = this->start({"record", "-o", path("a.trace"), "--", "/bin/touch", path("tmp/started")});
  start.unprivileged = true;
  expect_refused(run(start), 1, "Permission denied");
  expect_refused(reprise({"report", trace_file(), "-o", path("no/a.html")}), 1, "no/a.html");
  EXPECT_FALSE(started());
}

TEST_F(Cli, FilesThatAreNotWhatTheyShouldBe) {
  expect_refused(reprise({"dump", path("missing.trace")}), 1, "missing.trace");
  expect_refused(reprise({"dump", write("empty.trace", "")}), 1, "empty.trace");
  expect_refused(reprise({"dump", write("text.trace", "hello, world")}), 1, "text.trace");
  expect_refused(reprise({"report", trace_file(), trace_file(), "-o", path("tmp/a.html")}), 2,
                 "one more file of the same kind");
}

TEST_F(Cli, CodeOfWhatIsNoImage) {
  expect_refused(reprise({"code", path("missing.cubin")}), 1, "missing.cubin");
  expect_refused(reprise({"code", write("text.cubin", "hello, world")}), 1, "text.cubin: neither a cubin nor a fatbin");
  expect_refused(reprise({"code", write("libcublas.so.13", "")}), 1, "libcublas.so.13: one of NVIDIA's libraries");
}

// `reprise run` alone finds nothing out.
TEST_F(Cli, FactsOfNothingSayWhoFindsThemOut) {
  const Finished finished = well(reprise({"facts", "--folder", path("none")}));
  EXPECT_TRUE(has(finished.err, "nothing is known; `reprise run --examine SECONDS` and `reprise audit` find out"));
}

TEST_F(Cli, ATruncatedTraceIsDumpedAndSaidToBe) {
  const std::string whole = read(trace_file());
  const Finished finished = reprise({"dump", write("cut.trace", whole + whole.substr(16, 30))});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_NE(finished.out, "");
  EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1);
  EXPECT_TRUE(has(finished.err, "cut.trace"));
}

TEST_F(Cli, APlanWithOneFlippedByteIsRefused) {
  const std::string whole = read(plan_file());
  for (const size_t at : {size_t{9}, whole.size() / 2, whole.size() - 1}) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    const std::string flipped = write("flipped.plan", bytes);
    expect_refused(reprise({"replay", "--plan", flipped, "--", "/bin/touch", path("tmp/started")}), 1, "flipped.plan");
    expect_refused(reprise({"dump", flipped}), 1, "flipped.plan");
  }
  EXPECT_FALSE(started());
}

TEST_F(Cli, APlanOfAnotherProgramIsRefusedBeforeItStarts) {
  const std::string plan = plan_file(trace::program_identity("/bin/cat"));
  expect_refused(reprise({"replay", "--plan", plan, "--", "/bin/touch", path("tmp/started")}), 1, "another program");
  EXPECT_FALSE(started());
}

TEST_F(Cli, ThePlansOwnProgramIsStarted) {
  const std::string plan = plan_file(trace::program_identity("/bin/touch"));
  well(reprise({"replay", "--plan", plan, "--", "touch", path("tmp/started")}));
  EXPECT_TRUE(started());
}

// The launcher cannot tell which program env will start; the shim in that program checks again.
TEST_F(Cli, ProgramsThatStartOthersAreNotJudged) {
  const std::string plan = plan_file(trace::program_identity("/bin/touch"));
  well(reprise({"replay", "--plan", plan, "--", "env", "touch", path("tmp/started")}));
  EXPECT_TRUE(started());
}

TEST_F(Cli, AScriptIsItsInterpreter) {
  const std::string plan = plan_file(trace::program_identity("/bin/cat"));
  const std::string script = write("script", "#!/bin/touch\n");
  std::filesystem::permissions(script, std::filesystem::perms::all);
  expect_refused(reprise({"replay", "--plan", plan, "--", script, path("tmp/started")}), 1, "another program");
}

TEST_F(Cli, ABudgetBelowThePlansIsRefused) {
  expect_refused(reprise({"replay", "--plan", plan_file(), "--budget", "1MiB", "--", "/bin/true"}), 1, "10.0 MiB");
}

TEST_F(Cli, DumpTellsTracesFromPlans) {
  EXPECT_EQ(reprise({"dump", plan_file()}).out, plan::to_text(sample_plan()));
  EXPECT_NE(reprise({"dump", trace_file()}).out, "");
}

TEST_F(Cli, ReportAndExportWriteFiles) {
  const Finished report =
      reprise({"report", trace_file(), plan_file(), write("a.run", sample_run_log()), "-o", path("tmp/a.html")});
  EXPECT_EQ(report.exit_code, 0) << report.err;
  EXPECT_EQ(report.out, "");
  EXPECT_TRUE(begins(read(path("tmp/a.html")), "<!doctype html>"));
  EXPECT_TRUE(begins(reprise({"export", plan_file(), "--format", "csv"}).out, "vertex,kind"));
}

}  // namespace
}  // namespace reprise::tools::test
