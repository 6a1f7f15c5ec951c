// How runs end when something is in the way: the disk is full, the program is killed, the plan is another's, host
// memory is too small. What is said is what happened.
#include "preload/base/readable.h"
#include "tests/e2e/commands/launcher_test.h"

namespace reprise::e2e {
namespace {

class Endings : public LauncherTest {
 protected:
  // Files may be no larger than so many KiB.
  static Words limited(const std::string& kib, const Words& program) {
    return joined({"/bin/bash", "-c", "ulimit -f " + kib + "; exec \"$@\"", "bash"}, program);
  }

  const std::string trace_ = file("a.trace");
};

TEST_F(Endings, ARecordingThatMetAFullDiskIsCutShort) {
  const Outcome full = reprise({"record", "--device", "sim", "-o", trace_}, limited("40", trainer("20")));
  EXPECT_EQ(full.exit_code, 1) << full.err;
  EXPECT_FALSE(has(full.err, "reprise: recorded"));
  EXPECT_TRUE(has(full.err, "the recording is cut short"));
  EXPECT_TRUE(has(full.err, "File too large"));
  EXPECT_GT(std::filesystem::file_size(trace_), 0u);
  well(reprise({"dump", trace_, "-o", "/dev/null"}));
}

// One of them is recorded into the run's own file. What the other one is planned from is the run's as well.
TEST_F(Endings, TwoProgramsOfOneRunLeaveNoFilesBehind) {
  const std::string folder = file("tmp");
  std::filesystem::create_directory(folder);
  std::string program;
  for (const std::string& word : trainer("12")) program += word + " ";
  for (const bool kept : {false, true}) {
    Words words = {built("bin/reprise"), "run", "--device", "sim", "--budget", "80%", "-o", file("two.html")};
    if (kept) words.emplace_back("--keep");
    words.insert(words.end(), {"--", "/bin/sh", "-c", program + "& " + program + "; wait"});
    Environment environment = launching();
    environment["TMPDIR"] = folder;
    const Outcome outcome = run(words, environment);
    EXPECT_TRUE(has(outcome.err, "2 programs used the device and asked for as much memory (within 1 %): "));
    Words left;
    Words traces;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      const std::filesystem::path& path = entry.path();
      if (path.parent_path() == folder) left.push_back(path.filename());
      if (path.extension() == ".trace") traces.push_back(path.filename());
    }
    EXPECT_EQ(left.size(), kept ? 1u : 0u) << testing::PrintToString(left);
    EXPECT_EQ(traces.size(), kept ? 2u : 0u) << testing::PrintToString(traces);
  }
}

TEST_F(Endings, ANamedRecordingOfAKilledProgramStaysAndIsCutShort) {
  Words program = {"/usr/bin/timeout", "-s", "KILL", "2"};
  const Words endless = trainer("1000000");
  program.insert(program.end(), endless.begin(), endless.end());
  const Outcome killed = reprise({"record", "--device", "sim", "-o", trace_}, program);
  EXPECT_NE(killed.exit_code, 0);
  EXPECT_FALSE(has(killed.err, "reprise: recorded"));
  EXPECT_TRUE(has(killed.err, "the recording is cut short"));
  const Outcome reported = reprise({"report", trace_, "-o", file("cut.html")});
  EXPECT_TRUE(has(reported.err, "a.trace: the recording is cut short: the program did not come to its end"));
  EXPECT_TRUE(has(read_file(file("cut.html")), "The recording is cut short: the program did not"));
  EXPECT_GT(std::filesystem::file_size(trace_), 0u);
  const Outcome kept =
      reprise({"run", "--device", "sim", "--budget", "50%", "--trace", trace_, "-o", file("a.html")}, program);
  EXPECT_TRUE(has(kept.err, trace_ + ": the recording is cut short"));
  EXPECT_TRUE(has(well(reprise({"record", "--device", "sim", "-o", trace_}, trainer("3"))).err, "reprise: recorded"));
}

TEST_F(Endings, APlanThatNeverAppliesIsSaid) {
  const std::string plan = file("a.plan");
  well(reprise({"record", "--device", "sim", "-o", trace_}, trainer("10")));
  well(reprise({"plan", trace_, "--budget", "50%", "-o", plan}));
  EXPECT_FALSE(has(well(reprise({"replay", "--device", "sim", "--plan", plan}, trainer("10"))).err, "never applied"));
  // Another width: other sizes, so that no iteration is the plan's.
  const std::string log = file("a.run");
  for (const Words& more : {Words{}, {"--run-log", log}}) {
    Words command = joined({"replay", "--device", "sim", "--budget", "1GiB", "--plan", plan}, more);
    EXPECT_TRUE(has(well(reprise(command, trainer("10", "128"))).err, plan + ": the plan never applied"));
  }
}

// Without the launcher, which says it itself, nobody else would.
TEST_F(Endings, APreloadedPlanThatNeverAppliesIsSaidOnceWithTheReasonOfTheRunLog) {
  const std::string plan = file("a.plan");
  well(reprise({"record", "--device", "sim", "-o", trace_}, trainer("10")));
  well(reprise({"plan", trace_, "--budget", "50%", "-o", plan}));
  Environment environment = preloaded("1GiB");
  environment["REPRISE_PLAN"] = plan;
  environment["REPRISE_RUN_LOG"] = file("a.run");
  const Outcome own = well(run(trainer("10"), environment));
  EXPECT_EQ(count_of(own.err, "\n"), 1u) << own.err;
  EXPECT_TRUE(has_cause(own.err, Cause::plan_of_another_kind, {{"plan", plan}}));
  environment["REPRISE_RUN_LOG"] = file("b.run");  // that an earlier log is replaced is said, too
  const Outcome other = well(run(trainer("10", "128"), environment));
  const auto reasons = lines_of(read_run_log(file("b.run")), "on_demand");
  ASSERT_EQ(reasons.size(), 1u);
  EXPECT_TRUE(begins(other.err, own.err));
  EXPECT_EQ(count_of(other.err, "\n"), 2u) << other.err;
  EXPECT_TRUE(has_cause(other.err, Cause::plan_never_applied, {{"plan", plan}, {"why", reasons[0].at("reason")}}));
  EXPECT_TRUE(has(other.err, "its first call, an allocation of "));
}

TEST_F(Endings, APreloadedPlanForAnotherSafetyIsSaid) {
  const std::string plan = file("a.plan");
  well(reprise({"record", "--device", "sim", "-o", trace_}, trainer("10")));
  well(reprise({"plan", trace_, "--safety", "strict", "--budget", "80%", "-o", plan}));
  Environment environment = preloaded("80%");
  environment["REPRISE_PLAN"] = plan;
  environment["REPRISE_SAFETY"] = "trusted";
  const std::string line = "the plan was made for --safety strict and is followed with trusted";
  EXPECT_TRUE(has(well(run(trainer("10"), environment)).err, "reprise: " + plan + ": " + line));
  environment["REPRISE_SAFETY"] = "strict";
  EXPECT_FALSE(has(run(trainer("10"), environment).err, line));
  const Outcome launched = reprise({"replay", "--device", "sim", "--safety", "trusted", "--plan", plan}, trainer("10"));
  EXPECT_TRUE(has(launched.err, plan + ": was made for --safety strict and is followed with trusted"));
  EXPECT_FALSE(has(launched.err, line)) << "told twice: ";
}

TEST_F(Endings, APreloadedPlanForMoreThanTheBudgetIsSaid) {
  const std::string plan = file("a.plan");
  well(reprise({"record", "--device", "sim", "-o", trace_}, trainer("10")));
  well(reprise({"plan", trace_, "--budget", "80%", "-o", plan}));
  Environment environment = preloaded("2MiB");
  environment["REPRISE_PLAN"] = plan;
  const Outcome outcome = run(trainer("10"), environment);
  EXPECT_TRUE(has_cause(outcome.err, Cause::plan_of_another_budget, {{"plan", plan}, {"budget", "2.0 MiB"}}));
}

// What `reprise plan` would refuse is not advised: the plan knows how little is enough for one.
TEST_F(Endings, WhereNoPlanFitsTheRefusalSaysHowMuchIsNeeded) {
  const std::string made = file("a.plan");
  well(reprise({"record", "--device", "sim", "-o", trace_}, trainer("10")));
  well(reprise({"plan", trace_, "--budget", "80%", "-o", made}));
  const std::string planner = reprise({"plan", trace_, "--budget", "1MiB", "-o", file("b.plan")}).err;
  const size_t at = planner.find("so at least ");
  ASSERT_NE(at, std::string::npos) << planner;
  const uint64_t least = std::stoull(planner.substr(at + 12));
  const std::string less = std::to_string(least - 1);
  const std::string needed = "no plan fits into " + less + " bytes (" + readable_bytes(least - 1) + "): at least " +
                             std::to_string(least) + " bytes (" + readable_bytes(least) + ") are needed\n";
  const Outcome refused = reprise({"replay", "--device", "sim", "--plan", made, "--budget", less}, trainer("10"));
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_TRUE(has(refused.err, ", which is more than --budget allows, and " + needed));
  EXPECT_FALSE(has(refused.err, "make a plan"));
  Environment environment = preloaded(std::to_string(least / 2));
  environment["REPRISE_PLAN"] = made;
  const Outcome idle = run(trainer("10"), environment);
  EXPECT_TRUE(has_cause(idle.err, Cause::plan_had_no_room));
  EXPECT_TRUE(has(idle.err, ": at least " + std::to_string(least) + " bytes ("));
  EXPECT_FALSE(has(idle.err, "make a plan"));
  const Outcome possible =
      reprise({"replay", "--device", "sim", "--plan", made, "--budget", std::to_string(least)}, trainer("10"));
  EXPECT_TRUE(has(possible.err, "which is more than --budget allows; make a plan for "));
}

TEST_F(Endings, APlanWithinALargerBudgetIsSaidToUseItsOwn) {
  const std::string made = file("a.plan");
  well(reprise({"record", "--device", "sim", "-o", trace_}, trainer("10")));
  well(reprise({"plan", trace_, "--budget", "80%", "-o", made}));
  const std::string line = "was made for a budget of ";
  const std::string more = ", and its iterations use no more of the 64.0 MiB that they may; these hold all that ";
  const Outcome larger = reprise({"replay", "--device", "sim", "--plan", made, "--budget", "64MiB"}, trainer("10"));
  EXPECT_TRUE(has(larger.err, "reprise: " + made + ": " + line) && has(larger.err, more)) << larger.err;
  EXPECT_FALSE(has(reprise({"replay", "--device", "sim", "--plan", made, "--budget", "80%"}, trainer("10")).err, line));
  Environment environment = preloaded("64MiB");
  environment["REPRISE_PLAN"] = made;
  const Outcome alone = run(trainer("10"), environment);
  EXPECT_TRUE(has_cause(alone.err, Cause::plan_of_another_kind, {{"plan", made}}));
  EXPECT_TRUE(has(alone.err, more));
  environment["REPRISE_BUDGET"] = "100%";
  EXPECT_TRUE(has_cause(run(trainer("10"), environment).err, Cause::plan_of_another_kind));
  environment["REPRISE_BUDGET"] = "80%";
  EXPECT_EQ(run(trainer("10"), environment).err, "");
}

// The plan is of this program: to record it again would be no help. And the page shows the budget that it had.
TEST_F(Endings, APlanWithoutRoomIsToldHowToGetIt) {
  const std::string plan = file("a.plan"), log = file("a.run");
  well(reprise({"record", "--device", "sim", "-o", trace_}, trainer("10")));
  well(reprise({"plan", trace_, "--budget", "90%", "-o", plan}));
  const Outcome refused = reprise({"replay", "--device", "sim", "--plan", plan, "--budget", "50%"}, trainer("10"));
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_TRUE(has(refused.err, "which is more than --budget allows; make a plan for "));
  well(reprise({"replay", "--device", "sim", "--plan", plan, "--budget", "90%"}, trainer("10")));
  Environment environment = preloaded("50%");
  environment["REPRISE_PLAN"] = plan;
  environment["REPRISE_RUN_LOG"] = log;
  const Outcome outcome = well(run(trainer("10"), environment));
  EXPECT_TRUE(has_cause(outcome.err, Cause::larger_budget_or_plan));
  EXPECT_TRUE(has_cause(outcome.err, Cause::plan_had_no_room));
  const std::string page = file("a.html");
  well(reprise({"report", log, plan, trace_, "-o", page}));
  const auto budget = lines_of(read_run_log(log), "end").at(0).at("budget_bytes").get<uint64_t>();
  char mib[32];
  std::snprintf(mib, sizeof mib, "%.1f MiB", static_cast<double>(budget) / 1048576);
  EXPECT_TRUE(has(read_file(page), std::string("exceeded the budget of ") + mib)) << mib;
}

// The attempt to put it in force has made the plan's region, which small tensors live in from then on, on demand.
TEST_F(Endings, APlanThatTheDeviceHasNoRoomForChangesNoBits) {
  const std::string plan = file("a.plan");
  Environment device = simulated_device();
  device["REPRISE_SIM_GRANULARITY"] = "2MiB";  // as devices have, so that most of its tensors are small
  const auto reprise_on = [&](Words words, const Words& program) {
    words.insert(words.begin(), built("bin/reprise"));
    Environment environment = device;  // as it is by now
    environment.erase("LD_LIBRARY_PATH");
    return run(joined(words, program), environment);
  };
  const Words program = {built("bin/chargpt"), "--batch", "13", "--layers", "2", "--width", "192", "--steps", "4"};
  const std::string plain = run(program, device).out;
  well(reprise_on({"record", "--device", "sim", "-o", trace_, "--"}, program));
  well(reprise_on({"plan", trace_, "--budget", "36MiB", "-o", plan}, {}));
  device["REPRISE_SIM_MEMORY"] = "34MiB";
  for (const std::string safety : {"trusted", "strict"}) {
    const Outcome outcome =
        reprise_on({"replay", "--device", "sim", "--safety", safety, "--plan", plan, "--"}, program);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_TRUE(has_cause(outcome.err, Cause::small_hold_chunks, {{"chunks", "6"}}));
    EXPECT_EQ(outcome.out, plain) << safety;
  }
}

TEST_F(Endings, TheRunLogSaysHowProgramAndCommandEndedAndTheReportShowsIt) {
  const std::string log = file("a.run"), page = file("a.html");
  const Words trained = trainer("3");
  Words program = joined({"/bin/bash", "-c", "\"$@\"; exit 3", "bash"}, trained);
  ASSERT_EQ(reprise({"run", "--device", "sim", "--budget", "50%", "--run-log", log, "-o", page}, program).exit_code, 3);
  const auto lines = lines_of(read_run_log(log), "program_end");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].at("exit_code"), 3);
  const auto ends = lines_of(read_run_log(log), "end");
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].at("exit_code"), 0);
  EXPECT_NE(ends[0].at("process"), lines[0].at("command"));
  EXPECT_EQ(lines[0].at("signal"), 0);
  well(reprise({"report", log, "-o", page}));
  EXPECT_TRUE(has(read_file(page), "The command that started it ended with exit code 3"));
  EXPECT_FALSE(has(read_file(page), "The program ended with"));
}

