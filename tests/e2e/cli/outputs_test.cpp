// Nothing of the user's is destroyed: an output is never a file that the command reads, whatever it is called, and what
// a command leaves behind is what was asked for.
#include <sys/file.h>

#include "analyzer/plan/plan.h"
#include "tests/e2e/cli/installed.h"
#include "tests/support/sample.h"
#include "tests/support/trace_builder.h"
#include "tests/support/trace_file.h"

namespace reprise::tools::test {
namespace {

using analyzer::testing::kChunk;
using analyzer::testing::train_chain;

class OutputFiles : public Installed {
 protected:
  void SetUp() override {
    Installed::SetUp();
    trace_ = write("a.trace", trace_bytes(train_chain(6, 4 * kChunk, 3)));
    before_ = read(trace_);
    plan_ = path("a.plan");
    ASSERT_TRUE(plan::write_plan(sample_plan(), plan_).ok());
    log_ = write("a.run", sample_run_log());
    std::filesystem::create_hard_link(trace_, path("hard"));
    std::filesystem::create_symlink(trace_, path("soft"));
  }
  // The command with `output` in the place of OUT.
  Finished with(Words command, const std::string& output) const {
    std::replace(command.begin(), command.end(), std::string("OUT"), output);
    return reprise(command);
  }
  void make_folder(const std::string& name, bool old) const {
    std::filesystem::create_directory(path("tmp/" + name));
    std::filesystem::permissions(path("tmp/" + name), std::filesystem::perms::owner_all);
    write("tmp/" + name + "/program.trace", "x");
    const timespec times[2] = {{old ? 1000 : 0, old ? 0 : UTIME_NOW}, {old ? 1000 : 0, old ? 0 : UTIME_NOW}};
    utimensat(AT_FDCWD, path("tmp/" + name).c_str(), times, 0);
  }
  bool there(const std::string& name) const { return std::filesystem::exists(path("tmp/" + name)); }

