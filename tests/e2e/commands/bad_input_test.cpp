// What users get wrong: one clear line, the right exit code, and a program that runs on whatever the shim cannot do.
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

Words random_program() { return {built("bin/random_program"), built("bin/hash_kernels.cubin"), "1", "6"}; }

// Chunks so small that the trainer's few hundred KiB have room to spare in 60 % of them.
Environment small_chunks(const Environment& base) { return merged(base, {{"REPRISE_SIM_GRANULARITY", "16KiB"}}); }

Outcome cli(const Words& words, const Words& program = {}) { return reprise(words, program); }

int64_t lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

void expect_refused(const Outcome& outcome, int exit_code, const std::string& word) {
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
  EXPECT_TRUE(begins(outcome.err, "reprise: "));
  EXPECT_TRUE(has(outcome.err, word));
}

TEST(BadInput, UsageErrorsAreOneLineAndExitCodeTwo) {
  expect_refused(cli({"run", "--no-such-option", "--", "true"}), 2, "--no-such-option");
  expect_refused(cli({"run", "--budget", "50%"}), 2, "program");
  expect_refused(cli({"run", "--budget", "0"}, {"true"}), 2, "budget");
  expect_refused(cli({"run", "--budget", "10PB"}, {"true"}), 2, "10PB");
  expect_refused(cli({"run", "--budget", "lots"}, {"true"}), 2, "lots");
  expect_refused(cli({"no-such-command"}), 2, "no-such-command");
}

TEST(BadInput, AMissingProgramIsNamed) {
  const Outcome outcome = cli({"run", "--device", "sim", "--budget", "50%"}, {"/nonexistent/program"});
  expect_refused(outcome, 2, "/nonexistent/program");
}

// What there are too few of are open files, whichever of ours could not be opened.
TEST(BadInput, ALimitOfOpenFilesIsNamed) {
  const Scratch scratch;
  const std::string temporary = scratch.path("tmp");
  std::filesystem::create_directory(temporary);
  Environment environment =
      small_chunks(merged(simulated_device(), {{"TMPDIR", temporary}, {"REPRISE_WAIT_FOR_PLAN", "1"}}));
  environment.erase("LD_LIBRARY_PATH");
  int unplanned = 0;
  for (int limit = 6; limit < 13; ++limit) {
    const std::string number = std::to_string(limit);
    Words words = {"/bin/bash", "-c", "ulimit -n " + number + "; exec \"$@\"", "bash"};
    const Words limited =
        joined({built("bin/reprise"), "run", "--device", "sim", "--budget", "60%", "-o", scratch.path("a.html"), "--"},
               small_trainer(10));
    words.insert(words.end(), limited.begin(), limited.end());
    const Outcome outcome = run(words, environment);
    for (const std::string& vague : {std::string("Too many open files"), std::string("planner failed"), temporary}) {
      EXPECT_FALSE(has(outcome.err, vague)) << limit;
    }
    if (outcome.exit_code == 0 && outcome.err.find("managed on demand") == std::string::npos) continue;
    ++unplanned;
    EXPECT_TRUE(has(outcome.err, "the limit of open files, " + number + ", is too low; raise it (ulimit -n)"));
  }
  EXPECT_GT(unplanned, 0) << "the test tests nothing";
}

class Files : public InScratch {
 protected:
  void SetUp() override {
    well(cli({"record", "--device", "sim", "-o", trace()}, small_trainer(6)));
    well(cli({"plan", trace(), "--budget", "60%", "-o", plan()}));
    plain_ = run(small_trainer(6), small_chunks(simulated_device()));
  }
  std::string trace() const { return file("a.trace"); }
  std::string plan() const { return file("a.plan"); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(file(name), std::ios::binary) << bytes;
    return file(name);
  }
  // The shim alone, with a plan that it must refuse: the program runs on and prints what it always prints.
  void expect_program_unharmed(const std::string& plan_path, const Words& argv, const std::string& expected,
                               int64_t said = 1) const {
    const Outcome outcome = well(run(argv, merged(small_chunks(preloaded("100%")), {{"REPRISE_PLAN", plan_path}})));
    EXPECT_EQ(outcome.out, expected);
    EXPECT_EQ(lines(outcome.err), said) << outcome.err;
  }

  Outcome plain_;
};

TEST_F(Files, ATruncatedTraceIsNamedAndStillDumps) {
  const std::string whole = read_file(trace());
  const std::string cut = write("cut.trace", whole.substr(0, whole.size() * 2 / 3));
  expect_refused(cli({"plan", cut, "--budget", "60%", "-o", file("b.plan")}), 1, "cut.trace");
  expect_refused(cli({"dump", write("empty.trace", "")}), 1, "empty.trace");
  const Outcome dumped = cli({"dump", cut});
  EXPECT_EQ(dumped.exit_code, 1);
  EXPECT_EQ(lines(dumped.err), 1) << dumped.err;
}

TEST_F(Files, APlanWithOneFlippedByteIsRefusedEverywhere) {
  std::string bytes = read_file(plan());
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x10);
  const std::string flipped = write("flipped.plan", bytes);
  expect_refused(cli({"replay", "--device", "sim", "--plan", flipped}, small_trainer(6)), 1, "flipped.plan");
  expect_program_unharmed(flipped, small_trainer(6), plain_.out);
}

