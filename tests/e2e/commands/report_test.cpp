// What a reader of the report learns about programs that are no steady loop: the page's data block, from real runs on
// the simulated device.
#include "analyzer/plan/plan.h"
#include "tests/e2e/harness.h"
#include "tests/support/trace_events.h"

namespace reprise::e2e {
namespace {

bool says(const json& data, const std::string& words) {
  for (const json& one : data["sentences"]) {
    if (one["text"].get<std::string>().find(words) != std::string::npos) return true;
  }
  return false;
}

std::string card(const json& data, const std::string& label) {
  for (const json& one : data["cards"]) {
    if (one["label"] == label) return one["value"].get<std::string>() + "; " + one["detail"].get<std::string>();
  }
  return "";
}

class OddPrograms : public InScratch {
 protected:
  static Environment slow(bool is) { return is ? Environment{{"REPRISE_SIM_MEMORY_RATE", "200MiB"}} : Environment{}; }
  // The page of `reprise run`, as a user has it.
  json page_of_run(const Words& program, const std::string& budget = "50%") {
    outcome_ = reprise({"run", "--device", "sim", "--budget", budget, "-o", file("a.html"), "--trace", file("r.trace"),
                        "--run-log", file("r.run")},
                       program);
    return data_of_page(file("a.html"));
  }
  // Under a plan of the plain loop that was made before: whether it is ready in time is not left to chance.
  json data_of_replay(const Words& program) {
    const Outcome recorded =
        reprise({"record", "--device", "sim", "-o", file("a.trace")}, small_trainer(4), slow(slow_recording_));
    EXPECT_EQ(recorded.exit_code, 0) << recorded.err;
    well(reprise({"plan", file("a.trace"), "--budget", "48%", "-o", file("a.plan")}));
    Words replay = joined({"replay", "--device", "sim", "--plan", file("a.plan"), "--run-log", file("a.run")}, more_);
    outcome_ = reprise(replay, program, slow(slow_replay_));
    const Outcome reported =
        reprise({"report", file("a.trace"), file("a.plan"), file("a.run"), "--json", "-o", file("a.json")});
    EXPECT_EQ(reported.exit_code, 0) << reported.err;
    return json::parse(read_file(file("a.json")));
  }