  std::string trace_, before_, plan_, log_;
};

// It could not be read back.
TEST_F(OutputFiles, ARecordingNeedsAFileOfItsOwn) {
  for (const Words& command : std::vector<Words>{{"record", "-o", "OUT", "--", "/bin/true"},
                                                 {"run", "--budget", "50%", "--run-log", "OUT", "--", "/bin/true"},
                                                 {"run", "--budget", "50%", "--save-plan", "OUT", "--", "/bin/true"},
                                                 {"replay", "--plan", plan_, "--run-log", "OUT", "--", "/bin/true"}}) {
    for (const std::string device : {"/dev/null", "/dev/full", "-"}) {
      expect_refused(with(command, device), 2, device + ": a trace, plan or run log needs a file of its own");
    }
  }
}

// What the program prints, the shell has put into a file: it is stdout all the same.
TEST_F(OutputFiles, TheFileOfStdoutIsNoPlaceForARecording) {
  std::filesystem::create_symlink("/proc/self/fd/1", path("stdout"));
  for (const std::string& out : {path("stdout"), path("printed")}) {
    for (const std::string& command : {"record -o " + out + " -- ", "run --budget 50% --run-log " + out + " -- ",
                                       "run --budget 50% -o " + path("a.html") + " --trace " + out + " -- ",
                                       "replay --plan " + plan_ + " --run-log " + out + " -- "}) {
      const Finished finished =
          run({{"/bin/sh", "-c", path("bin/reprise") + " " + command + "/bin/echo x > " + path("printed")},
               {{"TMPDIR", path("tmp")}}});
      expect_refused(finished, 2, out + ": a trace, plan or run log needs a file of its own");
      EXPECT_EQ(read(path("printed")), "");
      EXPECT_TRUE(std::filesystem::is_symlink(path("stdout")));
    }
  }
}

// A name for stdout is no name to give to another file.
TEST_F(OutputFiles, WhatIsWrittenToStdoutByANameIsPrinted) {
  std::filesystem::create_symlink("/proc/self/fd/1", path("stdout"));
  const std::string dumped = reprise({"dump", trace_}).out;
  for (const std::string& out : {path("stdout"), path("printed")}) {
    const std::string command = "echo first; " + path("bin/reprise") + " dump " + trace_ + " -o " + out;
    const Finished finished =
        run({{"/bin/sh", "-c", "(" + command + ") > " + path("printed")}, {{"TMPDIR", path("tmp")}}});
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_EQ(read(path("printed")), "first\n" + dumped);
    EXPECT_TRUE(std::filesystem::is_symlink(path("stdout")));
  }
}

TEST_F(OutputFiles, WhatCannotBePrintedIsSaid) {
  for (const std::string words : {"--help", "--version", "help", "help run", "help environment", "run --help"}) {
    const Finished finished =
        run({{"/bin/sh", "-c", path("bin/reprise") + " " + words + " > /dev/full"}, {{"TMPDIR", path("tmp")}}});
    EXPECT_EQ(finished.exit_code, 1) << words;
    EXPECT_EQ(finished.err, "reprise: stdout: No space left on device; nothing more was written\n") << words;
  }
}

TEST_F(OutputFiles, NoCommandWritesOverWhatItReads) {
  const std::vector<Words> commands = {
      {"plan", trace_, "--budget", "50%", "-o", "OUT"},
      {"plan", trace_, "--budget", "50%", "-o", path("tmp/b.plan"), "--status", "OUT"},
      {"report", plan_, trace_, "-o", "OUT"},
      {"report", trace_, "--json", "-o", "OUT"},
      {"export", trace_, log_, "--format", "perfetto", "-o", "OUT"},
      {"dump", trace_, "-o", "OUT"},
      {"simulate", trace_, "--budget", "50%", "--no-fluid", "--csv", "OUT"},
      {"simulate", trace_, "--budget", "50%", "--no-fluid", "--html", "OUT"},
      {"replay", "--plan", trace_, "--run-log", "OUT", "--", "/bin/true"},
      {"record", "-o", "OUT", "--", "/bin/cat", trace_},
      {"run", "--budget", "1GiB", "-o", "OUT", "--", "/bin/cat", trace_},
      {"run", "--budget", "1GiB", "--trace", "OUT", "--", "/bin/cat", trace_},
      {"run", "--budget", "1GiB", "--save-plan", "OUT", "--", "/bin/cat", "--text=" + trace_},
  };
  for (const auto& command : commands) {
    for (const std::string& output : {trace_, path("lib/../a.trace"), path("hard"), path("soft")}) {
      expect_refused(with(command, output), 2, "would destroy it");
      EXPECT_TRUE(read(trace_) == before_) << command.front() << " " << output;
      EXPECT_TRUE(std::filesystem::is_symlink(path("soft")));
    }
  }
}

// The shell has opened it, and no argument names it.
TEST_F(OutputFiles, WhatTheProgramReadsFromStdinIsNotWrittenOver) {
  for (const std::string command : {"record -o ", "run --budget 1GiB -o ", "run --budget 1GiB --trace ",
                                    "run --budget 1GiB --run-log ", "run --budget 1GiB --save-plan "}) {
    for (const std::string& output : {trace_, path("hard"), path("soft")}) {
      const std::string line = path("bin/reprise") + " " + command + output + " -- /bin/cat < " + trace_;
      const Finished finished = run({{"/bin/sh", "-c", line}, {{"TMPDIR", path("tmp")}}});
      expect_refused(finished, 2, "standard input is that file, and would destroy it");
      EXPECT_TRUE(read(trace_) == before_) << line;
    }
  }
}

TEST_F(OutputFiles, AProgramIsNoPlaceForItsRecording) {
  const std::string program = write("program", "#!/bin/sh\n");
  std::filesystem::permissions(program, std::filesystem::perms::all);
  expect_refused(reprise({"record", "-o", program, "--", program}), 2, "would destroy it");
  expect_refused(reprise({"replay", "--plan", plan_, "--run-log", program, "--", program}), 2, "would destroy it");
  EXPECT_EQ(read(program), "#!/bin/sh\n");
}

TEST_F(OutputFiles, TwoOutputsAreTwoFiles) {
  const std::string one = path("tmp/x");
  expect_refused(reprise({"run", "--budget", "1G", "--trace", one, "--run-log", one, "--", "/bin/true"}), 2, "--trace");
  expect_refused(reprise({"run", "--budget", "1G", "-o", one, "--run-log", one, "--", "/bin/true"}), 2, "-o writes");
  expect_refused(reprise({"simulate", trace_, "--budget", "50%", "--csv", one, "--html", path("tmp/../tmp/x")}), 2,
                 "--csv");
  EXPECT_EQ(reprise({"simulate", trace_, "--budget", "50%", "--no-fluid", "--csv", "/dev/null", "--html", "/dev/null"})
                .exit_code,
            0);
}

TEST_F(OutputFiles, WhatIsReadMayBeWrittenToAPipe) {
  EXPECT_EQ(reprise({"dump", trace_, "-o", "/dev/stdout"}).out, reprise({"dump", trace_}).out);
}

// There is nothing to put in its place.
TEST_F(OutputFiles, WhatWasThereStaysWhereNothingIsWritten) {
  std::filesystem::create_directory(path("out"));
  const std::string page = path("tmp/a.html");
  const std::vector<Words> commands = {
      {"record", "-o", "OUT", "--", "/bin/true"},
      {"record", "-o", "OUT", "--budget", "1GiB", "--", "/bin/true"},
      {"record", "-o", "OUT", "--", "/bin/sh", "-c", ": > $REPRISE_TRACE"},
      {"record", "-o", "OUT", "--", "/bin/sh", "-c", "kill -TERM $$"},
      {"run", "--budget", "1GiB", "-o", page, "--trace", "OUT", "--", "/bin/true"},
      {"run", "--budget", "1GiB", "-o", page, "--run-log", "OUT", "--", "/bin/true"},
      {"run", "--budget", "1GiB", "-o", page, "--save-plan", "OUT", "--", "/bin/true"},
      {"run", "--defragment", "--run-log", "OUT", "--", "/bin/true"},
      {"replay", "--plan", plan_, "--run-log", "OUT", "--", "/bin/true"},
  };
  for (const auto& command : commands) {
    const std::string out = write("out/x", "good");
    const Finished finished = with(command, out);
    EXPECT_EQ(read(out), "good") << command.front();
    EXPECT_TRUE(has(finished.err, "; the file that was there is as it was\n"));
    EXPECT_TRUE(std::filesystem::remove(out));
    EXPECT_TRUE(std::filesystem::is_empty(path("out"))) << command.front();
    EXPECT_FALSE(has(with(command, out).err, "that was there")) << command.front();
    std::filesystem::remove(out);
  }
  const std::string unable = write("program", "#!/no/such/interpreter\n");
  std::filesystem::permissions(unable, std::filesystem::perms::all);
  expect_refused(reprise({"record", "--device", "sim", "-o", write("out/x", "good"), "--", unable}), 2,
                 "cannot be started");
  EXPECT_EQ(read(path("out/x")), "good");
}

TEST_F(OutputFiles, WhatWasThereGoesForWhatIsWritten) {
  std::filesystem::create_directory(path("out"));
  const std::string out = write("out/x", "old");
  write("out/x.old", "mine");
  EXPECT_EQ(reprise({"record", "-o", out, "--", "/bin/sh", "-c",
                     "test ! -e $REPRISE_TRACE && echo new > $REPRISE_TRACE && kill -KILL $$"})
                .signal,
            SIGKILL);
  EXPECT_EQ(read(out), "new\n");
  EXPECT_EQ(read(path("out/x.old")), "mine");
  std::filesystem::remove(out);
  std::filesystem::remove(path("out/x.old"));
  EXPECT_TRUE(std::filesystem::is_empty(path("out")));
}

// The preloaded library puts its plans beside the trace; the user may have a plan there.
TEST_F(OutputFiles, AFileBesideANamedTraceIsLeftAlone) {
  const std::string mine = write("b.trace.plan", "mine");
  for (const Words& options : {Words{"run", "-o", path("tmp/r.html"), "--trace"}, Words{"record", "-o"}}) {
    Words command = joined(options, {path("b.trace"), "--budget", "1GiB", "--", "/bin/sh", "-c",
                                     "echo theirs > $REPRISE_TRACE.plan; echo recording > $REPRISE_TRACE"});
    reprise(command);
    EXPECT_EQ(read(mine), "mine") << command.front();
    EXPECT_EQ(read(path("b.trace")), "recording\n") << command.front();
  }
}

// An output that the user did not name takes the next name that is free.
TEST_F(OutputFiles, WhatHasNoNameOfTheUsersReplacesNothing) {
  const std::string other = path("a-2.plan");
  const std::string kept = read(plan_);
  for (const std::string& name : {other, path("a-3.plan")}) {
    EXPECT_TRUE(has(well(reprise({"plan", trace_, "--budget", "50%"})).err, name));
    EXPECT_TRUE(plan::read_plan(name).ok()) << name;
  }
  EXPECT_EQ(read(plan_), kept);
  write("tmp/reprise-report-sh.html", "mine");
  const Finished ran = run({{"/bin/sh", "-c",
                             "cd " + path("tmp") + " && " + path("bin/reprise") +
                                 " run --budget 1GiB -- /bin/sh -c 'cp " + log_ + " $REPRISE_RUN_LOG'"},
                            {{"TMPDIR", path("tmp")}}});
  EXPECT_TRUE(has(ran.err, "reprise-report-sh-2.html"));
  EXPECT_EQ(read(path("tmp/reprise-report-sh.html")), "mine");
  EXPECT_TRUE(has(read(path("tmp/reprise-report-sh-2.html")), "<html"));
}

// Without -o, it is no mistake of the user if our default name is that of a file which is read.
TEST_F(OutputFiles, ANameOfOurOwnIsNoneOfAFileThatIsRead) {
  write("c.trace", before_);
  const std::string machine =
      write("c.plan", R"({"format":"reprise-machine","version":1,"device":"x","memory_bytes":1})");
  const std::string kept = read(machine);
  const Finished planned = well(reprise({"plan", path("c.trace"), "--budget", "50%", "--machine", machine}));
  EXPECT_EQ(read(machine), kept);
  EXPECT_TRUE(plan::read_plan(path("c-2.plan")).ok()) << planned.err;
  expect_refused(reprise({"plan", trace_, "--budget", "50%", "--machine", plan_}), 1, "a.plan");
  write("d.trace", before_);
  expect_refused(reprise({"plan", path("d.trace"), "--budget", "50%", "--status", path("d.plan")}), 2,
                 "--status " + path("d.plan") + ": the default output writes the same file");
  expect_refused(reprise({"plan", path("no/such/folder/e.trace"), "--budget", "50%"}), 1, "create ");
  const std::string page = write("tmp/reprise-report-sh.html", "mine");
  const Finished ran = run({{"/bin/sh", "-c",
                             "cd " + path("tmp") + " && " + path("bin/reprise") +
                                 " run --budget 1GiB -- /bin/sh -c 'cp " + log_ + " $REPRISE_RUN_LOG' " + page},
                            {{"TMPDIR", path("tmp")}}});
  EXPECT_TRUE(has(ran.err, "reprise-report-sh-2.html"));
  EXPECT_EQ(read(page), "mine");
}

// What needs no private folder does not ask for one.
TEST_F(OutputFiles, NoTemporaryFolderIsNeededToRecordOrReplay) {
  for (const Words& command : {Words{"record", "-o", path("tmp/b.trace"), "--", "/bin/true"},
                               Words{"replay", "--plan", plan_, "--", "/bin/true"}}) {
    Start start = this->start(command);
    start.environment["TMPDIR"] = path("no/such/folder");
    EXPECT_EQ(run(start).exit_code, 0) << command.front();
  }
}

// A file that may not become as large as it would: no death by a signal, no half of it left under any name.
TEST_F(OutputFiles, ALimitOfFilesIsSaidLikeAFullDisk) {
  const std::vector<Words> commands = {
      {"plan", trace_, "--budget", "50%"},
      {"plan", trace_, "--budget", "50%", "-o", "OUT"},
      {"report", trace_, "-o", "OUT"},
      {"export", trace_, "--format", "perfetto", "-o", "OUT"},
      {"export", plan_, "--format", "reprise", "-o", "OUT"},
      {"export", trace_, "--format", "reprise", "-o", "OUT"},
      {"dump", trace_, "-o", "OUT"},
      {"dump", trace_},
      {"simulate", trace_, "--budget", "50%", "--no-fluid", "--html", "OUT"},
  };
  std::filesystem::create_directory(path("out"));
  for (Words command : commands) {
    std::replace(command.begin(), command.end(), std::string("OUT"), path("out/x"));
    std::string line = "ulimit -f 1; " + path("bin/reprise");
    for (const std::string& word : command) line += " '" + word + "'";
    line += " > " + path("tmp/stdout");
    const Finished finished = run({{"/bin/sh", "-c", line}, {{"TMPDIR", path("tmp")}}});
    EXPECT_EQ(finished.signal, 0) << line;
    EXPECT_EQ(finished.exit_code, 1) << line << finished.err;
    EXPECT_TRUE(has(finished.err, "File too large")) << line;
    EXPECT_TRUE(std::filesystem::is_empty(path("out"))) << line;
    EXPECT_FALSE(std::filesystem::exists(path("a-2.plan"))) << line;
  }
}

// The program could not write a byte: the file is there, and empty.
TEST_F(OutputFiles, AnEmptyRecordingIsNoRecording) {
  const Finished finished =
      reprise({"record", "--device", "sim", "-o", path("tmp/b.trace"), "--", "/bin/sh", "-c", ": > $REPRISE_TRACE"});
  expect_refused(finished, 1, "nothing could be written");
}

TEST_F(OutputFiles, AProgramThatDiesOfASignalLeavesNothingBehind) {
  for (const std::string name : {"TERM", "INT", "KILL", "SEGV"}) {
    const Finished finished = reprise({"run", "--budget", "1GiB", "-o", path("report.html"), "--", "/bin/sh", "-c",
                                       "touch $REPRISE_TRACE $REPRISE_RUN_LOG; kill -" + name + " $$"});
    EXPECT_NE(finished.signal, 0) << name;
    EXPECT_TRUE(std::filesystem::is_empty(path("tmp"))) << name;
  }
}

TEST_F(OutputFiles, WhatAKilledRunLeftIsRemovedByTheNextOne) {
  make_folder("reprise-aaaaaa", true);
  make_folder("reprise-bbbbbb", false);      // may be in the making
  make_folder("reprise-cccccc", true);       // in use
  make_folder("reprise-kept-dddddd", true);  // by --keep
  make_folder("reprise-something-else", true);
  const int held = open(path("tmp/reprise-cccccc").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(held, LOCK_EX | LOCK_NB), 0);
  reprise({"run", "--budget", "1GiB", "-o", path("report.html"), "--", "/bin/true"});
  EXPECT_FALSE(there("reprise-aaaaaa"));
  for (const char* name : {"reprise-bbbbbb", "reprise-cccccc", "reprise-kept-dddddd", "reprise-something-else"}) {
    EXPECT_TRUE(there(name)) << name;
  }
  close(held);
}

TEST_F(OutputFiles, SeveralTablesAreSeveralFiles) {
  const std::string plan_table = reprise({"export", plan_, "--format", "csv"}).out;
  const std::string run_table = reprise({"export", log_, "--format", "csv"}).out;
  const Finished both = well(reprise({"export", plan_, log_, "--format", "csv", "-o", path("tmp/all.csv")}));
  EXPECT_TRUE(has(both.err, "all.plan.csv"));
  EXPECT_EQ(read(path("tmp/all.plan.csv")), plan_table);
  EXPECT_EQ(read(path("tmp/all.run.csv")), run_table);
  EXPECT_FALSE(there("all.csv"));
  EXPECT_FALSE(there("all.trace.csv"));
  expect_refused(reprise({"export", plan_, log_, "--format", "csv"}), 2, "-o a.csv writes");
  const std::string named = write("a.run.csv", sample_run_log());  // what a part would be called is an input
  expect_refused(reprise({"export", plan_, named, "--format", "csv", "-o", path("a.csv")}), 2, "would destroy it");
}

TEST_F(OutputFiles, WhatAGraphDoesNotShowIsSaid) {
  const Finished all = reprise({"export", plan_, log_, "--format", "dot"});
  EXPECT_EQ(all.out, reprise({"export", plan_, "--format", "dot"}).out);
  EXPECT_TRUE(has(all.err, "the rest was left out"));
  const Finished part = well(reprise({"export", plan_, "--format", "dot", "--window", "1:2"}));
  EXPECT_EQ(part.err, "");
  EXPECT_LT(part.out.size(), all.out.size());
  for (const char* window : {"a", "5", "1:", ":", "1:2:3", "1:0", "-1:4", "99:1"}) {
    expect_refused(reprise({"export", plan_, "--format", "dot", "--window", window}), 2, "--window");
  }
  expect_refused(reprise({"export", plan_, "--format", "csv", "--window", "0:5"}), 2, "--format dot");
}

}  // namespace
}  // namespace reprise::tools::test
