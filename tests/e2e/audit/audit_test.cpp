// `reprise audit` finds the kernels that touch more than they are given, and the others are what --safety audited says.
#include "analyzer/plan/plan.h"
#include "preload/facts/store.h"
#include "preload/trace/names.h"
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

using Words = Words;

Words program(const Words& lies, const std::string& iterations = "10") {
  return joined({built("bin/audit_program"), iterations}, lies);
}

class AuditTest : public InScratch {
 protected:
  Environment here() const { return merged(simulated_device(), {{"REPRISE_FACTS", file("facts")}}); }
  Outcome audit(const Words& argv, const Words& options = {"--whole"}) const {
    Words all = joined({built("bin/reprise"), "audit", "--device", "sim", "--framework", "none"}, options);
    all.push_back("--");
    all.insert(all.end(), argv.begin(), argv.end());
    return e2e::run(all, here());
  }
  Outcome managed(const Words& argv, const std::string& safety, const std::string& budget = "60%",
                  const Environment& more = {}) const {
    return e2e::run(argv, merged(merged(preloaded(budget), {{"REPRISE_FACTS", file("facts")},
                                                            {"REPRISE_SAFETY", safety},
                                                            {"REPRISE_WAIT_FOR_PLAN", "1"},
                                                            {"REPRISE_RUN_LOG", file(safety)}}),
                                 more));
  }
  // "audited", "strays", "-": by name.
  std::string said_of(const std::string& kernel) const {
    Words problems;
    for (const facts::KernelFacts& known : facts::Store(file("facts")).all(&problems)) {
      if (trace::short_name(known.name) != kernel) continue;
      if (known.strayed != 0) return "strays";
      const auto audited = [&](const auto& shape) { return facts::audited(known, shape.shape) == facts::Answer::yes; };
      return std::all_of(known.shapes.begin(), known.shapes.end(), audited) ? "audited" : "too few";
    }
    return "-";
  }
  // VMM calls of a planned iteration; the first ones still map what the plan wants, the last one may not be whole.
  uint64_t steady_calls(const std::string& safety) const {
    uint64_t calls = ~uint64_t{0};
    for (const auto& line : lines_of(read_run_log(file(safety)), "iteration")) {
      if (line.at("mode") == "planned") calls = std::min(calls, line.at("vmm_calls").get<uint64_t>());
    }
    return calls;
  }
};

TEST_F(AuditTest, KernelsBesideVariablesAreNotSaidToHoldAddresses) {
  const Outcome seen = well(audit({built("bin/carrying_program"), "4"}));
  EXPECT_TRUE(has(seen.err, "not audited: its module has variables"));
  EXPECT_FALSE(has(seen.err, "its operands hold addresses of others"));
}

TEST_F(AuditTest, HonestKernelsAreAuditedAndPlansOfThemMapNothing) {
  const Outcome plain = run(program({}), simulated_device());
  const Outcome found = well(audit(program({})));
  EXPECT_EQ(found.out, plain.out) << "its lines are the program's";
  EXPECT_TRUE(has(found.err, "up to 5 times")) << "told beforehand: ";
  for (const char* kernel : {"mix", "update"}) EXPECT_EQ(said_of(kernel), "audited") << kernel << found.err;
  EXPECT_EQ(said_of("make_table"), "too few") << "launched once";
  for (const char* safety : {"strict", "audited", "trusted"}) {
    const Outcome got = well(managed(program({}), safety));
    EXPECT_EQ(got.out, plain.out) << safety;
    EXPECT_EQ(got.err, "") << safety;
  }
  EXPECT_GT(steady_calls("strict"), 20u);
  EXPECT_EQ(steady_calls("audited"), 0u);
  EXPECT_EQ(steady_calls("trusted"), 0u);
}

// Each lie is found, kernel and tensor by name; the others are audited all the same.
TEST_F(AuditTest, WhatReachesOrWritesMoreIsFound) {
  // Facts from small operands alone.
  well(managed(program({"touch"}), "strict", "100%", {{"REPRISE_EXAMINE", "60"}}));
  const Words lies = {"follow", "table", "touch", "large"};
  const Outcome plain = run(program(lies), simulated_device());
  const Outcome found = well(audit(program(lies)));
  EXPECT_EQ(said_of("follow"), "strays");
  EXPECT_EQ(said_of("by_table"), "strays");
  for (const char* kernel : {"mix", "update", "touch"}) EXPECT_EQ(said_of(kernel), "audited") << kernel;
  EXPECT_TRUE(has(found.err,
                  "follow touched allocation 1, of 512 KiB, 0 bytes from its start, which is none of its operands "
                  "(none of them held an address of it)"));
  EXPECT_TRUE(has(found.err,
                  "by_table touched allocation 4, of 512 KiB, 0 bytes from its start, which is none of its operands "
                  "(its operand at 0 held an address of it)"));
  EXPECT_TRUE(has(found.err, "touch wrote allocation 10, of 512 KiB, 28 bytes from its start, by its operand at 0"));
  EXPECT_TRUE(has(run({built("bin/reprise"), "facts", "follow"}, here()).out, "audit: strays"));
  for (const char* budget : {"80%", "60%", "40%"}) {
    const Outcome got = managed(program(lies), "audited", budget);
    const bool told = got.exit_code == 3 && has(got.err, "reprise: ") && plain.out.rfind(got.out, 0) == 0;
    EXPECT_TRUE(got.out == plain.out || told) << budget << got.err << got.out;
  }
}