// Once: by the preloaded library where there is no launcher, by the launcher where there is one.
TEST_F(Endings, AMisspeltVariableIsSaidOnce) {
  const std::string said = "reprise: REPRISE_BUGDET: no such variable; did you mean REPRISE_BUDGET?\n";
  const Environment misspelt = {{"REPRISE_BUGDET", "50%"}};
  Environment alone = merged(preloaded("50%"), misspelt);
  alone.erase("REPRISE_BUDGET");
  EXPECT_EQ(run(trainer("3"), alone).err, said);
  const std::string of_device =
      "reprise: simulated device: REPRISE_SIM_MEMROY: no such variable; did you mean REPRISE_SIM_MEMORY?\n";
  Environment device = preloaded("50%");
  device["REPRISE_SIM_MEMROY"] = "1GiB";
  EXPECT_TRUE(has(run(trainer("3"), device).err, of_device));
  Words words = {built("bin/reprise"), "run", "--device", "sim", "--budget", "50%", "-o", file("a.html"), "--"};
  const Words program = trainer("3");
  words.insert(words.end(), program.begin(), program.end());
  Environment launched = launching(misspelt);
  const std::string all = run(words, launched).err;
  EXPECT_TRUE(begins(all, said));
  EXPECT_EQ(all.find("BUGDET", said.size()), std::string::npos) << all;
  launched = launching({{"REPRISE_SIM_MEMROY", "1GiB"}});
  const std::string once = run(words, launched).err;
  EXPECT_TRUE(has(once, "REPRISE_SIM_MEMROY: no such variable"));
  EXPECT_EQ(count_of(once, "MEMROY"), 1u) << once;
}

