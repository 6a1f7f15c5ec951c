// Files that are not what a command expects: swapped, empty, cut off, folders. One line that says what is there, why it
// will not do and what to do; what can be read of a trace that was cut off is used, and said to be a part.
#include <fmt/core.h>

#include "analyzer/plan/plan.h"
#include "analyzer/planner/planner.h"
#include "tests/e2e/cli/installed.h"
#include "tests/support/sample.h"
#include "tests/support/trace_builder.h"
#include "tests/support/trace_bytes.h"
#include "tests/support/trace_file.h"

namespace reprise::tools::test {
namespace {

class CliFiles : public Installed {
 protected:
  void SetUp() override {
    Installed::SetUp();
    trace_ = write("a.trace", trace::test::sample_trace().bytes());
    plan_ = path("a.plan");
    ASSERT_TRUE(plan::write_plan(sample_plan(), plan_).ok());
    log_ = write("a.run", sample_run_log());
    const std::string whole = read(trace_);
    cut_ = write("cut.trace", whole + whole.substr(16, 30));  // a second chunk that ends early
    empty_ = write("empty", "");
  }
  Finished plan(const std::string& file) const { return reprise({"plan", file, "--budget", "50%", "-o", path("b")}); }
  // A plan for a recording, whatever it lacks.
  std::string plan_of(const std::string& file) const {
    const trace::Trace trace = trace::read_trace(file).value();
    analyzer::PlanOptions options;
    options.budget_fraction = 0.7;
    std::string name = file + ".plan";
    EXPECT_TRUE(plan::write_plan(analyzer::Planning(trace, options).plan().value(), name).ok());
    return name;
  }
  Finished replay(const std::string& file) const { return reprise({"replay", "--plan", file, "--", "/bin/true"}); }
  Finished report(const std::string& file) const { return reprise({"report", file, "-o", path("tmp/a.html")}); }
  Finished exported(const std::string& file) const {
    return reprise({"export", file, "--format", "perfetto", "-o", path("tmp/a.json")});
  }
  static int lines_but_info(const std::string& text) {
    std::istringstream lines(text);
    int count = 0;
    for (std::string line; std::getline(lines, line);) count += line.rfind("info ", 0) == 0 ? 0 : 1;
    return count;
  }
  // What could be read was written, the line names the file, and a script sees that it was not all.
  void expect_partial(const Finished& finished, const std::string& output) const {
    EXPECT_EQ(finished.exit_code, 1);
    EXPECT_TRUE(has(finished.err, cut_ + ": incomplete: "));
    EXPECT_EQ(finished.err.find(cut_), finished.err.rfind(cut_)) << "named once: " << finished.err;
    EXPECT_GT(read(output).size(), 100u);
  }