// A program that was changed after its audit: the new kernel is not audited, so nothing is aliased where it runs. It
// first strays under a plan.
TEST_F(AuditTest, AKernelThatIsPlantedLaterFaultsOrIsRight) {
  well(audit(program({})));
  const Outcome plain = run(program({"later"}, "14"), simulated_device());
  bool told = false;
  for (const char* budget : {"80%", "70%", "60%", "50%", "40%"}) {
    const Outcome got = managed(program({"later"}, "14"), "audited", budget);
    if (got.exit_code == 0) {
      EXPECT_EQ(got.out, plain.out) << budget;
    } else {
      EXPECT_TRUE(has_cause(got.err, Cause::reached_away, {{"allocation", "1"}}));
      EXPECT_TRUE(begins(plain.out, got.out)) << got.out;
      told = true;
    }
    EXPECT_NE(steady_calls("audited"), ~uint64_t{0}) << "no plan came in force: " << got.exit_code << got.err;
  }
  EXPECT_TRUE(told) << "it was always right: this proves nothing";
}

// What facts call pure is computed again where only audited launches run in between.
TEST_F(AuditTest, PlansRecomputeBetweenAuditedLaunches) {
  const Words argv = {built("bin/chargpt"), "--layers", "3",       "--width", "64",      "--heads", "4",
                      "--context",          "32",       "--batch", "8",       "--steps", "8"};
  // By the modelled clock: whether it is worth that depends on no load of the host.
  const Environment slow = {
      {"REPRISE_SIM_H2D", "40MiB"}, {"REPRISE_SIM_D2H", "40MiB"}, {"REPRISE_SIM_MEMORY_RATE", "1GiB"}};
  const Outcome learnt =
      managed(argv, "strict", "100%", merged(slow, {{"REPRISE_EXAMINE", "60"}, {"REPRISE_TRACE", file("trace")}}));
  ASSERT_EQ(learnt.exit_code, 0) << learnt.err;
  well(audit(argv));
  const auto plan = [&] {
    const Outcome made =
        run({built("bin/reprise"), "plan", file("trace"), "--budget", "60%", "--safety", "audited", "-o", file("plan")},
            here());
    EXPECT_EQ(made.exit_code, 0) << made.err;
    return plan::read_plan(file("plan")).value();
  };
  EXPECT_TRUE(plan::all_audited(plan()));
  // What a run by that plan launched again.
  const auto repeated = [&] {
    EXPECT_TRUE(plan::recomputes(plan()));
    const Outcome got = managed(argv, "audited", "60%", merged(slow, {{"REPRISE_PLAN", file("plan")}}));
    EXPECT_EQ(got.out, learnt.out) << got.err;
    const auto ends = lines_of(read_run_log(file("audited")), "end");
    return ends.empty() ? 0 : ends.back().at("repeated_launches").get<uint64_t>();
  };
  const uint64_t by_all = repeated();
  EXPECT_GT(by_all, 0u);
  // The last one of the backward pass: activations are gone by then.
  well(run({built("bin/reprise"), "facts", "embed_backward_tokens", "--remove"}, here()));
  EXPECT_FALSE(plan::all_audited(plan()));
  EXPECT_GT(2 * repeated(), by_all);
  // One of each layer: most live across it.
  well(run({built("bin/reprise"), "facts", "gelu_backward", "--remove"}, here()));
  EXPECT_LT(2 * repeated(), by_all);
}

// Where some launches are not audited, what they do not run past stays mapped.
TEST_F(AuditTest, OneKernelThatIsNotAuditedCostsNotAll) {
  const Words argv = {built("bin/chargpt"), "--steps", "10"};
  well(audit(argv));
  const Outcome strict = managed(argv, "strict", "50%");
  well(run({built("bin/reprise"), "facts", "embed_backward_tokens", "--remove"}, here()));
  const Outcome mixed = managed(argv, "audited", "50%");
  EXPECT_EQ(mixed.out, strict.out) << mixed.err;
  EXPECT_GT(steady_calls("audited"), 0u);
  EXPECT_LT(2 * steady_calls("audited"), steady_calls("strict"));
}