TEST_F(Endings, WhoAsksForMoreWordsIsToldOfPlans) {
  Environment environment = preloaded("90%");
  environment["REPRISE_WAIT_FOR_PLAN"] = "1";  // a busy machine may have the plan behind the program's end
  EXPECT_FALSE(has_cause(run(trainer("10"), environment).err, Cause::plan_made));
  environment["REPRISE_LOG"] = "info";
  const std::string all = run(trainer("10"), environment).err;
  EXPECT_TRUE(has_cause(all, Cause::plan_made, {{"plan", "1"}}));
  EXPECT_TRUE(has_cause(all, Cause::plan_in_force, {{"plan", "1"}}));
}

// A limit of the process counts for addresses that are reserved, though they take no memory.
TEST_F(Endings, AnAddressSpaceThatIsTooShortIsCalledThat) {
  const Words words = joined({"/bin/bash", "-c", "ulimit -v 4000000; exec \"$@\"", "bash"}, trainer("3"));
  const Outcome outcome = well(run(words, preloaded("50%")));  // as without us
  EXPECT_TRUE(has_cause(outcome.err, Cause::few_addresses, {{"needed", "64"}, {"allowed", "3906"}}));
  EXPECT_TRUE(has_cause(outcome.err, Cause::not_managed));
}

