// Programs under the preloaded library alone, with variables as a user sets them and no launcher that has looked first.
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

class Alone : public InScratch {
 protected:
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(file(name)) << content;
    return file(name);
  }
  // What a plan, a driver or an own file holds is of no matter here: that it is left alone is.
  Outcome with(const Environment& variables, const Words& more = {}) const {
    Environment environment = merged(preloaded("90%"), variables);
    return run(small_trainer(4, more), environment);
  }

  const std::string plain_ = run(small_trainer(4), simulated_device()).out;
};

TEST_F(Alone, APlanIsNotWrittenOver) {
  const std::string plan = write("a.plan", "a plan that somebody has made");
  for (const std::string variable : {"REPRISE_RUN_LOG", "REPRISE_TRACE"}) {
    for (const std::string& path : {plan, file("../" + plan.substr(plan.rfind('/', plan.rfind('/') - 1)))}) {
      const Outcome outcome = with({{"REPRISE_PLAN", plan}, {variable, path}});
      EXPECT_EQ(outcome.out, plain_);
      EXPECT_TRUE(has_cause(outcome.err, Cause::output_is_taken,
                            {{"variable", variable}, {"path", path}, {"what", phrase<Cause::is_plan>()}}));
      EXPECT_EQ(read_file(plan), "a plan that somebody has made");
    }
  }
}

// The planner writes what it has as soon as it starts here, and is not done when the program is.
TEST_F(Alone, APlannerThatIsNotDoneLeavesNoFile) {
  std::filesystem::create_directory(file("files"));
  const std::string asked = file("asked");
  const std::string planner = write("planner",
                                    "#!/bin/bash\nwhile [ $# -gt 0 ]; do\n"
                                    "  case $1 in -o|--status) echo a part > \"$2\";; esac; shift\ndone\n"
                                    "touch " +
                                        asked + "\nexec sleep 60\n");
  chmod(planner.c_str(), 0700);
  const Environment variables = {{"REPRISE_PLANNER", planner},
                                 {"REPRISE_TRACE", file("files/u.trace")},
                                 {"REPRISE_RUN_LOG", file("files/u.run")},
                                 {"REPRISE_SIM_MEMORY_RATE", "100MiB"}};
  const Outcome outcome = well(run(small_trainer(30), merged(preloaded("60%"), variables)));
  EXPECT_TRUE(std::filesystem::exists(asked)) << outcome.err;
  for (const auto& one : std::filesystem::directory_iterator(file("files"))) {
    const std::string name = one.path().filename();
    EXPECT_TRUE(name == "u.trace" || name == "u.run") << name;
  }
}

TEST_F(Alone, OneFileIsNotWrittenTwice) {
  const std::string file = InScratch::file("both");
  for (int time = 0; time < 2; ++time) {  // a new file, and one that is there
    const Outcome outcome = with({{"REPRISE_TRACE", file}, {"REPRISE_RUN_LOG", file}});
    EXPECT_EQ(outcome.out, plain_);
    EXPECT_TRUE(has_cause(outcome.err, Cause::run_log_is_trace, {{"path", file}}));
    well(run({built("bin/reprise"), "dump", file}));
  }
}

TEST_F(Alone, AFileOfTheProgramIsNotWrittenOver) {
  const std::string text = write("text", std::string(20000, 'x'));
  const SaidValues given = {{"variable", "REPRISE_RUN_LOG"}, {"path", text}, {"what", phrase<Cause::is_argument>()}};
  const Outcome outcome = with({{"REPRISE_RUN_LOG", text}}, {"--text", text});
  EXPECT_TRUE(has_cause(outcome.err, Cause::output_is_taken, given));
  // Whatever it makes of it.
  const Outcome other = well(run({built("bin/carrying_program"), "2", "--text=" + text},
                                 merged(preloaded("90%"), {{"REPRISE_RUN_LOG", text}})));
  EXPECT_TRUE(has_cause(other.err, Cause::output_is_taken, given));
  EXPECT_EQ(read_file(text), std::string(20000, 'x'));
}

