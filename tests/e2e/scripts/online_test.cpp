// From nothing to a plan while the program runs: repetition is found, a child plans, the next iterations follow.
#include "replay/plans/planner_process.h"
#include "tests/e2e/scripts/script_runner.h"
#include "tests/e2e/scripts/training.h"
#include "tests/support/test.h"

namespace reprise::replay {
namespace {

constexpr uint64_t kChunk = 64 * 1024;
constexpr uint32_t kLimit = 60;  // seconds

uint64_t at_end(const Outcome& outcome, const std::string& key) {
  const auto end = lines_of_kind(outcome.run_log, "end");
  return end.empty() ? 0 : number_in(end.back(), key);
}

Training slow_training() {
  Training training;
  training.sleep_ms = 20;  // the planner needs time: the program goes on meanwhile
  return training;
}

TEST(OnlineTest, ARunPlansItselfAndGivesTheSameBytes) {
  const std::string script = slow_training().script(150);
  const Outcome plain = run_plain(script);
  const uint64_t budget = 30 * kChunk;
  const Outcome managed = run_managed(script, std::to_string(budget), {{"REPRISE_PLANNER", REPRISE_TEST_PLANNER}});
  EXPECT_EQ(managed.output, plain.output) << managed.err;
  EXPECT_LE(managed.peak_bytes, budget);
  EXPECT_GT(at_end(managed, "iterations_planned"), 10u) << managed.err << managed.run_log.substr(0, 3000);
}

// What the planner answers to --first is in force until it has searched on, or never if the program is slow. The
// program stands still while it works.
TEST(OnlineTest, ABetterPlanTakesTheFirstOnesPlace) {
  const std::string planner = scratch_file("planner");
  std::ofstream(planner) << "#!/bin/sh\nreprise=" << REPRISE_TEST_PLANNER << R"(
for word; do [ "$last" = --status ] && status=$word; last=$word; done
program=${status#/proc/}; program=${program%%/*}
[ "${*%--nice*}" = "$*" ] || sleep 0.5
kill -STOP $program
case "$*" in
*--first*)
  $reprise $(echo "$*" | sed 's/--policy auto/--policy uvm/'); code=$?
  [ $code = 0 ] && echo '{"status":"first","until":99999999}' > "$status" ;;
*)
  $reprise "$@"; code=$? ;;
esac
kill -CONT $program
exit $code
)";
  std::filesystem::permissions(planner, std::filesystem::perms::owner_all);
  const std::string script = slow_training().script(400);
  const Outcome plain = run_plain(Training{}.script(400));
  const Outcome managed = run_managed(script, std::to_string(30 * kChunk), {{"REPRISE_PLANNER", planner}});
  EXPECT_EQ(managed.output, plain.output) << managed.err;
  const auto plans = lines_of_kind(managed.run_log, "plan");
  ASSERT_EQ(plans.size(), 2u) << managed.err << managed.run_log.substr(0, 3000);
  EXPECT_FALSE(has(plans[0], "replaces"));
  EXPECT_TRUE(has(plans[1], "\"replaces\":0"));
  EXPECT_LT(number_in(plans[1], "predicted_ns"), number_in(plans[0], "predicted_ns"));
  const auto activations = lines_of_kind(managed.run_log, "activate");
  ASSERT_FALSE(activations.empty()) << managed.run_log.substr(0, 3000);
  EXPECT_LE(activations.size(), 2u);
  EXPECT_EQ(number_in(activations.back(), "plan"), 1u);
  EXPECT_TRUE(lines_of_kind(managed.run_log, "divergence").empty());
  EXPECT_EQ(at_end(managed, "plans"), 1u) << "of one loop";
}

TEST(OnlineTest, APercentageIsPlannedFor) {
  const std::string script = slow_training().script(150);
  const Outcome plain = run_plain(script);
  const Outcome managed = run_managed(script, "50%", {{"REPRISE_PLANNER", REPRISE_TEST_PLANNER}});
  EXPECT_EQ(managed.output, plain.output) << managed.err;
  EXPECT_LE(managed.peak_bytes, at_end(managed, "peak_footprint_bytes") / 2);
  EXPECT_GT(at_end(managed, "iterations_planned"), 10u) << managed.err;
}