// ... and it is no program that was killed, whose tensors were moved on demand until then.
TEST_F(Endings, AReportSaysThatMemoryCouldNotBeManaged) {
  const std::string page = file("a.html"), log = file("a.run");
  Words words = joined({"/bin/bash", "-c", "ulimit -v 4000000; exec \"$@\"", "bash"}, trainer("5"));
  const Outcome outcome =
      well(reprise({"run", "--device", "sim", "--budget", "50%", "-o", page, "--run-log", log}, words));
  EXPECT_TRUE(has(outcome.err, "without a budget: device memory could not be managed"));
  EXPECT_FALSE(has(reprise({"report", log, "-o", file("b.html")}).err, "no end"));
  for (const std::string& path : {page, file("b.html")}) {
    const std::string data = data_of_page(path).dump();
    EXPECT_TRUE(has(data, "Device memory could not be managed: 64 GiB of addresses are needed"));
    EXPECT_TRUE(has(data, "\"command\":\"ulimit -v unlimited\""));
    EXPECT_FALSE(has(data, "killed or crashed"));
    EXPECT_FALSE(has(data, "moved on demand"));
  }
}

// Facts have no place then, which is said once; and nobody is sent on to a run that would know of none.
TEST_F(Endings, WithoutAHomeFactsAreNotKept) {
  const auto homeless = [&](Words words) {
    words.insert(words.begin(),
                 {"/usr/bin/env", "-u", "HOME", "-u", "XDG_CACHE_HOME", "-u", "REPRISE_FACTS", built("bin/reprise")});
    words.emplace_back("--");
    words = joined(words, trainer("8"));
    return run(words, simulated_device());
  };
  const std::string told =
      "reprise: neither HOME nor XDG_CACHE_HOME is set: facts are not kept; name a folder in REPRISE_FACTS\n";
  const auto said_once = [&](const std::string& err) {
    const size_t first = err.find(told);
    return first != std::string::npos && err.find("XDG_CACHE_HOME", first + told.size()) == std::string::npos;
  };
  const Outcome examined =
      homeless({"run", "--device", "sim", "--budget", "80%", "--examine", "3", "-o", file("a.html")});
  EXPECT_EQ(examined.exit_code, 0) << examined.err;
  EXPECT_TRUE(said_once(examined.err)) << examined.err;
  EXPECT_FALSE(has(homeless({"run", "--device", "sim", "--budget", "80%", "-o", "/dev/null"}).err, "XDG_CACHE_HOME"))
      << "nothing is to be examined";
  const Outcome audited = well(homeless({"audit", "--device", "sim"}));
  EXPECT_TRUE(said_once(audited.err)) << audited.err;
  EXPECT_TRUE(has(audited.err, "kernels audited\n"));
  EXPECT_FALSE(has(audited.err, "next:"));
  EXPECT_FALSE(has(audited.err, "cannot write"));
}