TEST_F(Alone, APipeMayTakeARunLog) {
  const std::string pipe = file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  for (const std::string& path : {std::string("/dev/null"), pipe}) {
    const Outcome outcome = with({{"REPRISE_RUN_LOG", path}});
    EXPECT_EQ(outcome.out, plain_);
    EXPECT_FALSE(has(outcome.err, path));
  }
  char beginning = '\0';
  EXPECT_EQ(read(reader, &beginning, 1), 1);
  EXPECT_EQ(beginning, '{');
  close(reader);
}

// A planner and a reader go back and forth in a trace.
TEST_F(Alone, ATraceNeedsAFile) {
  const std::string pipe = file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  for (const std::string& path : {std::string("/dev/null"), pipe}) {
    const Outcome outcome = with({{"REPRISE_TRACE", path}});
    EXPECT_EQ(outcome.out, plain_);
    EXPECT_TRUE(has_cause(
        outcome.err, Cause::output_is_taken,
        {{"path", path}, {"what", phrase<Cause::is_no_file>()}, {"lost", phrase<Cause::nothing_recorded>()}}));
  }
  char beginning = '\0';
  EXPECT_EQ(read(reader, &beginning, 1), -1);
  close(reader);
}

// Whatever it is: a pipe, as here, or a file.
TEST_F(Alone, WhatTheProgramPrintsIsNotMixedWithOurs) {
  const std::string link = file("link");
  std::filesystem::create_symlink("/proc/self/fd/1", link);
  const std::string file = InScratch::file("printed");
  for (const std::string variable : {"REPRISE_RUN_LOG", "REPRISE_TRACE"}) {
    const SaidValues taken = {{"variable", variable}, {"path", link}, {"what", phrase<Cause::is_printed_to>()}};
    const Outcome piped = with({{variable, link}});
    EXPECT_EQ(piped.out, plain_);
    EXPECT_TRUE(has_cause(piped.err, Cause::output_is_taken, taken));
    Words words = {"/bin/bash", "-c", "exec \"$@\" > " + file, "bash"};
    const Words program = small_trainer(4);
    words.insert(words.end(), program.begin(), program.end());
    const Outcome printed = run(words, merged(preloaded("90%"), {{variable, link}}));
    EXPECT_EQ(read_file(file), plain_);
    EXPECT_TRUE(has_cause(printed.err, Cause::output_is_taken, taken));
  }
}

// What each of several programs has left, that one command starts with one REPRISE_RUN_LOG and REPRISE_TRACE.
class OneCommand : public Alone {
 protected:
  Outcome command(const std::string& words) const {
    Words shell = {"/bin/bash", "-c", words, "bash"};
    const Words program = small_trainer(4);
    shell.insert(shell.end(), program.begin(), program.end());
    return run(shell, merged(preloaded("90%"), {{"REPRISE_RUN_LOG", log_}, {"REPRISE_TRACE", trace_}}));
  }
  // Programs, in the order of the lines.
  Words programs() const {
    Words names;
    for (const json& start : lines_of(read_run_log(log_), "start")) {
      const std::string path = start["program"];
      names.push_back(path.substr(path.rfind('/') + 1));
    }
    return names;
  }
  // Of which program each trace is, by the names that begin with the one that was given.
  std::map<std::string, std::string> recordings() const {
    std::map<std::string, std::string> found;
    for (const auto& one : std::filesystem::directory_iterator(file(""))) {
      const std::string name = one.path().filename();
      if (name.rfind("u.trace", 0) != 0 || has(name, ".plan")) continue;  // what its planner reads and writes
      const std::string text = run({built("bin/reprise"), "dump", one.path()}).out;
      found[name] = has(text, "vector_add") ? "vector_add" : has(text, "chargpt") ? "chargpt" : "";
    }
    return found;
  }
  const std::string log_ = file("u.run");
  const std::string trace_ = file("u.trace");
  const std::string vector_add_ = built("bin/vector_add") + " 5000 > /dev/null";
};

