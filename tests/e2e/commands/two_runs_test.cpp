// Two runs at once: each has files of its own, and the second one takes free names where it must. A program that
// has Reprise by LD_PRELOAD alone is of no run, and leaves the files of one alone.
#include <csignal>
#include <future>
#include <sstream>

#include "tests/e2e/commands/launcher_test.h"

namespace reprise::e2e {
namespace {

class TwoRuns : public LauncherTest {
 protected:
  // The name that a second run takes instead.
  static std::string numbered(const std::string& path) {
    const size_t dot = path.rfind('.');
    return path.substr(0, dot) + "-2" + path.substr(dot);
  }
  // What the recorded program was told.
  static std::string steps_in(const std::string& trace) {
    const std::string dump = reprise({"dump", trace}).out;
    const size_t at = dump.find("--steps ");
    return at == std::string::npos ? "" : dump.substr(at + 8, dump.find_first_not_of("0123456789", at + 8) - at - 8);
  }

  static void await(const std::function<bool()>& there) {
    for (int i = 0; i < 4000 && !there(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_TRUE(there());
  }
  bool has_bytes(const std::string& name) const {
    return std::filesystem::exists(file(name)) && std::filesystem::file_size(file(name)) > 0;
  }
  // `program` in a shell that first does `before`; then it has the process number in the file "pid".
  Words with_pid(const Words& program, const std::string& before = "") const {
    std::string script = before + "echo $$ > " + file("pid") + "; exec";
    for (const std::string& word : program) script += " " + word;
    return {"/bin/sh", "-c", script};
  }
  // One letter, as proc(5) has it, and the parent.
  static std::pair<char, pid_t> state_of(pid_t process) {
    std::pair<char, pid_t> state;
    std::string text = read_file("/proc/" + std::to_string(process) + "/stat");
    std::istringstream(text.substr(text.rfind(')') + 1)) >> state.first >> state.second;
    return state;
  }
  // The program of with_pid() stands still while `others` run, however slow the machine is.
  template <typename Others>
  auto while_it_stands(const Others& others) const {
    await([this] { return has_bytes("pid"); });
    const pid_t process = std::stoi(read_file(file("pid"))), parent = state_of(process).second;
    EXPECT_EQ(kill(process, SIGSTOP), 0);
    auto outcome = others();
    // A launcher stops with its command.
    if (parent != getpid()) await([parent] { return state_of(parent).first == 'T'; });
    EXPECT_EQ(kill(process, SIGCONT), 0) << "it was over";
    kill(parent, SIGCONT);
    return outcome;
  }

  const std::string trace_ = file("a.trace");
};

// The one that comes second takes a free name, and the first one's recording is its own.
TEST_F(TwoRuns, DoNotWriteOneFile) {
  const std::string first = file("first.html");
  const Words run_it = {"run", "--device", "sim", "--budget", "80%", "--trace", trace_, "-o"};
  const auto with_report = [&](const std::string& page) {
    Words arguments = run_it;
    arguments.push_back(page);
    return arguments;
  };
  auto running = std::async(std::launch::async, [&] { return reprise(with_report(first), with_pid(trainer("60"))); });
  await([this] { return std::filesystem::exists(trace_); });
  const Outcome second = while_it_stands([&] { return reprise(with_report(file("second.html")), trainer("3")); });
  const Outcome ended = running.get();
  EXPECT_EQ(second.exit_code, 0) << second.err;
  const std::string other = numbered(trace_);
  EXPECT_TRUE(has(second.err, "--trace " + trace_ + ": another run is writing it (process "));
  EXPECT_TRUE(has(second.err, "; this one writes " + other));
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_FALSE(has(ended.err, "cut short"));
  EXPECT_EQ(steps_in(trace_), "60");
  EXPECT_EQ(steps_in(other), "3");
  EXPECT_EQ(reprise(with_report(file("third.html")), trainer("3")).exit_code, 0) << "nobody writes it any more";
}

// The first run writes its report and its plan behind its program, and neither is lost to the second one.
TEST_F(TwoRuns, DoNotWriteOneReportPlanOrLog) {
  const std::string page = file("one.html"), plan = file("one.plan"), log = file("one.run");
  const auto with = [](const Words& more) { return joined({"run", "--device", "sim", "--budget", "80%"}, more); };
  auto running = std::async(std::launch::async, [&] {
    return reprise(with({"--trace", trace_, "-o", page, "--save-plan", plan, "--run-log", log}),
                   with_pid(trainer("60")));
  });
  await([this] { return std::filesystem::exists(trace_); });
  const std::vector<Outcome> others = while_it_stands([&] {
    return std::vector{reprise(with({"-o", page}), trainer("3")),
                       reprise(with({"-o", "/dev/null", "--save-plan", plan}), trainer("3")),
                       reprise({"run", "--device", "sim", "--defragment", "--run-log", log}, trainer("3"))};
  });
  const char* const options[] = {"-o ", "--save-plan ", "--run-log "};
  for (size_t i = 0; i < others.size(); ++i) {
    EXPECT_EQ(others[i].exit_code, 0) << others[i].err;
    EXPECT_TRUE(has(others[i].err, options[i]));
    EXPECT_TRUE(has(others[i].err, ": another run is writing it (process "));
  }
  well(running.get());
  for (const std::string& path : {page, log}) {
    EXPECT_GT(std::filesystem::file_size(path), 0u) << path;
    EXPECT_GT(std::filesystem::file_size(numbered(path)), 0u) << path;
  }
}

// Whatever they are called by default has a name of its own in each of them.
TEST_F(TwoRuns, InOneFolderNeedNoNames) {
  Environment environment = launching();
  const auto run_it = [&] {
    std::string words = "cd " + file("") + " && exec " + built("bin/reprise");
    words += " run --device sim --budget 80% --";
    for (const std::string& word : trainer("20")) words += " " + word;
    return run({"/bin/sh", "-c", words}, environment);
  };
  auto first = std::async(std::launch::async, run_it);
  auto second = std::async(std::launch::async, run_it);
  const Outcome outcomes[] = {first.get(), second.get()};
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "iterations planned; report: "));
  }
  EXPECT_GT(std::filesystem::file_size(file("reprise-report-chargpt.html")), 0u);
  EXPECT_GT(std::filesystem::file_size(file("reprise-report-chargpt-2.html")), 0u);
}

// A program that has Reprise by LD_PRELOAD alone claims nothing beforehand, and keeps its run log all the same.
TEST_F(TwoRuns, LeaveTheRunLogOfAPreloadedProgramAlone) {
  const std::string log = file("a.run");
  Environment preloaded = simulated_device();
  preloaded["LD_PRELOAD"] = built("lib/reprise/libreprise.so");
  preloaded["REPRISE_BUDGET"] = "80%";
  preloaded["REPRISE_RUN_LOG"] = log;
  auto running = std::async(std::launch::async, [&] { return run(with_pid(trainer("60")), preloaded); });
  await([this] { return has_bytes("a.run"); });
  Outcome third;
  const Outcome second = while_it_stands([&] {
    third = run(trainer("3"), preloaded);
    return reprise({"run", "--device", "sim", "--budget", "80%", "--run-log", log, "-o", file("a.html")}, trainer("3"));
  });
  well(running.get());
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_TRUE(has(second.err, "--run-log " + log + ": another run is writing it; this one writes "));
  EXPECT_TRUE(has(third.err, "is being written by another process; it gets the lines of this one, too"));
  const std::string text = read_file(log);
  EXPECT_TRUE(has(text, "--steps 60") && has(text, "--steps 3")) << text.substr(0, 1000);
}

// A run whose program first waits for a word, and programs that have Reprise by LD_PRELOAD alone, with names of its
// files.
class ARunAndOthers : public TwoRuns {
 protected:
  using Program = Words;