  Outcome outcome_;
  Words more_;  // options of replay
  bool slow_recording_ = false;
  bool slow_replay_ = false;
};

// "8 of 12 planned" and the rows of a table are one count.
TEST_F(OddPrograms, ATableOfTheRunHasAsManyRowsAsThePageCounts) {
  const json data = page_of_run(small_trainer(10), "60%");
  EXPECT_EQ(outcome_.exit_code, 0) << outcome_.err;
  const Outcome table = well(reprise({"export", "--format", "csv", file("r.run")}));
  std::map<std::string, uint64_t> rows;
  uint64_t all = 0;
  std::istringstream lines(table.out);
  std::string line;
  std::getline(lines, line);  // the head
  for (; std::getline(lines, line); ++all) {
    const size_t mode = line.find(',') + 1;
    ++rows[line.substr(mode, line.find(',', mode) - mode)];
  }
  EXPECT_EQ(data["iterations_in_all"], all) << table.out;
  EXPECT_TRUE(
      begins(card(data, "Iterations"), std::to_string(rows["planned"]) + " of " + std::to_string(all) + " planned"))
      << table.out;
}

// What the driver holds for the program may grow when its recording is over, and the end of the run knows it: all
// percentages of a page are of one peak.
TEST_F(OddPrograms, APageHasOnePeakOfTheProgram) {
  page_of_run(small_trainer(10), "60%");
  EXPECT_EQ(outcome_.exit_code, 0) << outcome_.err;
  const json end = lines_of(read_run_log(file("r.run")), "end").at(0);
  const uint64_t footprint = end["peak_footprint_bytes"];
  std::string log = read_file(file("r.run"));
  constexpr uint64_t kGrown = 65536;
  for (const char* key : {"outside_bytes", "peak_used_bytes", "peak_program_bytes"}) {
    const std::string before = "\"" + std::string(key) + "\":" + end[key].dump();
    ASSERT_TRUE(has(log, before));
    log.replace(log.find(before), before.size(),
                "\"" + std::string(key) + "\":" + std::to_string(end[key].get<uint64_t>() + kGrown));
  }
  std::ofstream(file("r.run")) << log;
  well(reprise({"report", file("r.trace"), file("r.run"), "--json", "-o", file("a.json")}));
  const json data = json::parse(read_file(file("a.json")));
  EXPECT_EQ(data["budget_curve"]["peak"], footprint + kGrown) << data["budget_curve"];
  EXPECT_EQ(data["run_memory"]["lines"][1]["name"],
            "On the device, beside 64.0 KiB that the program holds around Reprise");
}

TEST_F(OddPrograms, OneIterationOnlyIsNothingToPlan) {
  const json data = page_of_run(small_trainer(1));
  EXPECT_EQ(outcome_.exit_code, 0) << outcome_.err;
  EXPECT_TRUE(says(data, "No plan was made: no iteration found")) << data["sentences"].dump(1);
  EXPECT_TRUE(says(data, "at least three equal iterations must be recorded")) << data["sentences"].dump(1);
  EXPECT_FALSE(says(data, "before its calls repeated")) << "one reason";
  EXPECT_TRUE(says(data, "never exceeded the budget")) << data["sentences"].dump(1);
  EXPECT_TRUE(begins(card(data, "Iterations"), "none found")) << data["cards"].dump(1);
  EXPECT_EQ(card(data, "Time per iteration"), "") << "short loops of the set-up are no iterations";
  EXPECT_TRUE(data["iterations"].empty());
  EXPECT_TRUE(has(outcome_.err, "no iteration found to plan"));
}

// The footer of `reprise run` has the hashes that `reprise report` has of the files that were kept, and those of the
// others.
TEST_F(OddPrograms, AReportOfARunSaysWhatItWasMadeOf) {
  const json of_run = page_of_run(small_trainer(12))["about"]["files"];
  well(reprise({"report", file("r.trace"), file("r.run"), "--json", "-o", file("a.json")}));
  const json of_report = json::parse(read_file(file("a.json")))["about"]["files"];
  std::map<std::string, json> by_kind;
  for (const json& one : of_run) by_kind[one["kind"]] = one;
  ASSERT_EQ(of_report.size(), 2u);
  for (const json& one : of_report) EXPECT_EQ(by_kind[one["kind"]], one) << of_run.dump(1);
  for (const json& one : of_run) EXPECT_EQ(one["hash"].get<std::string>().size(), 16u) << one;
  EXPECT_EQ(by_kind.count("plan") == 0 ? "not kept (--save-plan)" : by_kind["plan"]["name"], "not kept (--save-plan)");
}

TEST_F(OddPrograms, FreesInAnotherOrderEachTimeAreNoIteration) {
  const json data = page_of_run(small_trainer(6, {"--free-order", "shuffled"}));
  EXPECT_TRUE(says(data, "No plan was made: no iteration found")) << data["sentences"].dump(1);
  EXPECT_TRUE(data["iterations"].empty()) << data["iterations"].dump();
  ASSERT_FALSE(data["advice"].empty());
  EXPECT_EQ(data["advice"][0]["title"], "Let it repeat itself");
}

TEST_F(OddPrograms, EvaluationsAreDeparturesAndReturns) {
  const json data = data_of_replay(small_trainer(12, {"--eval-every", "4"}));
  EXPECT_TRUE(says(data, "came in force")) << data["sentences"].dump(1);
  EXPECT_TRUE(says(data, "came back to it 2 times")) << data["sentences"].dump(1);
  ASSERT_FALSE(data["divergences"].empty());
  uint64_t count = 0;
  for (const json& row : data["divergences"]) count += row["count"].get<uint64_t>();
  EXPECT_EQ(count, 3u) << data["divergences"].dump(1);
  EXPECT_EQ(data["divergences"][0]["then"], "2 of 3 times by the plan again later") << data["divergences"].dump(1);
  EXPECT_FALSE(data["divergences"][0]["expected"].get<std::string>().empty());
  EXPECT_FALSE(data["divergences"][0]["got"].get<std::string>().empty());
}

TEST_F(OddPrograms, AnEndInTheMiddleOfAnIterationIsSaid) {
  const json data = data_of_replay(small_trainer(20, {"--stop-after", "400"}));
  EXPECT_TRUE(says(data, "one that the program did not finish: it left the plan in iteration"))
      << data["sentences"].dump(1);
}

TEST_F(OddPrograms, WhatWasManagedIsSaid) {
  EXPECT_TRUE(
      says(data_of_replay(small_trainer(6)), "Everything that the program allocated on the device was managed"));
}

// Predicted against actual: of all planned iterations, and of one whose device times were measured, also where all that
// the plan moves is hidden, and a copy of the program's with it.
TEST_F(OddPrograms, ThePredictionIsComparedWithTheRun) {
  slow_recording_ = true;
  slow_replay_ = true;
  const json data = data_of_replay(small_trainer(10));
  EXPECT_TRUE(says(data, "The plan predicts ")) << data["sentences"].dump(1);
  EXPECT_TRUE(says(data, "with kernel times of iteration ")) << data["sentences"].dump(1);
  const plan::Plan plan = plan::read_plan(file("a.plan")).value();
  uint64_t in_turn = 0;
  for (const plan::Call& call : plan.calls) in_turn += call.inserted ? 0 : call.duration_ns;
  EXPECT_LT(plan.predicted_ns, in_turn) << "otherwise this test shows less than it says";
  EXPECT_LE(plan.compute_ns, plan.predicted_ns) << "alone, the copy runs beside the kernels, too";
}

// A budget that is a share of the peak cannot be refused at the start: the peak is not known then.
TEST_F(OddPrograms, AShareThatIsTooSmallForOneCallIsExplained) {
  const json data = page_of_run(small_trainer(2), "5%");  // too short for a plan, which would raise it further
  const auto used = said(outcome_.err, Cause::used_at_once);
  ASSERT_TRUE(used) << outcome_.err;
  const std::string bytes = used->at("least");
  EXPECT_TRUE(says(data, "used at most; ask for at least " + bytes)) << bytes << data["sentences"].dump(1);
  EXPECT_TRUE(says(data, "less than one of its calls works on at once")) << data["sentences"].dump(1);
  EXPECT_FALSE(says(data, "should never happen")) << data["sentences"].dump(1);
}

TEST_F(OddPrograms, TheTraceOfARunIsValidForPerfetto) {
  data_of_replay(small_trainer(8, {"--eval-every", "4"}));
  for (const Words& files : {Words{file("a.trace")}, {file("a.trace"), file("a.plan"), file("a.run")}}) {
    Words arguments = {"export", "--format", "perfetto", "-o", file("a.json")};
    arguments.insert(arguments.begin() + 1, files.begin(), files.end());
    well(reprise(arguments));
    EXPECT_EQ(exports::test::TraceEvents::problem(read_file(file("a.json"))), "");
  }
}

// What the replay decides it says where it decides, and the report shows just that.
TEST_F(OddPrograms, APlanThatCannotComeInForceSaysWhy) {
  more_ = {"--host-memory", "160KiB"};
  const json data = data_of_replay(small_trainer(6));
  EXPECT_TRUE(says(data, "Plan 1 was to come in force and could not")) << data["sentences"].dump(1);
  EXPECT_TRUE(says(data, "CUDA_ERROR_OUT_OF_MEMORY")) << data["sentences"].dump(1);
  EXPECT_FALSE(says(data, "no iteration began that matched")) << data["sentences"].dump(1);
  for (const json& one : data["cards"]) {
    EXPECT_FALSE(has(one.dump(), "predicted")) << "a prediction in the place of a measurement: ";
  }
}

TEST_F(OddPrograms, APlanThatTheProgramNeverMeetsSaysWhatDiffered) {
  Words wider = small_trainer(6);
  wider[4] = "64";
  const json data = data_of_replay(wider);
  EXPECT_TRUE(says(data, "Plan 1 never came in force: no iteration began that the plan was made of"))
      << data["sentences"].dump(1);
  // What was recorded is of another size: its smallest budget, say, is none of this run's.
  EXPECT_FALSE(has(data["advice"].dump(), "--budget"));
  EXPECT_TRUE(data["budget_curve"].is_null()) << data["budget_curve"].dump(1);
  EXPECT_TRUE(has(data["program"], "--width 64"));
}

TEST_F(OddPrograms, AllIterationsOfALoopCount) {
  setenv("REPRISE_WAIT_FOR_PLAN", "1", 1);
  const json data = page_of_run(small_trainer(12));
  unsetenv("REPRISE_WAIT_FOR_PLAN");
  const std::string iterations = card(data, "Iterations");
  EXPECT_TRUE(has(iterations, " of 12 planned"));
  EXPECT_TRUE(has(iterations, "passed before the plan"));
  EXPECT_TRUE(has(outcome_.err, " of 12 iterations planned"));
}

// Recorded slowly, run fast: no figure is above what cannot be passed, and the ratio is said.
TEST_F(OddPrograms, ARunFasterThanItsRecordingPassesNoBound) {
  slow_recording_ = true;
  const json data = data_of_replay(small_trainer(8));
  EXPECT_TRUE(says(data, "times what it took when recorded") || says(data, "This run measured none of its own"))
      << data["sentences"].dump(1);
  const std::string text = data.dump();
  for (size_t at = 0; (at = text.find(" % of the bound", at)) != std::string::npos; ++at)
    ADD_FAILURE() << text.substr(at, 40);
  for (const json& row : data["totals"]) {
    if (row["label"].get<std::string>().find("Speed") != 0) continue;
    for (const char* column : {"predicted", "measured"}) {
      EXPECT_LE(std::atof(row[column].get<std::string>().c_str()), 100.0) << row;
    }
  }
  // The curve of other budgets is of the times that the cards show, so that the run's own point is one of its kind.
  const std::string times = data["budget_curve"]["times"].get<std::string>();
  EXPECT_TRUE(begins(times, "with kernel times of iteration "));
  const double compute_ms = data["budget_curve"]["compute_ns"].get<double>() / 1e6;
  const std::string shown = card(data, "Time per iteration");
  const size_t at = shown.find("computing alone took ");
  ASSERT_NE(at, std::string::npos) << shown;
  EXPECT_NEAR(std::atof(shown.c_str() + at + 21), compute_ms, 0.1) << shown;
}

TEST_F(OddPrograms, FilesOfDifferentRecordingsAreRefused) {
  page_of_run(small_trainer(4));
  well(reprise({"record", "--device", "sim", "-o", file("other.trace")}, small_trainer(4)));
  const Outcome refused = reprise({"report", file("other.trace"), file("r.run"), "-o", file("no.html")});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_TRUE(has(refused.err, "the run made another recording than this trace"));
  well(reprise({"report", file("r.trace"), file("r.run"), "-o", file("yes.html")}));
}

TEST_F(OddPrograms, TwoPlansAreCompared) {
  const auto record_and_plan = [&](const std::string& name, const Words& program) {
    well(reprise({"record", "--device", "sim", "-o", file(name + ".trace")}, program));
    for (const char* budget : {"50%", "90%"}) {
      const Outcome planned =
          reprise({"plan", file(name + ".trace"), "--budget", budget, "-o", file(name + "-" + budget + ".plan")});
      EXPECT_EQ(planned.exit_code, 0) << planned.err;
    }
  };
  record_and_plan("a", small_trainer(4));
  record_and_plan("b", small_trainer(4, {"--layers", "3"}));
  const Outcome compared =
      reprise({"report", file("a-50%.plan"), file("a.trace"), file("a-90%.plan"), "--json", "-o", file("two.json")});
  ASSERT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_TRUE(has(compared.err, " more memory. Tensors that travel, of "));
  const json data = json::parse(read_file(file("two.json")));
  EXPECT_EQ(data["names"][0], file("a-50%.plan")) << "in the order of the command line";
  ASSERT_FALSE(data["moves"]["rows"].empty());
  const json& most = data["moves"]["rows"][0];
  EXPECT_GT(most[2][0].get<uint64_t>() + most[2][1].get<uint64_t>(), 0u) << most;
  ASSERT_GT(most[4].get<size_t>(), 0u) << most;
  EXPECT_TRUE(has(data["moves"]["stacks"][most[4].get<size_t>() - 1], "main"));
  EXPECT_EQ(data["rows"][5]["label"], "Bound: no plan for the budget is faster");
  const Outcome page = well(reprise({"report", file("a-50%.plan"), file("a-90%.plan"), "-o", file("two.html")}));
  EXPECT_TRUE(has(page.err, "; report: "));
  EXPECT_FALSE(has(page.err, ".; report: "));
  EXPECT_TRUE(has(read_file(file("two.html")), "\"compared\":\"plans\""));
  const auto refused = [&](Words files) {
    files.insert(files.begin(), "report");
    files.insert(files.end(), {"-o", file("no.html")});
    const Outcome outcome = reprise(files);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_FALSE(std::filesystem::exists(file("no.html")));
    return outcome.err;
  };
  EXPECT_TRUE(has(refused({file("a-50%.plan"), file("b-50%.plan")}), "the plans are of different iterations"));
  const std::string trace = refused({file("a-50%.plan"), file("a-90%.plan"), file("b.trace")});
  EXPECT_TRUE(has(trace, "the plan is of an iteration that the trace does not have"));
}

TEST_F(OddPrograms, TwoRunsAreCompared) {
  page_of_run(small_trainer(8));
  ASSERT_EQ(std::rename(file("r.run").c_str(), file("a.run").c_str()), 0);
  page_of_run(small_trainer(8), "80%");
  well(reprise({"report", file("a.run"), file("r.run"), "--json", "-o", file("two.json")}));
  const json data = json::parse(read_file(file("two.json")));
  EXPECT_TRUE(has(data["verdict"]["text"], " more memory")) << data["verdict"];
  EXPECT_EQ(data["rows"][1]["label"], "Arguments");
  EXPECT_TRUE(has(data["rows"][1]["before"], "--steps 8")) << data["rows"][1];
  EXPECT_EQ(data["rows"][1]["change"], "the same");
  EXPECT_EQ(data["rows"][2]["label"], "Budget");
  EXPECT_TRUE(begins(data["rows"][2]["change"], "+")) << data["rows"][2];
}

// The same program, twice the work in an iteration.
TEST_F(OddPrograms, RunsOfOtherArgumentsAreNotComparedAsIfTheyWereTheSame) {
  page_of_run(small_trainer(8));
  ASSERT_EQ(std::rename(file("r.run").c_str(), file("a.run").c_str()), 0);
  page_of_run(small_trainer(8, {"--batch", "2"}));
  well(reprise({"report", file("a.run"), file("r.run"), "--json", "-o", file("two.json")}));
  const json data = json::parse(read_file(file("two.json")));
  EXPECT_EQ(data["verdict"]["tone"], "note");
  EXPECT_TRUE(begins(data["verdict"]["text"], "A and B were called with different arguments")) << data["verdict"];
  EXPECT_EQ(data["rows"][1]["change"], "differs");
}

// Frames of the trainer, which is no library: its functions are in no dynamic symbol table.
TEST_F(OddPrograms, CallSitesHaveFunctions) {
  const json data = page_of_run(small_trainer(4));
  const std::string sites = data["sites"].dump();
  EXPECT_TRUE(has(sites, "Trainer::Trainer(Options const&"));
  EXPECT_FALSE(has(sites, "_ZN"));
  EXPECT_TRUE(has(data["peak"].dump(), "Trainer::train()"));
}

// As programs are mostly started; it has a symbol table, and no lines.
TEST_F(OddPrograms, CallSitesHaveFunctionsWhereTheProgramIsNamedByAShortPath) {
  Words program = {"/bin/sh", "-c", "cd '" + built("bin") + "' && exec ./chargpt \"$@\""};
  const Words trainer = small_trainer(4);
  program.insert(program.end(), trainer.begin(), trainer.end());
  const json data = page_of_run(program);
  const std::string sites = data["sites"].dump();
  EXPECT_TRUE(has(sites, "Trainer::Trainer(Options const&"));
  // Its helper, through which most allocations go and nothing is launched, asks for none of them.
  EXPECT_EQ(data["passing_on"], json::array({"Device::allocate(unsigned long)"}));
  EXPECT_FALSE(has(data["advice"].dump(), "Device::allocate"));
}

}  // namespace
}  // namespace reprise::e2e