TEST_F(OneCommand, ProgramsOneAfterTheOtherKeepEachOthersFiles) {
  for (size_t time = 0; time < 2; ++time) {  // typed again, it is another command
    const Outcome outcome = command("\"$@\"; " + vector_add_ + "; true");
    EXPECT_EQ(outcome.out, plain_);
    EXPECT_EQ(programs(), (Words{"chargpt", "vector_add"})) << outcome.err;
    EXPECT_TRUE(has_cause(outcome.err, Cause::run_log_continued, {{"path", log_}}));
    EXPECT_EQ(has_cause(outcome.err, Cause::run_log_replaced, {{"path", log_}}), time == 1) << outcome.err;
    EXPECT_EQ(has_cause(outcome.err, Cause::trace_replaced, {{"path", trace_}}), time == 1) << outcome.err;
    const auto traces = recordings();
    EXPECT_EQ(traces.size(), 2 + time) << testing::PrintToString(traces) << outcome.err;
    EXPECT_EQ(traces.at("u.trace"), "chargpt");
    const auto other = said(outcome.err, Cause::trace_beside, {{"path", trace_}});
    ASSERT_TRUE(other) << outcome.err;
    const std::string beside = other->at("beside");
    EXPECT_EQ(traces.at(beside.substr(beside.rfind('/') + 1)), "vector_add");
    well(run({built("bin/reprise"), "report", log_, trace_, "-o", file("a.html")}));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // times of processes are in hundredths of a second
  }
}

// What was not started with the variable, as a script that sets it for each, has commands of their own.
TEST_F(OneCommand, EachThatIsGivenTheVariableIsACommandOfItsOwn) {
  const std::string given = "REPRISE_RUN_LOG=" + log_ + " ";
  const Outcome outcome = run(
      {"/bin/bash", "-c", given + vector_add_ + "; sleep 0.1; " + given + vector_add_ + "; true"}, preloaded("90%"));
  EXPECT_EQ(programs().size(), 1u) << outcome.err;
  EXPECT_TRUE(has_cause(outcome.err, Cause::run_log_replaced, {{"path", log_}}));
}

// As an interactive shell does, which may have been started with the variable.
TEST_F(OneCommand, EachLineOfAShellWithJobsIsACommandOfItsOwn) {
  const Outcome outcome = command("set -m; " + vector_add_ + "; sleep 0.1; " + vector_add_ + "; true");
  EXPECT_EQ(programs().size(), 1u) << outcome.err;
  EXPECT_EQ(recordings().size(), 1u) << outcome.err;
}

// The simulated device has its memory in a file.
TEST_F(Alone, ALimitOfFilesEndsNoProgram) {
  Words limited = {"/bin/bash", "-c", "ulimit -f 8; exec \"$@\"", "bash"};
  const Words program = small_trainer(4);
  limited.insert(limited.end(), program.begin(), program.end());
  const Outcome outcome = well(run(limited, preloaded("90%")));
  EXPECT_EQ(outcome.out, plain_);
  EXPECT_TRUE(has(outcome.err, "simulated device: no file in memory for what is mapped: File too large (ulimit -f)"));
  EXPECT_TRUE(has_cause(outcome.err, Cause::not_managed));
}

TEST_F(Alone, ADeviceThatCannotBeSharedIsSaidToBeAlone) {
  const std::string other = write("other", "no account of a device");
  EXPECT_TRUE(has(with({{"REPRISE_SIM_SHARED", other}}).err,
                  "REPRISE_SIM_SHARED=" + other + " cannot be used (it holds something else): nobody shares this one"));
  EXPECT_TRUE(has(with({{"REPRISE_SIM_SHARED", "/"}}).err, "REPRISE_SIM_SHARED=/ cannot be used (Is a directory)"));
}

}  // namespace
}  // namespace reprise::e2e