// As `reprise replay` does it.
TEST_F(Files, APlanWithoutABudgetIsEnforcedWithinItsOwn) {
  const std::string log = file("a.run");
  const Environment preload = merged(small_chunks(preloaded("")), {{"REPRISE_RUN_LOG", log}});
  const Outcome planned = run(small_trainer(6), merged(preload, {{"REPRISE_PLAN", plan()}}));
  EXPECT_EQ(planned.out, plain_.out) << planned.err;
  const std::string words = read_file(log);
  EXPECT_TRUE(has(words, "\"mode\":\"planned\""));
  EXPECT_TRUE(has(words, "\"budget_bytes\":"));
  std::filesystem::remove(log);
  for (const std::string& missing : {file("none.plan"), std::string()}) {
    const Outcome outcome = run(small_trainer(6), merged(preload, {{"REPRISE_PLAN", missing}}));
    EXPECT_EQ(outcome.out, plain_.out);
    EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
    EXPECT_TRUE(has_cause(outcome.err, missing.empty() ? Cause::variable_without_effect : Cause::plan_unreadable));
  }
  EXPECT_FALSE(std::filesystem::exists(log));
}

TEST_F(Files, APlanOfAnotherProgramIsRefusedEverywhere) {
  expect_refused(cli({"replay", "--device", "sim", "--plan", plan()}, random_program()), 1, "a.plan");
  const Outcome other = run(random_program(), small_chunks(simulated_device()));
  expect_program_unharmed(plan(), random_program(), other.out, 2);
}

TEST_F(Files, AReportOfTwoProgramsIsRefused) {
  well(cli({"record", "--device", "sim", "-o", file("b.trace")}, random_program()));
  expect_refused(cli({"report", file("b.trace"), plan(), "-o", file("b.html")}), 1, "another program");
}

TEST_F(Files, NoPermissionOnTheOutputIsSaidBeforeTheProgramRuns) {
  const std::string folder = file("locked");
  std::filesystem::create_directory(folder);
  std::filesystem::permissions(folder, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  // root may write anywhere: a folder in place of the file refuses root, too.
  const std::string target = geteuid() == 0 ? folder : folder + "/a.trace";
  expect_refused(cli({"record", "--device", "sim", "-o", target}, small_trainer(6)), 1, "locked");
  expect_refused(cli({"plan", trace(), "--budget", "60%", "-o", target}), 1, "locked");
  expect_refused(cli({"report", trace(), plan(), "-o", target}), 1, "locked");
  const Outcome outcome =
      well(run(small_trainer(6), merged(small_chunks(preloaded("100%")), {{"REPRISE_TRACE", target}})));
  EXPECT_EQ(outcome.out, plain_.out);
}

// The exit code is the program's: its own, or 128 and the signal, as a shell tells it. Ctrl-C ends it, not the report.
TEST(BadInput, ProgramsThatEndBadlyEndTheSameWayUnderRun) {
  const Scratch scratch;
  const auto under_run = [&](const Words& program) {
    return cli({"run", "--device", "sim", "--budget", "100%", "-o", scratch.path("a.html")}, program);
  };
  const std::string trainer = small_trainer(6).front();
  EXPECT_EQ(under_run({built("bin/random_program"), "/nonexistent.cubin", "1", "6"}).exit_code, 3);
  EXPECT_EQ(under_run({"/bin/sh", "-c", trainer + " --layers 1 --width 32 --steps 1 >&2; kill -SEGV $$"}).exit_code,
            128 + 11);
  const Words interrupted = {"/usr/bin/timeout", "--preserve-status", "-s", "INT", "1"};
  Words endless = small_trainer(1000000);
  endless.insert(endless.begin(), interrupted.begin(), interrupted.end());
  const Outcome outcome = under_run(endless);
  EXPECT_EQ(outcome.exit_code, 128 + 2);
  const std::string page = read_file(scratch.path("a.html"));
  EXPECT_TRUE(has(page, "The command that started it ended with exit code 130")) << outcome.err;
}

// CUDA's runtime takes the library for a stub and says so, without asking for a driver any further.
TEST(BadInput, TheLibraryAloneSaysThatThereIsNoDriver) {
  const Outcome outcome =
      run({built("bin/chargpt"), "--steps", "1"}, {{"LD_PRELOAD", built("lib/reprise/libreprise.so")},
                                                   {"REPRISE_BUDGET", "60%"},
                                                   {"REPRISE_DRIVER", "/nowhere/libcuda.so.1"}});
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_TRUE(begins(outcome.err, "reprise: REPRISE_DRIVER=/nowhere/libcuda.so.1 is not a loadable driver"));
  EXPECT_EQ(outcome.err.find("reprise: ", 1), std::string::npos) << outcome.err;
}

// Values that cannot be read, files that are not there: one line, and the program runs on as without Reprise.
TEST(BadInput, TheShimAloneNeverHarmsTheProgram) {
  const Outcome plain = run(small_trainer(2), small_chunks(simulated_device()));
  const Scratch scratch;
  std::ofstream(scratch.path("empty")).flush();
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"REPRISE_BUDGET", "10PB"},
                                                        {"REPRISE_BUDGET", "0"},
                                                        {"REPRISE_BUDGET", "-5%"},
                                                        {"REPRISE_BUDGET", "150%"},
                                                        {"REPRISE_HOST_MEMORY", "lots"},
                                                        {"REPRISE_PLAN", scratch.path("empty")},
                                                        {"REPRISE_PLAN", scratch.path("missing")},
                                                        {"REPRISE_PLAN", scratch.path("")},
                                                        {"REPRISE_TRACE", scratch.path("no/folder")},
                                                        {"REPRISE_RUN_LOG", scratch.path("no/folder")}}) {
    const Outcome outcome = run(small_trainer(2), merged(small_chunks(preloaded("100%")), {{name, value}}));
    EXPECT_EQ(outcome.exit_code, 0) << name << "=" << value;
    EXPECT_EQ(outcome.out, plain.out) << name << "=" << value;
    EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
    EXPECT_TRUE(begins(outcome.err, "reprise: "));
    EXPECT_TRUE(has(outcome.err, value));
  }
}

}  // namespace
}  // namespace reprise::e2e