  std::future<Outcome> start_run(const Program& program) const {
    const std::string wait = "touch " + file("begun") + "; while ! test -e " + file("go") + "; do sleep 0.01; done; ";
    auto running = std::async(std::launch::async, [this, script = with_pid(program, wait)] {
      return reprise({"run", "--device", "sim", "--budget", "80%", "--trace", trace_, "--save-plan", file("a.plan"),
                      "--run-log", file("a.run"), "-o", file("a.html")},
                     script);
    });
    await([this] { return std::filesystem::exists(file("begun")); });
    return running;
  }
  void go() const { std::ofstream(file("go")).flush(); }
  static std::string word_of_the_log(const std::string& log) {
    return "REPRISE_RUN_LOG=" + log + " is being written by another run (process ";
  }
  Outcome preloaded_with(const Environment& files, const Program& program) const {
    return run(program, merged(preloaded("80%"), files));
  }
  // All of them, whatever else ran meanwhile.
  void expect_own_files(const Outcome& ran, const std::string& steps) const {
    const std::string own = "--steps " + steps;
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_FALSE(has(ran.err, "programs used the device"));
    EXPECT_TRUE(has(ran.err, "iterations planned; report: "));
    EXPECT_TRUE(has(reprise({"dump", trace_}).out, own + "\n")) << ran.err;
    const Outcome page = reprise({"report", file("a.run"), "-o", file("again.html")});
    EXPECT_FALSE(has(page.err, "programs that used the device"));
    const Outcome together =
        reprise({"export", trace_, file("a.plan"), file("a.run"), "--format", "json", "-o", file("b.json")});
    ASSERT_EQ(together.exit_code, 0) << together.err << ran.err;
    EXPECT_TRUE(has(read_file(file("b.json")), own));
    for (const char* const name : {"a.trace", "a.plan", "a.run", "a.html", "begun", "go", "pid"}) {
      std::filesystem::remove(file(name));
    }
  }
};

// Whether it comes before the run's own first call or behind it, ends first or last, and whatever it is.
TEST_F(ARunAndOthers, AProgramOfNoRunLeavesItsLogAlone) {
  const Environment files = {{"REPRISE_RUN_LOG", file("a.run")}};
  struct Case {
    bool first;
    Program program;
  };
  const std::vector<Case> cases = {{true, trainer("3")},         {true, trainer("60")},
                                   {true, trainer("6", "128")},  {false, trainer("3")},
                                   {false, trainer("60")},       {false, trainer("6", "128")},
                                   {true, trainer("40", "128")}, {false, trainer("40", "128")}};
  for (const Case& one : cases) {
    SCOPED_TRACE(testing::Message() << "first: " << one.first << ", --steps " << one.program.back());
    auto running = start_run(trainer("30"));
    const auto others = [&] { return preloaded_with(files, one.program); };
    std::future<Outcome> other;
    if (one.first) {
      other = std::async(std::launch::async, others);
      if (one.program.back() == "3") other.wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      EXPECT_FALSE(std::filesystem::exists(file("a.run")));
      go();
    } else {
      go();
      await([this] { return has_bytes("a.run"); });
      std::promise<Outcome> ended;
      ended.set_value(while_it_stands(others));
      other = ended.get_future();
    }
    const Outcome ran = running.get();
    const Outcome outside = other.get();
    EXPECT_TRUE(has(outside.err, word_of_the_log(file("a.run"))));
    EXPECT_TRUE(has(outside.err, "): no run log is written; name another file\n"));
    EXPECT_EQ(outside.out, run(one.program, simulated_device()).out);
    const auto starts = lines_of(e2e::read_run_log(file("a.run")), "start");
    ASSERT_EQ(starts.size(), 1u);
    EXPECT_EQ(lines_of(e2e::read_run_log(file("a.run")), "program_end").at(0).at("run"), starts[0].at("run"));
    expect_own_files(ran, "30");
  }
}

TEST_F(ARunAndOthers, NorDoesItTakeItsTrace) {
  for (const bool first : {true, false}) {
    SCOPED_TRACE(first);
    auto running = start_run(trainer("30"));
    const auto others = [&] { return preloaded_with({{"REPRISE_TRACE", trace_}}, trainer("3")); };
    if (!first) {
      go();
      await([this] { return std::filesystem::exists(trace_); });
    }
    const Outcome outside = first ? others() : while_it_stands(others);
    go();
    const Outcome ran = running.get();
    EXPECT_TRUE(has(outside.err, "REPRISE_TRACE=" + trace_ + " is being written by another run (process "));
    EXPECT_TRUE(has(outside.err, "): nothing is recorded; name another file\n"));
    expect_own_files(ran, "30");
  }
}

// A program that another run has started is of that one.
TEST_F(ARunAndOthers, NorDoesOneOfAnotherRun) {
  auto running = start_run(trainer("30"));
  Program words = {"/bin/sh", "-c", "REPRISE_RUN_LOG=" + file("a.run") + " exec"};
  for (const std::string& word : trainer("12")) words.back() += " " + word;
  const Outcome outside = reprise({"run", "--device", "sim", "--budget", "80%", "-o", file("other.html")}, words);
  EXPECT_TRUE(has(outside.err, word_of_the_log(file("a.run"))));
  go();
  expect_own_files(running.get(), "30");
}

// Only the launcher makes a run: the log of an earlier program goes.
TEST_F(ARunAndOthers, APlannerThatIsNamedByHandIsNoLauncher) {
  const Environment files = {{"REPRISE_RUN_LOG", file("a.run")}, {"REPRISE_PLANNER", built("bin/reprise")}};
  for (const char* const steps : {"2", "3"}) preloaded_with(files, trainer(steps));
  const auto starts = lines_of(e2e::read_run_log(file("a.run")), "start");
  ASSERT_EQ(starts.size(), 1u);
  EXPECT_FALSE(starts[0].contains("run"));
}

// An older library looks for no run: its lines may be there, and are nobody's.
TEST_F(ARunAndOthers, LinesOfProgramsThatItDidNotStartAreNotOfTheRun) {
  auto running = start_run(trainer("30"));
  go();
  await([this] { return has_bytes("a.run"); });
  std::ofstream(file("a.run"), std::ios::app)
      << R"({"kind":"start","program":"foreign","arguments":"","process":999999})" << std::endl
      << R"({"kind":"plan","index":0,"calls":3,"path":"/nowhere","process":999999})" << std::endl
      << R"({"kind":"end","peak_requested_bytes":99999999999,"process":999999})" << std::endl;
  expect_own_files(running.get(), "30");
}

}  // namespace
}  // namespace reprise::e2e