// Its folder may be there and take no files.
TEST_F(Endings, AnAuditThatCouldKeepNothingSendsNobodyOn) {
  Words words =
      joined({"/usr/bin/env", "REPRISE_FACTS=/proc/nobody", built("bin/reprise"), "audit", "--device", "sim", "--"},
             trainer("8"));
  const Outcome audited = run(words, simulated_device());
  EXPECT_TRUE(has_cause(audited.err, Cause::audit_not_kept));
  EXPECT_TRUE(has(audited.err, "kernels audited\n"));
}

// A descriptor that the program has not has a number that the next file gets: what the program prints would be in it.
TEST_F(Endings, WhatAProgramPrintsWithoutAnOutputIsInNoFile) {
  const auto without_output = [](const std::string& command, const Environment& environment) {
    std::string words;
    for (const std::string& word : trainer("7")) words += word + " ";
    return run({"/bin/bash", "-c", command + words + ">&-"}, environment);
  };
  Environment launched = launching();
  const Outcome recorded =
      without_output(built("bin/reprise") + " record --device sim -o " + trace_ + " -- ", launched);
  EXPECT_EQ(recorded.exit_code, 0) << recorded.err;
  Environment environment = preloaded("70%");
  environment["REPRISE_WAIT_FOR_PLAN"] = "1";
  environment["REPRISE_TRACE"] = file("b.trace");
  environment["REPRISE_RUN_LOG"] = file("b.run");
  without_output("", environment);
  environment.erase("REPRISE_TRACE");  // a file without a name then
  environment["REPRISE_RUN_LOG"] = file("c.run");
  without_output("", environment);
  for (const char* trace : {"a.trace", "b.trace"}) {
    well(reprise({"dump", file(trace), "-o", "/dev/null"}));
  }
  for (const char* log : {"b.run", "c.run"}) {
    EXPECT_FALSE(lines_of(read_run_log(file(log)), "plan").empty());
    EXPECT_FALSE(has(read_file(file(log)), "step 1 loss"));
  }
}