TEST_F(AuditTest, WithoutAnAuditItIsStrictAndSaysSo) {
  const Outcome strict = managed(program({}), "strict"), audited = managed(program({}), "audited");
  EXPECT_EQ(audited.out, strict.out);
  EXPECT_TRUE(has_cause(audited.err, Cause::none_audited));
  const Words record = {
      built("bin/reprise"),       "record", "--device", "sim", "--framework", "none", "-o", file("trace"), "--",
      built("bin/audit_program"), "10"};
  well(run(record, here()));
  for (const char* safety : {"strict", "audited"}) {
    const Words plan = {built("bin/reprise"),
                        "plan",
                        file("trace"),
                        "--budget",
                        "60%",
                        "--safety",
                        safety,
                        "--policy",
                        "lru",
                        "-o",
                        file(std::string(safety) + ".plan")};
    well(run(plan, here()));
  }
  plan::Plan made = plan::read_plan(file("audited.plan")).value();
  EXPECT_EQ(made.safety, plan::Safety::audited);
  made.safety = plan::Safety::strict;
  EXPECT_EQ(plan::serialize(made), read_file(file("strict.plan"))) << "else to the byte";
}

// An endless program is ended when nothing new comes; and one that has to be ended by the clock.
TEST_F(AuditTest, TheProgramIsEndedWhenItHasShownEnough) {
  EXPECT_TRUE(has(well(audit(program({"forever"}), {})).err, "nothing new came"));
  EXPECT_EQ(said_of("mix"), "audited");
  EXPECT_TRUE(has(well(audit(program({"forever"}), {"--iterations", "3"})).err, "nothing new came"));
  EXPECT_TRUE(has(well(audit(program({"forever"}), {"--whole", "--seconds", "2"})).err, "ended after 2 s"));
}

TEST_F(AuditTest, TooFewTriesAreTold) {
  const Outcome found = audit(program({"follow", "table"}), {"--tries", "2"});
  EXPECT_EQ(found.exit_code, 1) << found.err;
  EXPECT_TRUE(has(found.err, "add --tries"));
  const Outcome again = audit(program({"follow", "table"}), {"--tries", "1", "--whole"});
  EXPECT_EQ(again.exit_code, 0) << "what was found is kept: " << again.err;
}

TEST_F(AuditTest, AProgramWithoutKernelsOrThatFailsIsTold) {
  const Outcome none = audit({"/bin/true"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_TRUE(has(none.err, "nothing to audit"));
  const Outcome failing = audit({"/bin/sh", "-c", built("bin/audit_program") + " 3; exit 7"});
  EXPECT_EQ(failing.exit_code, 1);
  EXPECT_TRUE(has(failing.err, "exit code 7"));
  const Outcome killed = audit({"/bin/sh", "-c", "kill -9 $$"});
  EXPECT_EQ(killed.exit_code, 1);
  EXPECT_TRUE(has(killed.err, "nothing to audit"));
}

// Processes whose command line has this in it.
int running(const std::string& mark) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (has(read_file(entry.path() / "cmdline"), mark) && entry.path().filename() != std::to_string(getpid())) ++count;
  }
  return count;
}

void wait_until(bool (*test)(int), const std::string& mark) {
  for (int i = 0; i < 100 && !test(running(mark)); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

TEST_F(AuditTest, KilledItLeavesNoProcessAndNoFile) {
  namespace fs = std::filesystem;
  const std::string folder = file("tmp");
  fs::create_directories(folder);
  const std::string mark = file("mark");
  const pid_t child = fork();
  if (child == 0) {
    for (const auto& [name, value] : here()) setenv(name.c_str(), value.c_str(), 1);
    setenv("TMPDIR", folder.c_str(), 1);
    const std::string reprise = built("bin/reprise"), victim = built("bin/audit_program");
    freopen("/dev/null", "w", stdout);
    execl(reprise.c_str(), reprise.c_str(), "audit", "--whole", "--device", "sim", "--framework", "none", "--",
          victim.c_str(), "8", "forever", mark.c_str(), nullptr);
    _exit(127);
  }
  wait_until([](int count) { return count >= 2; }, mark);
  EXPECT_EQ(running(mark), 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  wait_until([](int count) { return count == 0; }, mark);
  EXPECT_EQ(running(mark), 0);
  EXPECT_TRUE(fs::is_empty(folder));
}

}  // namespace
}  // namespace reprise::e2e
