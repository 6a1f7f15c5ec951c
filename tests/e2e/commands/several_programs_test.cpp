// Several programs of one run use the device: one after the other, side by side, one in the place of the other. All
// files that the run leaves are of one of them, which one rule names (tools/report/log/which_program.h), and the
// others are told.
#include "tests/e2e/commands/launcher_test.h"

namespace reprise::e2e {
namespace {

class SeveralPrograms : public LauncherTest {
 protected:
  static std::string trainer(const std::string& batch, const std::string& steps) {
    return built("bin/chargpt") + " --layers 2 --width 64 --heads 4 --context 32 --seed 1 --batch " + batch +
           " --steps " + steps;
  }
  static std::string small() { return built("bin/vector_add") + " 1000"; }
  // A script that makes a small call itself, and starts the other program while it lives, or becomes it. It ends as
  // that does, by exit() or _exit().
  std::string launcher(const std::string& how) const {
    std::ofstream(file("launcher.py"))
        << "import ctypes, os, subprocess, sys\n"
           "cuda = ctypes.CDLL('libcuda.so.1')\n"
           "context, address = ctypes.c_void_p(), ctypes.c_uint64()\n"
           "for call in (lambda: cuda.cuInit(0), lambda: cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),\n"
           "             lambda: cuda.cuCtxSetCurrent(context),\n"
           "             lambda: cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4096))):\n"
           "    assert call() == 0\n"
        << (how == "exec"    ? "os.execv(sys.argv[1], sys.argv[1:])\n"
            : how == "_exit" ? "os._exit(subprocess.call(sys.argv[1:]))\n"
                             : "sys.exit(subprocess.call(sys.argv[1:]))\n");
    return "/usr/bin/python3 " + file("launcher.py") + " ";
  }
  std::string program_of_trace(const std::string& name) const {
    const std::string text = reprise({"dump", file(name)}).out;
    const size_t at = text.find("program=");
    return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at + 1);
  }
  // The larger one's, not that of a script which has its command line as arguments.
  static bool is_of_the_larger(const std::string& text) {
    return has(text, "program=" + built("bin/chargpt")) && has(text, "--steps 9\n");
  }
  Words files_there() const {
    Words names;
    for (const auto& entry : std::filesystem::directory_iterator(file(""))) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  // Programs that are trainers, of which several ask for as much.
  struct Trainer {
    std::string batch;
    std::string steps;
  };
  struct Alike {
    std::vector<Trainer> programs;
    size_t shown;     // of them
    std::string why;  // behind "which", and of the recording alone
    std::string why_recorded;
    bool has_plan = true;
    std::string between = "; ";
    std::string behind = {};
  };
  static std::vector<Alike> several_alike() {
    const auto all = [](const char* number, const std::string& what) {
      return what + ", of " + number + " programs that used the device and asked for as much memory (within 1 %)";
    };
    const std::string planned = "has a plan";
    const std::string more = "had the most iterations planned";
    const std::string repeats = "repeats the most";
    const std::string two_of_four = ", of the 2 that asked for the most memory of 4 programs that used the device";
    const std::string alone = "asked for the most memory of 2 programs that used the device";
    return {{{{"8", "9"}, {"8", "2"}}, 0, all("2", planned), all("2", repeats)},
            {{{"8", "2"}, {"8", "9"}}, 1, all("2", planned), all("2", repeats)},
            {{{"8", "9"}, {"8", "2"}}, 0, all("2", planned), all("2", repeats), true, " & ", "; wait"},
            {{{"8", "2"}, {"8", "12"}, {"8", "9"}}, 1, all("3", more + ", of the 2 with a plan"), all("3", repeats)},
            {{{"8", "9"}, {"8", "12"}, {"8", "2"}, {"8", "1"}},
             1,
             all("4", more + ", of the 2 with a plan"),
             all("4", repeats)},
            {{{"4", "20"}, {"8", "9"}, {"8", "2"}, {"4", "20"}}, 1, planned + two_of_four, repeats + two_of_four},
            {{{"8", "2"}, {"4", "12"}}, 0, alone, alone, false}};  // less memory, and a plan
  }
  static std::string script_of(const Alike& alike) {
    std::string script;
    for (const Trainer& one : alike.programs) {
      script += (script.empty() ? "" : alike.between) + trainer(one.batch, one.steps);
    }
    return script + alike.behind;
  }
  static std::string words_of(const Trainer& one) { return "--batch " + one.batch + " --steps " + one.steps; }

  // Each starts two programs, of which the trainer with 9 steps asks for more.
  std::vector<std::pair<std::string, std::string>> scripts() const {
    const std::string large = trainer("8", "9");
    const std::string waits = "while ! test -s " + file("a.trace") + "; do sleep 0.01; done; ";
    return {{"small behind", large + "; " + small()},
            {"small first", small() + "; " + large},
            {"large behind, with another trainer first", trainer("4", "6") + "; " + large},
            {"side by side, small first", trainer("4", "12") + " & " + waits + large + "; wait"},
            {"side by side, large first", large + " & " + waits + small() + "; wait"},
            {"a launcher that waits", launcher("call") + large},
            {"a launcher that becomes it", launcher("exec") + large}};
  }

  // How the program ended that is shown, and what is said of the command where that ended otherwise.
  struct Ended {
    std::string launcher;  // how it starts the other one; "": there is none
    std::string script;    // behind the launcher
    int exit_code;         // of the command
    std::string program;   // "": well
    std::string command;   // "": nothing is said of it
  };
  std::vector<Ended> endings() const {
    const std::string large = trainer("8", "9");
    const std::string five = "/bin/sh -c 'exit 5'";
    const std::string killed = "/bin/sh -c 'kill -9 $PPID'";
    const std::string unknown = "the program was killed or crashed, or left without its exit handlers";
    return {{"", large + "; " + trainer("8", "2") + "; false", 1, "", "exit code 1"},
            {"", trainer("8", "2") + "; " + large + "; exit 7", 7, "", "exit code 7"},
            {"", large + "; kill -15 $$", 128 + 15, "", "signal 15 (Terminated)"},
            {"", large + "; " + small(), 0, "", ""},
            {"", "exec " + large, 0, "", ""},
            {"call", five + "; true", 0, "the program ended with exit code 5", "exit code 0"},
            {"call", five + "; exit 3", 3, "the program ended with exit code 5", "exit code 3"},
            {"call", five + "; exit 5", 5, "the program ended with exit code 5", ""},
            {"call", killed + "; true", 0, unknown, ""},
            {"call", killed + "; exit 4", 4, unknown, "exit code 4"},
            {"_exit", five + "; exit 4", 4, unknown, "exit code 4"}};
  }
  // The same where it is the command itself, in the shell's place.
  std::vector<Ended> endings_of_the_command() const {
    return {{"call", "/bin/sh -c 'exit 5'", 5, "the program ended with exit code 5", ""},
            {"call", "/bin/sh -c 'kill -9 $PPID'", 128 + 9, "the program ended with signal 9 (Killed)", ""},
            {"_exit", "/bin/sh -c 'exit 5'", 5, "the program ended with exit code 5, without its exit handlers", ""},
            {"exec", small(), 0, "", ""},
            {"exec", "/bin/sh -c 'exit 6'", 6, "the program ended with exit code 6, without its exit handlers", ""}};
  }
  std::string verdict_of(const std::string& name) const {
    const std::string page = read_file(file(name));
    const size_t at = page.find("\"verdict\":{");
    return at == std::string::npos ? "" : page.substr(at, page.find('}', at) - at);
  }
  // The last line, the page and what is told of the log alone, with or without names.
  void expect_told(const Ended& how, const Outcome& ran) const {
    EXPECT_EQ(ran.exit_code, how.exit_code) << ran.err;
    reprise({"export", file("a.run"), "--redact", "--format", "reprise", "-o", file("redacted.run")});
    const std::string again = reprise({"report", file("a.run"), "-o", file("b.html")}).err;
    const std::string redacted = reprise({"report", file("redacted.run"), "-o", file("c.html")}).err;
    EXPECT_EQ(verdict_of("b.html"), verdict_of("a.html"));
    EXPECT_EQ(verdict_of("c.html"), verdict_of("a.html"));
    const std::string of_command = "he command that started it ended with " + how.command;
    for (const std::string& told : {ran.err, again, redacted, verdict_of("a.html")}) {
      EXPECT_EQ(has(told, "he command that started it"), !how.command.empty()) << told;
      EXPECT_TRUE(how.command.empty() || has(told, of_command)) << told;
      EXPECT_EQ(has(told, "he program ended with") || has(told, "he program was killed"), !how.program.empty()) << told;
      EXPECT_TRUE(how.program.empty() || has(told, how.program.substr(1))) << told;
    }
  }
};

TEST_F(SeveralPrograms, AllFilesOfARunAreOfTheSameOne) {
  for (const auto& [name, script] : scripts()) {
    SCOPED_TRACE(name);
    for (const char* const one : {"a.trace", "a.plan", "a.run", "a.html"}) std::filesystem::remove(file(one));
    const Outcome ran =
        reprise({"run", "--device", "sim", "--budget", "80%", "--trace", file("a.trace"), "--save-plan", file("a.plan"),
                 "--run-log", file("a.run"), "-o", file("a.html"), "--", "/bin/sh", "-c", script},
                {}, {{"REPRISE_WAIT_FOR_PLAN", "1"}});
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_TRUE(is_of_the_larger(program_of_trace("a.trace"))) << program_of_trace("a.trace");
    const Outcome together =
        reprise({"export", file("a.trace"), file("a.plan"), file("a.run"), "--format", "json", "-o", file("b.json")});
    EXPECT_EQ(together.exit_code, 0) << together.err << ran.err;
    EXPECT_TRUE(has(ran.err, "--steps 9, which asked for the most memory of 2 programs"));
    EXPECT_TRUE(has(ran.err, "2 programs used the device: trace, plan and report of this run are of the one"));
    EXPECT_TRUE(has(ran.err, "or add --keep"));
    EXPECT_FALSE(has_cause(ran.err, Cause::other_process_recorded));
    EXPECT_FALSE(has(ran.err, "no plan was made"));
    const Words there = {"a.html", "a.plan", "a.run", "a.trace", "b.json"};
    Words found = files_there();
    std::erase(found, "launcher.py");
    EXPECT_EQ(found, there) << "nothing of the others is left";
  }
}

TEST_F(SeveralPrograms, ARecordingIsOfTheSameOne) {
  for (const auto& [name, script] : scripts()) {
    SCOPED_TRACE(name);
    std::filesystem::remove(file("a.trace"));
    const Outcome ran =
        well(reprise({"record", "--device", "sim", "-o", file("a.trace"), "--", "/bin/sh", "-c", script}));
    EXPECT_TRUE(is_of_the_larger(program_of_trace("a.trace"))) << program_of_trace("a.trace");
    EXPECT_TRUE(has(ran.err, "--steps 9, which asked for the most memory of 2 programs that used the device"));
    EXPECT_TRUE(has(ran.err, "record each by itself"));
    EXPECT_FALSE(has_cause(ran.err, Cause::other_process_recorded));
    Words found = files_there();
    std::erase(found, "launcher.py");
    EXPECT_EQ(found, Words{"a.trace"});
  }
}

// Whichever of them ended last: a plan that was made is kept, and the trace, the page and the log are of that program.
TEST_F(SeveralPrograms, OfThoseThatAskedForAsMuchTheFilesAreOfTheOneWithThePlan) {
  for (const Alike& alike : several_alike()) {
    const std::string script = script_of(alike);
    SCOPED_TRACE(script);
    for (const char* const one : {"a.trace", "a.plan", "a.run", "a.html"}) std::filesystem::remove(file(one));
    const Outcome ran =
        reprise({"run", "--device", "sim", "--budget", "80%", "--trace", file("a.trace"), "--save-plan", file("a.plan"),
                 "--run-log", file("a.run"), "-o", file("a.html"), "--", "/bin/sh", "-c", script},
                {}, {{"REPRISE_WAIT_FOR_PLAN", "1"}});
    const std::string shown = words_of(alike.programs[alike.shown]);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_TRUE(has(program_of_trace("a.trace"), shown + "\n"));
    EXPECT_TRUE(has(ran.err, shown + ", which " + alike.why + ": "));
    EXPECT_EQ(std::filesystem::exists(file("a.plan")), alike.has_plan) << ran.err;
    EXPECT_EQ(has(ran.err, "no plan was made for " +
                               trainer(alike.programs[alike.shown].batch, alike.programs[alike.shown].steps)),
              !alike.has_plan)
        << ran.err;
    EXPECT_EQ(has(ran.err, "; plans were made for others: " + trainer("4", "12") + "\n"), !alike.has_plan) << ran.err;
    Words together = {"export", file("a.trace"), file("a.run"), "--format", "json", "-o", file("b.json")};
    if (alike.has_plan) together.push_back(file("a.plan"));
    const Outcome exported = reprise(together);
    EXPECT_EQ(exported.exit_code, 0) << exported.err << ran.err;
    const Outcome page = reprise({"report", file("a.run"), "-o", file("again.html")});
    EXPECT_TRUE(has(page.out + page.err, shown)) << "read again, it is the same one: " << page.out << page.err;
  }
}

// There is no plan: the one of which more can be planned.
TEST_F(SeveralPrograms, OfThoseThatAskedForAsMuchTheOneWithMoreIterationsIsRecorded) {
  for (const Alike& alike : several_alike()) {
    const std::string script = script_of(alike);
    SCOPED_TRACE(script);
    const Outcome ran = reprise({"record", "--device", "sim", "-o", file("a.trace"), "--", "/bin/sh", "-c", script});
    const std::string shown = words_of(alike.programs[alike.shown]);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_TRUE(has(program_of_trace("a.trace"), shown + "\n"));
    EXPECT_TRUE(has(ran.err, shown + ", which " + alike.why_recorded + "; the others"));
    EXPECT_EQ(has(ran.err, "next: reprise plan "), alike.has_plan) << ran.err;
  }
}

TEST_F(SeveralPrograms, TheOthersAreKeptWhereAllIsKept) {
  const std::string folder = file("tmp");
  std::filesystem::create_directory(folder);
  for (const auto& [name, script] : scripts()) {
    SCOPED_TRACE(name);
    const Outcome ran = reprise({"run", "--device", "sim", "--budget", "80%", "--trace", file("a.trace"), "--keep",
                                 "-o", file("a.html"), "--", "/bin/sh", "-c", script},
                                {}, {{"TMPDIR", folder}});
    EXPECT_TRUE(has(ran.err, ") are in " + folder + "/"));
    Words others;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".trace" || entry.is_symlink()) continue;
      others.push_back(reprise({"dump", entry.path()}).out.substr(0, 2000));
    }
    ASSERT_EQ(others.size(), 1u);
    EXPECT_FALSE(is_of_the_larger(others[0])) << others[0];
    EXPECT_TRUE(is_of_the_larger(program_of_trace("a.trace")));
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
  }
}