TEST_F(Endings, WhereNobodyCanBeToldTheExitCodeIsTheProgramsAllTheSame) {
  Environment environment = launching();
  const std::string run_it = built("bin/reprise") + " run --device sim --budget 70% -o " + file("a.html") + " -- ";
  for (const char* where : {"2>&-", "2>/dev/full"}) {
    EXPECT_EQ(run({"/bin/bash", "-c", run_it + "/bin/sh -c 'exit 7' " + where}, environment).exit_code, 7) << where;
    EXPECT_EQ(run({"/bin/bash", "-c", built("bin/reprise") + " plan none.trace --budget 1GiB " + where}, environment)
                  .exit_code,
              1)
        << where;
  }
}

TEST_F(Endings, ReprisesOwnFilesAreNotWrittenOver) {
  for (const char* own : {"lib/reprise/libreprise.so", "bin/reprise", "lib/sim/libcuda.so.1"}) {
    const Outcome outcome =
        reprise({"run", "--device", "sim", "--budget", "70%", "--run-log", built(own)}, trainer("3"));
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "is a file of Reprise's own"));
  }
  Environment environment = preloaded("70%");
  environment["REPRISE_RUN_LOG"] = built("lib/reprise/libreprise.so");
  EXPECT_TRUE(has_cause(well(run(trainer("3"), environment)).err, Cause::output_is_taken,
                        {{"what", phrase<Cause::is_preloaded>()}}));
}

TEST_F(Endings, WhoSwitchesRepriseOffIsToldThatItIs) {
  Environment environment = launching();
  environment["REPRISE_DISABLE"] = "1";
  Words words = joined({built("bin/reprise"), "run", "--device", "sim", "--budget", "70%", "--"}, trainer("3"));
  const Outcome outcome = well(run(words, environment));
  EXPECT_TRUE(has(outcome.err, "no report: REPRISE_DISABLE is set"));
  EXPECT_FALSE(has(outcome.err, "no CUDA call"));
  environment = preloaded("50%");
  environment["REPRISE_PLAN_LIMIT"] = "0";
  EXPECT_TRUE(has_cause(run(trainer("12"), environment).err, Cause::planner_not_allowed));
}