// Six equal kernels in a row are no loop of the program, where nothing else repeats: a plan of one of them would begin
// wherever it comes, and what it rules is not recorded.
TEST(OnlineTest, AFewEqualKernelsInARowHaveNoPlan) {
  std::string script = "alloc little 1024\n";
  for (int w = 0; w < 8; ++w) script += "alloc w" + std::to_string(w) + " 262144\n";
  uint32_t random = 1;
  const auto draw = [&](uint32_t below) { return (random = random * 1664525 + 1013904223) / 65536 % below; };
  for (int round = 0; round < 30; ++round) {
    for (int i = 0; i < 6; ++i) script += "kernel 0 one little\n";
    for (int i = 0; i < 150; ++i) {  // of another size each time, with another tensor
      script += "alloc a " + std::to_string(100'000 + 4096 * draw(29)) + "\n";
      script += "kernel 0 two a w" + std::to_string(draw(8)) + "\nfree a\n";
    }
    script += "d2h 0 w1 pageable sync\n";
  }
  const Outcome plain = run_plain(script);
  const Outcome managed = run_managed(script, std::to_string(24 * kChunk),
                                      {{"REPRISE_PLANNER", REPRISE_TEST_PLANNER}, {"REPRISE_WAIT_FOR_PLAN", "1"}});
  EXPECT_EQ(managed.output, plain.output) << managed.err;
  EXPECT_EQ(at_end(managed, "plans"), 0u) << managed.err;
  EXPECT_TRUE(has(managed.run_log, "what repeats is one call"));
}

// The planner is asked about the last kernels a moment before the end: why there was no plan is what it said before.
TEST(OnlineTest, AQuestionOfTheLastMomentIsNotTheReason) {
  const std::string planner = scratch_file("planner");
  std::ofstream(planner) << "#!/bin/sh\n"
                            "for word; do [ \"$last\" = --status ] && status=$word; last=$word; done\n"
                            "[ -e " +
                                planner +
                                ".asked ] && sleep 5\n"
                                "touch " +
                                planner +
                                ".asked\n"
                                "echo '{\"status\":\"no_iteration\",\"message\":\"nothing repeats\"}' > \"$status\"\n"
                                "exit 1\n";
  std::filesystem::permissions(planner, std::filesystem::perms::owner_all);
  const auto six = [] {
    std::string calls;
    for (int i = 0; i < 6; ++i) calls += "kernel 0 one little\n";
    return calls;
  };
  std::string script =
      "alloc little 1024\nalloc w 2097152\nalloc x 400000\nkernel 0 two x w\nfree x\n" + six() + "sleep 1500\n";
  for (int i = 0; i < 60; ++i) {
    script += "alloc a " + std::to_string(100'000 + 512 * i) + "\nkernel 0 two a w\nfree a\n";
  }
  script += six() + "d2h 0 w pageable sync\n";
  const Outcome managed = run_managed(script, std::to_string(33 * kChunk), {{"REPRISE_PLANNER", planner}});
  const auto reasons = lines_of_kind(managed.run_log, "on_demand");
  ASSERT_FALSE(reasons.empty()) << managed.run_log.substr(0, 3000);
  EXPECT_TRUE(std::filesystem::exists(planner + ".asked"));
  EXPECT_TRUE(has(reasons.back(), "nothing repeats"));
}

// On demand the largest call has to fit; the planner keeps room for small tensors aside. Between the two lie budgets
// that are enough for the program and for no plan.
TEST(OnlineTest, ABudgetThatIsTooSmallForAPlanIsSaidAndTheProgramGoesOn) {
  const std::string script = slow_training().script(60);
  const Outcome plain = run_plain(script);
  bool said = false;
  for (uint64_t chunks = 16; chunks >= 8 && !said; --chunks) {
    const Outcome managed =
        run_managed(script, std::to_string(chunks * kChunk), {{"REPRISE_PLANNER", REPRISE_TEST_PLANNER}});
    said = managed.err.find("too small") != std::string::npos;
    EXPECT_EQ(managed.output, plain.output) << chunks << managed.err;
  }
  EXPECT_TRUE(said);
}

// Small tensors lie in more chunks than when the plan was made: each one where others were before it. The next plan is
// for what is left, and rests on facts as the first one did: none was wrong.
TEST(OnlineTest, APlanThatHasNoRoomAnyMoreIsMadeAnewWithItsFacts) {
  const std::string planner = scratch_file("planner");
  std::ofstream(planner) << "#!/bin/sh\necho \"$*\" >> " << planner << ".asked\nexec " << REPRISE_TEST_PLANNER
                         << " \"$@\"\n";
  std::filesystem::permissions(planner, std::filesystem::perms::owner_all);
  std::filesystem::remove(planner + ".asked");
  const Training training;
  const std::string script = training.begin() + Training::small_ones(true) + training.loop(8) +
                             Training::free_small_ones() + Training::small_ones(false) + training.loop(24);
  const Outcome plain = run_plain(script);
  const Outcome managed =
      run_managed(script, std::to_string(36 * kChunk),
                  {{"REPRISE_PLANNER", planner}, {"REPRISE_WAIT_FOR_PLAN", "1"}, {"REPRISE_FACTS", scratch_file("")}});
  EXPECT_EQ(managed.output, plain.output) << managed.err;
  EXPECT_TRUE(has(managed.run_log, "\"cause\":\"refused\""));
  std::ifstream asked(planner + ".asked");
  for (std::string words; std::getline(asked, words);) EXPECT_TRUE(has(words, " --facts "));
  EXPECT_EQ(at_end(managed, "plans"), 2u);
  EXPECT_GE(at_end(managed, "iterations_planned"), 4u + 16) << managed.err;
}

TEST(OnlineTest, RecordingEndsWhenThePlanIsInForce) {
  const auto trace_bytes = [](int iterations) {
    const std::string trace = scratch_file("trace");
    const Outcome managed = run_managed(
        Training{}.script(iterations), std::to_string(30 * kChunk),
        {{"REPRISE_PLANNER", REPRISE_TEST_PLANNER}, {"REPRISE_WAIT_FOR_PLAN", "1"}, {"REPRISE_TRACE", trace}});
    EXPECT_GT(at_end(managed, "iterations_planned"), 10u) << managed.err;
    return std::filesystem::file_size(trace);
  };
  const auto few = trace_bytes(20);
  EXPECT_LT(trace_bytes(400), few + few / 4);
}

// However fast the planner is: what a call needs is granted, and said.
TEST(OnlineTest, APercentageIsNeverLessThanWhatOneCallNeeds) {
  const std::string script = slow_training().script(60);
  const Outcome plain = run_plain(script);
  for (const char* wait : {"0", "1"}) {
    const Outcome managed =
        run_managed(script, "3%", {{"REPRISE_PLANNER", "/bin/false"}, {"REPRISE_WAIT_FOR_PLAN", wait}});
    EXPECT_EQ(managed.exit_code, 0) << managed.err;
    EXPECT_EQ(managed.output, plain.output) << managed.err;
    EXPECT_TRUE(has_cause(managed.err, Cause::used_at_once));
  }
}

// Between what one call needs and what the smallest plan takes lie percentages that would be on demand for good.
TEST(OnlineTest, APercentageRisesToWhatCanBePlanned) {
  const std::string script = Training{}.script(40);
  const Outcome plain = run_plain(script);
  bool raised = false;
  for (const char* budget : {"40%", "30%", "25%", "20%", "15%"}) {
    const Outcome managed =
        run_managed(script, budget, {{"REPRISE_PLANNER", REPRISE_TEST_PLANNER}, {"REPRISE_WAIT_FOR_PLAN", "1"}});
    EXPECT_EQ(managed.output, plain.output) << managed.err;
    EXPECT_GT(at_end(managed, "iterations_planned"), 20u) << budget << managed.err;
    raised = raised || has_cause(managed.err, Cause::budget_was_raised);
    EXPECT_LE(managed.peak_bytes, at_end(managed, "peak_program_bytes"));
  }
  EXPECT_TRUE(raised) << "no budget was too small for a plan";
}

TEST(OnlineTest, APlannerThatIsNotThereCostsOneLine) {
  const std::string script = Training{}.script(12);
  const Outcome managed = run_managed(script, std::to_string(30 * kChunk), {{"REPRISE_PLANNER", "/nowhere"}});
  EXPECT_EQ(managed.output, run_plain(script).output);
  EXPECT_TRUE(has_cause(managed.err, Cause::planner_unstarted, {{"path", "/nowhere"}}));
}

TEST(PlannerProcessTest, TheProgramsWaitNeverSeesTheChild) {
  EXPECT_EQ(run_unseen({"/bin/true"}, kLimit), 0);
  const int failed = run_unseen({"/bin/false"}, kLimit);
  EXPECT_TRUE(WIFEXITED(failed));
  EXPECT_EQ(WEXITSTATUS(failed), 1);
  EXPECT_EQ(WEXITSTATUS(run_unseen({"/no/such/program"}, kLimit)), 127);
  int status = 0;
  EXPECT_EQ(waitpid(-1, &status, 0), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(PlannerProcessTest, TheChildInheritsNothingOfOurs) {
  setenv("REPRISE_BUDGET", "1GiB", 1);
  const int status = run_unseen({"/bin/sh", "-c", "test -z \"$REPRISE_BUDGET$LD_PRELOAD\""}, kLimit);
  unsetenv("REPRISE_BUDGET");
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace reprise::replay