// A shell's exit code is not that of a program which it has started.
TEST_F(SeveralPrograms, AnExitCodeIsToldOfWhatEndedWithIt) {
  const Words command = {"run",       "--device",    "sim", "--budget",     "80%",
                         "--run-log", file("a.run"), "-o",  file("a.html"), "--"};
  const auto run_as = [&](const Words& program) {
    for (const char* const one : {"a.run", "a.html"}) std::filesystem::remove(file(one));
    Words words = joined(command, program);
    return reprise(words);
  };
  for (const Ended& how : endings()) {
    const std::string script = (how.launcher.empty() ? "" : launcher(how.launcher)) + how.script;
    SCOPED_TRACE(script);
    expect_told(how, run_as({"/bin/sh", "-c", script}));
  }
  for (const Ended& how : endings_of_the_command()) {
    const std::string script = "exec " + launcher(how.launcher) + how.script;
    SCOPED_TRACE(script);
    expect_told(how, run_as({"/bin/sh", "-c", script}));
  }
}

// What a program says at its end is not taken for another's; where there is no other, it needs no name.
TEST_F(SeveralPrograms, LinesAtTheEndNameTheirProgramWhereThereAreOthers) {
  const auto named = [](const std::string& err) {
    Words names;
    std::istringstream lines(err);
    for (std::string line; std::getline(lines, line);) {
      if (const auto values = said(line, Cause::was_on_demand)) names.push_back(values->at("name"));
    }
    return names;
  };
  const auto is_name = [](const std::string& name) {
    return name.rfind("chargpt (process ", 0) == 0 && name.size() > 20 && name.substr(name.size() - 3) == "): ";
  };
  const auto launched = [](const std::string& script) {
    return reprise({"run", "--device", "sim", "--budget", "1MiB", "-o", "/dev/null", "--", "/bin/sh", "-c", script});
  };
  for (const std::string between : {"; ", " & "}) {
    const Outcome both = launched(trainer("8", "9") + between + trainer("8", "8") + "; wait");
    const Words names = named(both.err);
    ASSERT_EQ(names.size(), 2u) << both.err;
    EXPECT_TRUE(is_name(names[0]) && is_name(names[1])) << both.err;
    EXPECT_NE(names[0], names[1]);
  }
  // The last one in the shell's place: the launcher's own child, behind another that has ended.
  const Words last = named(launched(trainer("8", "9") + "; exec " + trainer("8", "8")).err);
  ASSERT_EQ(last.size(), 2u);
  EXPECT_TRUE(is_name(last[1])) << last[1];
  EXPECT_EQ(named(launched("exec " + trainer("8", "9")).err), Words{""});
  Environment environment = preloaded("1MiB");
  const Outcome two = run({"/bin/sh", "-c", trainer("8", "9") + "; " + trainer("8", "8") + "; true"}, environment);
  ASSERT_EQ(named(two.err).size(), 2u) << two.err;
  for (const std::string& name : named(two.err)) EXPECT_TRUE(is_name(name)) << two.err;
}

}  // namespace
}  // namespace reprise::e2e