  std::string trace_, plan_, log_, cut_, empty_;
};

// Whatever reads a recording says what it lacks, and that it has used the rest.
TEST_F(CliFiles, ARunLogWithoutItsEndIsSaidToBeOneByAllThatReadIt) {
  const std::string all = sample_run_log();
  const std::string whole = write("whole.run", all), cut = write("cut.run", all.substr(0, all.size() / 2));
  for (const std::string& file : {whole, cut}) {
    for (const Finished& finished : {report(file), exported(file), reprise({"dump", file})}) {
      EXPECT_EQ(finished.exit_code, 0) << finished.err;
      EXPECT_EQ(finished.err.find("the run log has no end: the program was killed or crashed, or this is only the "
                                  "beginning of its run log\n") != std::string::npos,
                file == cut)
          << finished.err;
    }
  }
}

TEST_F(CliFiles, WhatARecordingLacksIsSaidByAllThatReadIt) {
  const trace::Trace program = analyzer::testing::train_chain(6, 4 * analyzer::testing::kChunk, 3);
  const std::string endless = write("endless.trace", trace_bytes(program, false));
  std::string bytes = trace_bytes(program, false);
  bytes[offsetof(trace::FileHeader, stopped_by)] = ENOSPC;
  const std::string full = write("full.trace", bytes);
  const std::string whole = trace_bytes(program);
  const std::string torn = write("torn.trace", whole + whole.substr(sizeof(trace::FileHeader), 30));
  const auto all_of = [&](const std::string& file) {
    return std::vector<Finished>{report(file),
                                 exported(file),
                                 reprise({"dump", file}),
                                 reprise({"simulate", file, "--budget", "50%", "--no-fluid"}),
                                 reprise({"report", plan_of(file), plan_of(file), file, "-o", path("tmp/two.html")}),
                                 plan(file)};
  };
  for (const auto& [file, why] : {std::pair{endless, "the program did not come to its end, or this is only "},
                                  {full, "it could not be written further: No space left on device"}}) {
    for (const Finished& finished : all_of(file)) {
      EXPECT_EQ(finished.exit_code, 0) << finished.err;
      EXPECT_TRUE(has(finished.err, file + ": the recording is cut short: " + why));
      EXPECT_TRUE(has(finished.err, "; what could be read was used\n"));
    }
  }
  const std::vector<Finished> of_torn = all_of(torn);
  for (const Finished& finished : of_torn) {
    EXPECT_EQ(finished.exit_code, 1) << finished.err;
    EXPECT_TRUE(has(finished.err, torn + ": incomplete: "));
  }
  expect_refused(of_torn.back(), 1, "; record again");
  EXPECT_TRUE(has(of_torn[3].err, "; what could be read was used\n")) << "simulate: ";
  EXPECT_NE(of_torn[3].out, "") << "its table";
}

// What it says goes wrong is not taken for the program's doing.
TEST_F(CliFiles, WithoutItsEndARecordingIsNotSaidToRepeatNothing) {
  const std::string whole = trace_bytes(analyzer::testing::train_chain(6, 4 * analyzer::testing::kChunk, 3));
  const std::string header = write("header.trace", whole.substr(0, sizeof(trace::FileHeader)));
  const std::string once =
      write("once.trace", trace_bytes(analyzer::testing::train_chain(6, 4 * analyzer::testing::kChunk, 1), false));
  for (const auto& [file, why] : {std::pair{header, "there is no call of the program in the recording"},
                                  {once, "most of what it does happens only once"}}) {
    for (const Finished& finished : {plan(file), reprise({"plan", file, "--budget", "50%", "--quiet"}),
                                     reprise({"simulate", file, "--budget", "50%"})}) {
      expect_refused(finished, 1, file + ": the recording is cut short: ");
      EXPECT_TRUE(has(finished.err, "; of what could be read: no iteration found"));
      EXPECT_TRUE(has(finished.err, why));
    }
  }
  EXPECT_FALSE(has(plan(header).err, "only once"));
}

TEST_F(CliFiles, SwappedFilesAreToldApart) {
  expect_refused(plan(plan_), 1, "is a plan, not a trace");
  expect_refused(plan(log_), 1, "is a run log, not a trace");
  expect_refused(replay(trace_), 1, "is a trace, not a plan");
  expect_refused(replay(write("note.txt", "hello, world")), 1, "is none of Reprise's files, not a plan");
}

// Many programs write JSON. A line of a run log has a kind of the table, and a key that such lines have.
TEST_F(CliFiles, JsonOfOthersIsNoRunLog) {
  const std::string long_line = "{\"nodes\":\"" + std::string(1 << 20, 'x') + "\"}\n";
  const std::string chakra = "{\"schema\": \"1.1.1-chakra.0.0.4\", \"nodes\": []}\n";
  for (const std::string& content : {chakra, std::string("{"), std::string("{\n  \"kind\": \"start\"\n}\n"),
                                     std::string("{\"kind\":\"Pod\",\"process\":1}\n"),
                                     std::string("{\"kind\":\"start\",\"apiVersion\":1}\n"), long_line}) {
    const std::string file = write("et.json", content);
    const std::string why = "et.json: neither a trace, a plan nor a run log";
    for (const Finished& finished :
         {reprise({"dump", file}), report(file), exported(file), reprise({"report", file, log_, "-o", path("c.html")}),
          reprise({"report", log_, file, "-o", path("d.html")})}) {
      expect_refused(finished, 1, why);
    }
    expect_refused(replay(file), 1, "is none of Reprise's files, not a plan");
  }
}

// Of an older release, which wrote fewer keys; or damaged: one whole line is enough.
TEST_F(CliFiles, OlderAndDamagedRunLogsAreRead) {
  for (const std::string& content :
       {std::string("{\"kind\":\"start\",\"program\":\"old\"}\n{\"kind\":\"end\",\"iterations_passive\":3}\n"),
        std::string("{\"kind\":\"sta\n{ \"kind\": \"memory\", \"device_bytes\": 7 }\n"),
        std::string("{\"kind\":\"defragment\",\"chunk_bytes\":2097152}\n")}) {
    const std::string file = write("old.run", content);
    EXPECT_EQ(reprise({"dump", file}).exit_code, 0) << content;
    EXPECT_EQ(report(file).exit_code, 0) << content;
  }
}

// A plan that gives up no copies may run with any safety; it is another run than was planned.
TEST_F(CliFiles, APlanForAnotherSafetyIsSaidToBeOne) {
  const Words all = {"strict", "audited", "trusted"};
  for (const std::string& made : all) {
    plan::Plan plan = sample_plan();
    ASSERT_TRUE(plan::read_safety(made.c_str(), &plan.safety));
    ASSERT_TRUE(plan::write_plan(plan, plan_).ok());
    for (const std::string& safety : all) {
      Start by_variable = this->start({"replay", "--plan", plan_, "--", "/bin/true"});
      by_variable.environment["REPRISE_SAFETY"] = safety;
      for (const Finished& finished :
           {run(by_variable), reprise({"replay", "--plan", plan_, "--safety", safety, "--", "/bin/true"})}) {
        EXPECT_EQ(finished.exit_code, 0) << finished.err;
        const std::string line =
            fmt::format("{}: was made for --safety {} and is followed with {}", plan_, made, safety);
        EXPECT_EQ(finished.err.find(line) != std::string::npos, made != safety) << finished.err;
      }
    }
  }
}

// The variable is for programs without a launcher, and a plan has a budget of its own.
TEST_F(CliFiles, ReplaySaysWhichOfTwoBudgetsIsInForce) {
  const plan::Plan plan = sample_plan();
  const auto said = [&](const std::string& variable, const Words& options) {
    Words words = joined(joined({"replay", "--plan", plan_}, options), {"--", "/bin/true"});
    Start start = this->start(words);
    start.environment["REPRISE_BUDGET"] = variable;
    const Finished finished = well(run(start));
    return finished.err;
  };
  for (const char* other : {"50%", "1GiB", "105%", "9MiB"}) {
    const std::string line = plan_ + ": its budget, 10.0 MiB, is in force, and REPRISE_BUDGET=" + other + " is not";
    EXPECT_TRUE(has(said(other, {}), line));
  }
  for (const std::string& same : {std::string(), std::string("10MiB"), std::to_string(plan.budget_bytes)}) {
    EXPECT_FALSE(has(said(same, {}), "in force")) << same;
  }
  EXPECT_FALSE(has(said("50%", {"--budget", "1GiB"}), "in force")) << "what was typed is";
}

TEST_F(CliFiles, OfThreeRunLogsOneIsTooMany) {
  const std::string second = write("b.run", read(log_)), third = write("c.run", read(log_));
  expect_refused(reprise({"report", log_, second, third, "-o", path("tmp/x.html")}), 2,
                 "one more file of the same kind; give one of each, or two plans or two run logs to compare");
  for (const std::string& other : {trace_, plan_}) {
    expect_refused(reprise({"report", log_, second, other, "-o", path("tmp/x.html")}), 2,
                   other + ": two run logs are compared without any other file; leave this one out");
  }
}

TEST_F(CliFiles, EmptyFilesAreSaidToBeEmpty) {
  expect_refused(plan(empty_), 1, "empty: the file is empty");
  expect_refused(replay(empty_), 1, "empty: the file is empty");
  expect_refused(report(empty_), 1, "empty: the file is empty");
  expect_refused(exported(empty_), 1, "empty: the file is empty");
  expect_refused(reprise({"dump", empty_}), 1, "empty: the file is empty");
}

TEST_F(CliFiles, FoldersAreNoFiles) {
  for (const Finished& finished : {plan(path("lib")), replay(path("lib")), report(path("lib")), exported(path("lib")),
                                   reprise({"dump", path("lib")})}) {
    expect_refused(finished, 1, "Is a directory; name a file");
  }
}

TEST_F(CliFiles, MissingFilesAreNamed) {
  for (const Finished& finished : {plan(path("no")), replay(path("no")), report(path("no")), exported(path("no"))}) {
    expect_refused(finished, 1, path("no") + ": No such file");
  }
}

// An empty file stands for it: the loader finds that first, and cannot load it.
TEST_F(CliFiles, WithoutLibdwAReportHasNoLinesAndSaysSo) {
  const auto note_of = [&](const std::string& libraries) {
    Start start = this->start({"report", trace_, "-o", path("tmp/data.json"), "--json"});
    start.environment["LD_LIBRARY_PATH"] = libraries;
    well(run(start));
    return read(path("tmp/data.json")).find("libdw1 is not installed here") != std::string::npos;
  };
  EXPECT_FALSE(note_of(""));
  std::filesystem::create_directory(path("broken"));
  write("broken/libdw.so.1", "");
  EXPECT_TRUE(note_of(path("broken")));
}

// A run log alone has no trace beside it that tells which words are names.
TEST_F(CliFiles, ARedactedRunLogAloneSaysWhyNothingWasPlanned) {
  const std::string reason = "no iteration found in 10 calls: most of what it does happens only once";
  write("why.run", R"({"kind":"start","program":")" + path("secret") + R"(","process":7,"budget_bytes":4096}
{"kind":"on_demand","cause":"no_iteration","reason":")" +
                       reason + R"(; secret_step","process":7}
{"kind":"end","peak_requested_bytes":8192,"peak_device_bytes":4096,"process":7}
)");
  const Finished finished =
      reprise({"export", path("why.run"), "--redact", "--format", "reprise", "-o", path("why2.run")});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const Finished reported = well(reprise({"report", path("why2.run"), "-o", path("tmp/why.html")}));
  EXPECT_TRUE(has(reported.err, "(" + reason));
  EXPECT_FALSE(has(reported.err, "secret"));
}

// What a bug report may have: the same files without a name, which the commands read like any others.
TEST_F(CliFiles, RedactedFilesAreFilesLikeTheirOriginals) {
  const Finished finished =
      reprise({"export", trace_, plan_, log_, "--redact", "--format", "reprise", "-o", path("bug")});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  for (const std::string kind : {"trace", "plan", "run"}) {
    const std::string original = reprise({"dump", path("a." + kind)}).out;
    const Finished dumped = well(reprise({"dump", path("bug." + kind)}));
    EXPECT_EQ(lines_but_info(dumped.out), lines_but_info(original)) << dumped.out;
    for (const char* name : {"saxpy", "scale"}) {
      EXPECT_FALSE(has(dumped.out, name));
    }
  }
  well(reprise({"report", path("bug.trace"), path("bug.plan"), path("bug.run"), "-o", path("tmp/b.html")}));
  expect_refused(reprise({"export", trace_, "--redact", "--format", "reprise"}), 2, "give a name with -o");
  EXPECT_FALSE(has(reprise({"export", trace_, "--redact", "--format", "json"}).out, "saxpy"));
  EXPECT_TRUE(has(reprise({"export", trace_, "--format", "json"}).out, "saxpy"));
}

// A redacted file and the original of another one are of one program where their hashes say so, and else are not.
TEST_F(CliFiles, RedactedFilesAreComparedByTheirHashes) {
  const auto run_of = [this](const std::string& name, const std::string& hash) {
    std::string lines = sample_run_log();
    const std::string start = R"({"kind":"start",)";
    const size_t at = lines.find(start);
    EXPECT_NE(at, std::string::npos) << lines;
    lines.insert(at + start.size(), R"("program_hash":")" + hash + R"(","arguments":"--of )" + name + R"(",)");
    const std::string file = write(name + ".run", lines);
    well(reprise({"export", file, "--redact", "--format", "reprise", "-o", path("hidden-" + name)}));
    return std::pair{file, path("hidden-" + name + ".run")};
  };
  const auto [one, hidden_one] = run_of("one", "00000000000000ab");
  const auto [again, hidden_again] = run_of("again", "00000000000000ab");
  const auto [other, hidden_other] = run_of("other", "00000000000000cd");
  const auto said = [this](const std::string& a, const std::string& b) {
    const Finished finished = well(reprise({"report", a, b, "-o", path("tmp/two.html")}));
    return finished.err;
  };
  const std::string differ = "A and B are runs of different programs, by the hashes of these: their times say nothing";
  for (const auto& [a, b] :
       {std::pair{one, hidden_one}, {hidden_one, one}, {hidden_one, again}, {hidden_one, hidden_again}}) {
    EXPECT_FALSE(has(said(a, b), "different"));
  }
  for (const auto& [a, b] : {std::pair{one, hidden_other}, {hidden_other, one}, {hidden_one, hidden_other}}) {
    EXPECT_TRUE(has(said(a, b), differ));
  }
}

// Our own files have the ending of what they are, one or several; all others are called as is asked for.
TEST_F(CliFiles, WhatWasExportedIsSaidInOneLine) {
  const auto said = [this](const Words& words) {
    Words all = joined({"export"}, words);
    return reprise(all).err;
  };
  const std::string wrote = "reprise: wrote " + path("one");
  EXPECT_EQ(said({trace_, "--redact", "--format", "reprise", "-o", path("one")}), wrote + ".trace\n");
  EXPECT_EQ(said({plan_, "--redact", "--format", "reprise", "-o", path("one")}), wrote + ".plan\n");
  EXPECT_EQ(said({log_, "--redact", "--format", "reprise", "-o", path("one")}), wrote + ".run\n");
  EXPECT_EQ(said({log_, "--format", "reprise", "-o", path("one.run")}), wrote + ".run\n");
  EXPECT_EQ(said({log_, "--format", "reprise", "-o", path("one.1")}), wrote + ".1.run\n");
  EXPECT_EQ(said({log_, "--format", "reprise", "-o", path("one.trace")}), wrote + ".trace.run\n")
      << "no run log is called a trace";
  EXPECT_FALSE(std::filesystem::exists(path("one")));
  EXPECT_EQ(said({trace_, plan_, "--format", "reprise", "-o", path("one.trace")}),
            wrote + ".trace, " + path("one") + ".plan\n");
  EXPECT_EQ(said({trace_, "--format", "reprise", "-o", "/dev/null"}), "reprise: wrote /dev/null\n");
  expect_refused(reprise({"export", trace_, "--format", "reprise", "-o", trace_.substr(0, trace_.rfind('.'))}), 2,
                 trace_);
  EXPECT_EQ(said({trace_, "--format", "csv", "-o", path("one")}), wrote + "\n");
  EXPECT_EQ(said({trace_, plan_, "--format", "json", "-o", path("one")}), wrote + "\n");
  EXPECT_EQ(said({trace_, plan_, "--redact", "--format", "reprise", "-o", path("one")}),
            wrote + ".trace, " + path("one") + ".plan\n");
  EXPECT_EQ(said({trace_, "--format", "csv"}), "");
}

// A loop that an allocation comes before in one recording has other numbers for its tensors there.
TEST_F(CliFiles, APlanIsNotJoinedWithAnotherRecordingOfItsLoop) {
  const auto recording = [this](const char* name, bool evaluates) {
    analyzer::testing::TraceBuilder program;
    const uint64_t kept = program.allocate(4 * analyzer::testing::kChunk);
    if (evaluates) program.free(program.allocate(analyzer::testing::kChunk));
    const uint64_t idle = program.allocate(8 * analyzer::testing::kChunk);
    for (int step = 0; step < 5; ++step) {
      const uint64_t passing = program.allocate(2 * analyzer::testing::kChunk);
      program.launch("forward", {analyzer::testing::reads(kept), analyzer::testing::writes(passing)});
      program.free(passing);
      program.launch("update", {analyzer::testing::updates(idle)});
    }
    return write(name, trace_bytes(program.trace()));
  };
  const std::string one = recording("one.trace", false), other = recording("other.trace", true);
  const std::string plan_of_one = plan_of(one), plan_of_other = plan_of(other);
  const char* const why =
      "the plan was made of another recording of this loop, in which allocations have other numbers";
  for (const char* format : {"perfetto", "csv", "tensors", "dot", "json", "reprise"}) {
    expect_refused(reprise({"export", other, plan_of_one, "--format", format, "-o", path("tmp/a")}), 1, why);
  }
  const std::string page = path("tmp/a.html");
  expect_refused(reprise({"report", other, plan_of_one, "-o", page}), 1, why);
  expect_refused(reprise({"report", plan_of_one, plan_of_other, one, "-o", page}), 1, plan_of_other + ": " + why);
  EXPECT_FALSE(std::filesystem::exists(page));
  const Finished compared = reprise({"report", plan_of_one, plan_of_other, "-o", page});
  EXPECT_EQ(compared.exit_code, 0) << compared.err << ": tensor for tensor they are of one iteration";
}

// Two recordings of one program, and a run under another plan than the one that is given: a table of such files would
// give the bytes of one to the tensors of the other.
TEST_F(CliFiles, WhatAPageWouldMixIsNotExportedEither) {
  const auto recording = [this](const char* name, const char* kernel) {
    analyzer::testing::TraceBuilder program;
    const uint64_t kept = program.allocate(4 * analyzer::testing::kChunk);
    const uint64_t idle = program.allocate(8 * analyzer::testing::kChunk);
    for (int step = 0; step < 5; ++step) {
      const uint64_t passing = program.allocate(2 * analyzer::testing::kChunk);
      program.launch(kernel, {analyzer::testing::reads(kept), analyzer::testing::writes(passing)});
      program.free(passing);
      program.launch("update", {analyzer::testing::updates(idle)});
    }
    return write(name, trace_bytes(program.trace()));
  };
  const std::string one = recording("one.trace", "forward"), other = recording("other.trace", "backward");
  const std::string plan_of_one = plan_of(one);
  const std::string run_of_other_plan = write("lru.run", R"({"kind":"start","mode":"replay"}
{"kind":"plan","index":0,"policy":"lru","budget_bytes":5,"predicted_ns":7,"offload_bytes":9,"reload_bytes":9}
{"kind":"end"}
)");
  const auto both = [this](const std::string& first, const std::string& second, const char* format) {
    return reprise({"export", first, second, "--format", format, "-o", path("tmp/a")});
  };
  for (const char* format : {"perfetto", "csv", "tensors", "dot", "json", "reprise"}) {
    EXPECT_EQ(both(one, plan_of_one, format).exit_code, 0) << format;
    std::filesystem::remove(path("tmp/a"));
    expect_refused(both(other, plan_of_one, format), 1,
                   "the plan is of an iteration that the trace does not have: it was made of another recording");
    expect_refused(both(plan_of_one, run_of_other_plan, format), 1, "the run had another plan (policy lru");
    EXPECT_FALSE(std::filesystem::exists(path("tmp/a"))) << format;
  }
  expect_refused(reprise({"report", other, plan_of_one, "-o", path("tmp/a.html")}), 1, "of another recording");
}

TEST_F(CliFiles, ATraceThatWasCutOffIsUsedAsFarAsItGoesButNotPlanned) {
  expect_refused(plan(cut_), 1, "record again");
  EXPECT_FALSE(std::filesystem::exists(path("b")));
  expect_partial(report(cut_), path("tmp/a.html"));
  expect_partial(exported(cut_), path("tmp/a.json"));
  expect_partial(reprise({"dump", cut_, "-o", path("tmp/a.txt")}), path("tmp/a.txt"));
}

TEST_F(CliFiles, BudgetsOfPlansAreCheckedAsThoseOfRuns) {
  for (const char* budget : {"101%", "-5%", "0%", "-1GiB", "50%x", "12GiB junk", "nan", "1e3", "10PB", "0", ""}) {
    expect_refused(reprise({"plan", trace_, "--budget", budget, "-o", path("b")}), 2, "--budget");
  }
}

TEST_F(CliFiles, PoliciesAreCheckedBeforeAnythingRuns) {
  expect_refused(reprise({"plan", trace_, "--budget", "50%", "--policy", "best"}), 2, "choose one of auto");
  expect_refused(reprise({"run", "--budget", "1G", "--policy", "best", "--", "/bin/touch", path("tmp/started")}), 2,
                 "choose one of auto");
  EXPECT_FALSE(std::filesystem::exists(path("tmp/started")));
}

}  // namespace
}  // namespace reprise::tools::test