// Chunks are as large as what the budget comes to on this device makes them: of 20 GiB they would be 8 MiB.
TEST_F(Endings, ABudgetFarAboveTheDeviceIsPlannedForTheDevice) {
  Environment environment = launching();
  environment["REPRISE_SIM_MEMORY"] = "40MiB";
  Words words = {built("bin/reprise"), "run", "--device", "sim", "--budget", "20GiB"};
  for (const char* word : {"-o", "a.html", "--run-log", "a.run"}) {
    words.push_back(word[0] == 'a' ? file(word) : word);
  }
  for (const std::string& word : {std::string("--"), built("bin/chargpt"), std::string("--batch"), std::string("16"),
                                  std::string("--steps"), std::string("12")})
    words.push_back(word);
  const Outcome outcome = well(run(words, environment));
  EXPECT_FALSE(lines_of(read_run_log(file("a.run")), "plan").empty()) << outcome.err;
}

// /proc takes no files, whoever asks: as a root that is read-only, or full. The home is there, too.
TEST_F(Endings, PlansAreMadeWhereNoFileCanBeWritten) {
  Environment environment = preloaded("50%");
  environment["TMPDIR"] = "/proc";
  environment["HOME"] = "/proc/nobody";
  environment["REPRISE_WAIT_FOR_PLAN"] = "1";
  environment["REPRISE_RUN_LOG"] = file("a.run");
  EXPECT_EQ(well(run(trainer("12"), environment)).err, "");
  EXPECT_FALSE(lines_of(read_run_log(file("a.run")), "plan").empty());
  // What is found out about kernels is for later runs, and belongs there: said once.
  environment["REPRISE_EXAMINE"] = "5";
  environment["REPRISE_RUN_LOG"] = file("b.run");
  const Outcome examined = well(run(trainer("12"), environment));
  EXPECT_TRUE(has_cause(examined.err, Cause::facts_not_kept));
  EXPECT_EQ(std::count(examined.err.begin(), examined.err.end(), '\n'), 1) << examined.err;
}

// In some sandboxes control groups are mounted by /proc's account, and there is no /sys where they could be read.
TEST_F(Endings, WithoutSysThereIsHostMemoryAllTheSame) {
  const auto without_sys = [](const Words& program) {
    return joined({"/usr/bin/unshare", "--map-root-user", "--mount", "/bin/sh", "-c",
                   "mount -t tmpfs none /sys && exec \"$@\"", "sh"},
                  program);
  };
  if (run(without_sys({"/usr/bin/test", "!", "-e", "/sys/fs"})).exit_code != 0)
    GTEST_SKIP() << "this user may not mount anything";
  Environment environment = preloaded("50%");
  environment["REPRISE_WAIT_FOR_PLAN"] = "1";
  environment["REPRISE_RUN_LOG"] = file("a.run");
  const Outcome outcome = well(run(without_sys(trainer("12")), environment));
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out, run(trainer("12"), simulated_device()).out);
  EXPECT_FALSE(lines_of(read_run_log(file("a.run")), "plan").empty());
  well(run(without_sys({built("bin/reprise"), "doctor", "--device", "sim"}), simulated_device()));
}

TEST_F(Endings, TooLittleHostMemoryIsCalledThat) {
  const Outcome outcome = reprise(
      {"run", "--device", "sim", "--budget", "50%", "--host-memory", "1MiB", "-o", file("a.html")}, trainer("3"));
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_TRUE(has(outcome.err, "--host-memory"));
  EXPECT_FALSE(has_cause(outcome.err, Cause::used_at_once));
  EXPECT_FALSE(has(outcome.err, "repeat"));
  const std::string page = read_file(file("a.html"));
  EXPECT_TRUE(has(page, "of host memory, or a larger budget")) << "what the page advises";
  EXPECT_FALSE(has(page, "Let it repeat itself"));
}

TEST_F(Endings, WithoutADriverThatIsTheReason) {
  const Environment none = {{"REPRISE_DRIVER", file("no.so")}};
  for (const Words& command : {Words{"run", "--budget", "50%", "-o", file("a.html")},
                               {"record", "-o", trace_},
                               {"run", "--defragment"},
                               {"audit"}}) {
    Words words =
        joined(joined({built("bin/reprise")}, command), {"--", "/bin/sh", "-c", "echo \"the program's own line\" >&2"});
    const Outcome outcome = run(words, none);
    EXPECT_TRUE(begins(outcome.err, "reprise: no driver: "));
    EXPECT_LT(outcome.err.find("The program is started all the same\n"), outcome.err.find("the program's own line"))
        << outcome.err;
    EXPECT_FALSE(has(outcome.err, "made no CUDA call"));
  }
}

}  // namespace
}  // namespace reprise::e2e
