// `reprise plan` as people and as the preloaded library call it.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "analyzer/plan/plan.h"
#include "analyzer/planner/planner.h"
#include "tests/e2e/cli/installed.h"
#include "tests/support/trace_builder.h"
#include "tests/support/trace_file.h"
#include "tools/cli/sizes.h"

namespace reprise::tools::test {
namespace {

using analyzer::testing::kChunk;
using analyzer::testing::train_chain;

class PlanCommand : public Installed {
 protected:
  std::string trainer(int iterations = 3) const {
    return write("a.trace", trace_bytes(train_chain(6, 4 * kChunk, iterations)));
  }
  nlohmann::json status() const { return nlohmann::json::parse(read(path("status")), nullptr, false); }
  // As the preloaded library does.
  Finished ask(const std::string& trace, const std::string& budget) const {
    return reprise({"plan", trace, "--budget", budget, "--policy", "auto", "-o", path("tmp/a.plan"), "--quiet",
                    "--status", path("status")});
  }
};

TEST_F(PlanCommand, APlanIsWrittenAndTheStatusSaysOk) {
  const Finished finished = well(ask(trainer(), "50%"));
  EXPECT_EQ(finished.out + finished.err, "");
  EXPECT_EQ(status().at("status"), "ok");
  EXPECT_EQ(status().at("minimum_bytes"), 12 * kChunk);
  EXPECT_EQ(good(plan::read_plan(path("tmp/a.plan"))).budget_bytes, 26 * kChunk);
}

TEST_F(PlanCommand, ThePlanSaysWhichSafetyItIsFor) {
  for (const char* safety : {"strict", "audited", "trusted"}) {
    well(reprise({"plan", trainer(), "--budget", "50%", "--safety", safety, "-o", path("tmp/a.plan")}));
    EXPECT_STREQ(plan::name_of(plan::read_plan(path("tmp/a.plan")).value().safety), safety);
    const Finished exported = reprise({"export", path("tmp/a.plan"), "--format", "json"});
    EXPECT_EQ(nlohmann::json::parse(exported.out).at("plan").at("safety"), safety);
  }
}

// All commands name the same peak of a plan: what the budget leaves after whole chunks is not taken.
TEST_F(PlanCommand, ThePeakIsThatOfItsReport) {
  const std::string trace = trainer();
  const std::string plan = path("tmp/a.plan");
  const std::string budget = std::to_string(20 * kChunk + kChunk / 2);
  const Finished made = reprise({"plan", trace, "--budget", budget, "-o", plan});
  const Finished told = reprise({"report", trace, plan, "-o", path("tmp/a.html")});
  ASSERT_EQ(made.exit_code + told.exit_code, 0) << made.err << told.err;
  const size_t from = made.err.find("peak ");
  ASSERT_NE(from, std::string::npos) << made.err;
  const std::string words = made.err.substr(from, made.err.find(',', from) - from);
  EXPECT_TRUE(has(told.err, words + ",")) << made.err;
}

TEST_F(PlanCommand, ATooSmallBudgetNamesTheSmallestOne) {
  const std::string trace = trainer();
  expect_refused(ask(trace, std::to_string(12 * kChunk - 1)), 1, std::to_string(12 * kChunk));
  EXPECT_EQ(status().at("status"), "infeasible");
  EXPECT_EQ(status().at("minimum_bytes"), 12 * kChunk);
  EXPECT_FALSE(std::filesystem::exists(path("tmp/a.plan")));
  well(ask(trace, std::to_string(12 * kChunk)));
}

TEST_F(PlanCommand, WithoutAnIterationThereIsNoPlanYet) {
  expect_refused(ask(trainer(1), "50%"), 1, "a.trace");
  EXPECT_EQ(status().at("status"), "no_iteration");
}

// What the preloaded library asks for: an iteration that is not a small part of what was recorded.
TEST_F(PlanCommand, AnIterationOfTooLittleIsNoneYet) {
  const auto with_share = [&](const std::string& share) {
    return reprise({"plan", trainer(), "--budget", "50%", "--share", share, "-o", path("tmp/a.plan"), "--quiet",
                    "--status", path("status")});
  };
  expect_refused(with_share("99.9"), 1, "covers only");
  EXPECT_EQ(status().at("status"), "part");
  EXPECT_FALSE(std::filesystem::exists(path("tmp/a.plan")));
  well(with_share("50"));
  EXPECT_EQ(status().at("status"), "ok");
}

// Nor is a plan made for it, unless the caller asks for just that.
TEST_F(PlanCommand, OneCallThatComesAFewTimesIsNoIteration) {
  analyzer::testing::TraceBuilder program;
  const uint64_t w = program.allocate(4 * kChunk), idle = program.allocate(8 * kChunk);
  for (int i = 0; i < 40; ++i) {
    program.launch("layer" + std::to_string(i), {analyzer::testing::updates(i % 2 == 0 ? w : idle)}, 1'000'000);
  }
  for (int i = 0; i < 3; ++i) program.launch("zero", {analyzer::testing::writes(w)}, 10);
  program.launch("last", {analyzer::testing::updates(w)}, 10);
  const std::string trace = write("c.trace", trace_bytes(program.trace()));
  const char* const why =
      "no iteration found in 46 calls: what repeats is one call, in which nothing can move, 3 times, 0 % of the "
      "recorded device time; most of what it does happens only once; at least three equal iterations must be recorded";
  expect_refused(reprise({"plan", trace, "--budget", "60%", "-o", path("c.plan")}), 1, why);
  EXPECT_FALSE(std::filesystem::exists(path("c.plan")));
  expect_refused(reprise({"simulate", trace, "--budget", "60%", "--no-fluid"}), 1, why);
  well(reprise({"report", trace, "-o", path("tmp/c.html")}));
  EXPECT_TRUE(has(read(path("tmp/c.html")), why));
  for (const Words& typed : {Words{"--calls", "1"}, {"--share", "0"}}) {
    Words words = joined({"plan", trace, "--budget", "60%", "-o", path("c.plan")}, typed);
    EXPECT_EQ(reprise(words).exit_code, 0) << typed.front();
  }
}

// ... nor one that began where the most is alive, and will have come often enough to begin elsewhere.
TEST_F(PlanCommand, AnIterationThatBeginsTooEarlyIsNoneYet) {
  analyzer::testing::TraceBuilder program;
  const uint64_t w = program.allocate(4 * kChunk);
  uint64_t large = 0;
  const auto begin = [&](const char* name) {
    large = program.allocate(8 * kChunk);
    program.launch(name, {{large}});
  };
  const auto end = [&] {
    program.launch("much", {{large}});
    program.free(large);
    program.launch("little", {{w}});
  };
  begin("once");
  end();
  begin("fill");
  end();
  begin("fill");
  write("b.trace", trace_bytes(program.trace()));
  const Words by_hand = {"plan",         path("b.trace"), "--budget", "90%",         "-o",
                         path("b.plan"), "--explain",     "--status", path("status")};
  Words patient = by_hand;
  patient.emplace_back("--best-start");
  expect_refused(reprise(patient), 1, "has not come often enough to begin where least is alive");
  EXPECT_EQ(status().at("status"), "early");
  const Finished made = well(reprise(by_hand));
  EXPECT_TRUE(has((made.out + made.err), "record it once more")) << made.out << made.err;
}

// Where the iteration is not nearly all of it, that is said with the plan, and with what is recommended.
TEST_F(PlanCommand, HowMuchOfTheProgramThePlanIsOfIsSaid) {
  const auto said = [&](uint64_t other_ns) {
    analyzer::testing::TraceBuilder program;
    const uint64_t w = program.allocate(4 * kChunk), kept = program.allocate(4 * kChunk);
    for (int i = 0; i < 3; ++i) {
      const uint64_t x = program.allocate(4 * kChunk);
      program.launch("step", {{w}, {x}});
      program.launch("loss", {{w}, {x}});
      program.free(x);
    }
    program.launch("other", {{kept}}, other_ns);
    write("b.trace", trace_bytes(program.trace()));
    return reprise({"plan", path("b.trace"), "--budget", "90%", "-o", path("b.plan")}).err +
           reprise({"simulate", path("b.trace"), "--budget", "90%,100%", "--no-fluid"}).err;
  };
  const std::string part = said(1'200'000);
  EXPECT_TRUE(has(part, "the plan is of an iteration of 4 calls, which covers 33 % of the recorded device time"));
  EXPECT_TRUE(has(part,
                  "all of this is of an iteration of 4 calls, which covers 33 % of the recorded device time: the rest "
                  "may need more"));
  EXPECT_FALSE(has(said(1'000), "which covers"));
}

TEST_F(PlanCommand, OtherTroubleIsAnError) {
  expect_refused(ask(path("no.trace"), "50%"), 1, "no.trace");
  EXPECT_EQ(status().at("status"), "error");
  expect_refused(ask(trainer(), "abc"), 2, "abc");
  EXPECT_EQ(status().at("status"), "error");
  expect_refused(reprise({"plan", trainer(), "--budget", "50%", "--policy", "nonsense"}), 2, "nonsense");
  const std::string whole = read(trainer());
  expect_refused(ask(write("cut.trace", whole + whole.substr(16, 30)), "50%"), 1, "cut.trace");
}

TEST_F(PlanCommand, ThePlanLiesBesideTheTraceByDefault) {
  EXPECT_TRUE(has(well(reprise({"plan", trainer(), "--budget", "50%"})).err, "a.plan"));
  EXPECT_TRUE(std::filesystem::exists(path("a.plan")));
  const Finished explained = reprise({"plan", trainer(), "--budget", "50%", "--explain"});
  EXPECT_TRUE(has(explained.out, "iteration"));
  EXPECT_TRUE(has(explained.out, "\nlink        "));
}

// Large tensors that do not all fit, and small ones, of which those of the iteration stand apart in a plan.
trace::Trace small_and_large(int small, int large, uint64_t chunks) {
  using namespace analyzer::testing;
  TraceBuilder program;
  std::vector<Use> kept;
  kept.reserve(static_cast<size_t>(small));
  for (int i = 0; i < small; ++i) kept.push_back(updates(program.allocate(kChunk / 4)));
  std::vector<uint64_t> weights;
  weights.reserve(static_cast<size_t>(large));
  for (int i = 0; i < large; ++i) weights.push_back(program.allocate(chunks * kChunk));
  for (int step = 0; step < 3; ++step) {
    for (const uint64_t weight : weights) {
      std::vector<Use> uses = kept;
      for (int i = 0; i < small; ++i) uses.push_back(writes(program.allocate(kChunk / 4)));
      const size_t brief = uses.size() - static_cast<size_t>(small);
      uses.push_back(reads(weight));
      program.launch("layer", uses);
      for (size_t i = brief; i + 1 < uses.size(); ++i) program.free(uses[i].allocation);
    }
    program.synchronize();
  }
  return program.trace();
}

// One rule for all programs and budgets: where all fits there is no plan, which could only cost something. One for the
// small tensors of these programs takes more than they do without it.
TEST_F(PlanCommand, ABudgetThatHoldsEverythingHasNoPlan) {
  for (const trace::Trace& program :
       {train_chain(6, 4 * kChunk, 3), small_and_large(3, 6, 1), small_and_large(1, 4, 2)}) {
    const std::string trace = write("w.trace", trace_bytes(program));
    const uint64_t peak = analyzer::Planning(program, {}).peak_bytes();
    for (const std::string& budget : {std::string("100%"), std::to_string(peak), std::to_string(peak + 1),
                                      std::to_string(3 * peak), std::string("16TiB")}) {
      const Finished whole = well(reprise({"plan", trace, "--budget", budget, "--status", path("status")}));
      EXPECT_TRUE(has(whole.err, "nothing has to move, so no plan was written")) << budget;
      EXPECT_EQ(status().at("status"), "fits") << budget;
      EXPECT_FALSE(std::filesystem::exists(path("w.plan"))) << budget << ": " << whole.err;
    }
    const Finished less = reprise({"plan", trace, "--budget", std::to_string(peak - 1), "--status", path("status")});
    EXPECT_NE(status().at("status"), "fits") << less.err;
    if (less.exit_code == 0) {
      const plan::Plan plan = plan::read_plan(path("w.plan")).value();
      EXPECT_LT(plan.chunk_count * plan.chunk_bytes + plan.reserved_bytes, peak);
      std::filesystem::remove(path("w.plan"));
    }
  }
}

// A run there gets less than the budget, and a plan for it has no room.
// A percentage of nothing is no budget that could be typed.
TEST_F(PlanCommand, WithoutDeviceMemoryNoBudgetIsProposed) {
  analyzer::testing::TraceBuilder program;
  for (int i = 0; i < 8; ++i) {
    program.launch("a", {});
    program.launch("b", {});
  }
  const std::string trace = write("none.trace", trace_bytes(program.trace()));
  for (const char* budget : {"60%", "1GiB"}) {
    const Finished finished = well(reprise({"plan", trace, "--budget", budget, "-o", path("tmp/a.plan")}));
    EXPECT_TRUE(has(finished.err, "the program has no device memory"));
    EXPECT_FALSE(has(finished.err, "--budget"));
    EXPECT_EQ(read(path("tmp/a.plan")), "");
  }
}

// The plan is of the loop; behind it a call works on more than its budget leaves.
TEST_F(PlanCommand, ACallElsewhereThatNeedsMoreThanTheBudgetIsTold) {
  using analyzer::testing::reads;
  analyzer::testing::TraceBuilder loop;
  std::vector<uint64_t> weights;
  for (int i = 0; i < 5; ++i) weights.push_back(loop.allocate(4 * kChunk));
  for (int step = 0; step < 4; ++step) {
    const uint64_t x = loop.allocate(4 * kChunk);
    for (const uint64_t weight : weights) loop.launch("step", {reads(weight), analyzer::testing::updates(x)});
    loop.free(x);
  }
  loop.info("memory.held_bytes", std::to_string(kChunk));
  const std::string without = write("loop.trace", trace_bytes(loop.trace()));
  loop.launch("evaluate", {reads(weights[0]), reads(weights[1]), reads(weights[2]), reads(weights[3])});
  const std::string with = write("evaluated.trace", trace_bytes(loop.trace()));
  const std::string enough = tools::typed_bytes(17 * kChunk);
  const auto planned = [&](const std::string& trace, const std::string& budget) {
    const Finished finished = well(reprise({"plan", trace, "--budget", budget, "-o", path("tmp/a.plan")}));
    return finished.err;
  };
  const std::string told = planned(with, tools::typed_bytes(16 * kChunk));
  EXPECT_TRUE(has(told, "evaluate works on " + tools::format_bytes(16 * kChunk)));
  EXPECT_TRUE(has(told, "--budget " + enough + " or more"));
  EXPECT_FALSE(has(planned(with, enough), "elsewhere")) << "this one holds it";
  EXPECT_FALSE(has(planned(without, tools::typed_bytes(16 * kChunk)), "elsewhere"));
}

TEST_F(PlanCommand, ABudgetAboveTheRecordedDeviceIsSaidToBe) {
  trace::Trace program = train_chain(6, 4 * kChunk, 3);
  const uint64_t peak = analyzer::Planning(program, {}).peak_bytes();
  const auto plan = [&](uint64_t device, const std::string& budget, const Words& more = {}) {
    program.info["device.memory"] = std::to_string(device);
    Words words =
        joined({"plan", write("d.trace", trace_bytes(program)), "--budget", budget, "-o", path("d.plan")}, more);
    return reprise(words).err;
  };
  const uint64_t device = 32 * (peak / 32 - kChunk / 32);  // less than a chunk above what a run there gets
  const uint64_t room = (device - device / 32) / 1024 * 1024;
  const std::string told = plan(device, "100%");
  EXPECT_TRUE(has(told, "so no plan was written; but the device that it was recorded on has room for " +
                            format_bytes(room) + ", of " + format_bytes(device) +
                            ": memory is managed within that there; next: reprise run --budget " + typed_bytes(room) +
                            " -- program"));
  EXPECT_FALSE(has(plan(2 * peak, "100%"), "recorded on has"));
  EXPECT_FALSE(has(plan(2 * peak, "16TiB"), "recorded on has"));
  const std::string planned = plan(device, std::to_string(device));
  EXPECT_TRUE(has(planned, "d.plan takes more than the device that " + path("d.trace") +
                               " was recorded on has room for, " + format_bytes(room) + " of " + format_bytes(device) +
                               ": for that one plan with --budget " + typed_bytes(room) + " or less"));
  EXPECT_FALSE(has(plan(device, typed_bytes(room)), "recorded on has"));
}

// Where all fits nothing moves, in both; elsewhere a plan is what was simulated, also on a link so slow that halves of
// tensors, or none that is only read, were better: no replay does that.
TEST_F(PlanCommand, SimulateForetellsWhatIsPlanned) {
  const std::string slow = write("slow.json", R"({"format":"reprise-machine","version":1,"device":"x",
      "memory_bytes":1,"h2d_bytes_per_second":20971520,"copy_latency_ns":1})");
  int unplanned = 0, moving = 0;
  for (const auto& [small, large, chunks] : {std::tuple{1, 4, uint64_t{2}}, {3, 6, 1}, {5, 5, 40}, {7, 2, 3}}) {
    const std::string trace = write("m.trace", trace_bytes(small_and_large(small, large, chunks)));
    for (const char* budget : {"60%", "75%", "90%", "99%", "100%"}) {
      const std::string where = fmt::format("{} small, {} of {} chunks at {}: ", small, large, chunks, budget);
      std::filesystem::remove(path("m.plan"));
      const Finished planned = reprise(
          {"plan", trace, "--budget", budget, "--machine", slow, "-o", path("m.plan"), "--status", path("status")});
      const Finished simulated =
          reprise({"simulate", trace, "--budget", budget, "--machine", slow, "--no-fluid", "--csv", path("m.csv")});
      ASSERT_EQ(planned.exit_code, simulated.exit_code) << where << planned.err << simulated.err;
      if (planned.exit_code != 0) continue;
      const std::string csv = read(path("m.csv"));
      Words row;
      std::stringstream values(csv.substr(csv.find('\n') + 1));
      for (std::string value; std::getline(values, value, ',');) row.push_back(value);
      const std::string simulated_bytes = row.at(8) + " out, " + row.at(9) + " back";
      if (std::string(budget) == "100%") {
        EXPECT_EQ(simulated_bytes, "0 out, 0 back") << where;
      }
      const Result<plan::Plan> plan = plan::read_plan(path("m.plan"));
      if (!plan.ok()) {
        ++unplanned;
        EXPECT_EQ(status().at("status"), "fits") << where;
        EXPECT_TRUE(has(planned.err, "nothing has to move, so no plan was written"));
        EXPECT_EQ(simulated_bytes, "0 out, 0 back") << where;
        continue;
      }
      moving += plan.value().offload_bytes > 0 ? 1 : 0;
      EXPECT_EQ(fmt::format("{} out, {} back", plan.value().offload_bytes, plan.value().reload_bytes), simulated_bytes)
          << where << planned.err;
      EXPECT_EQ(row.at(3), std::to_string(plan.value().predicted_ns)) << where;
    }
  }
  EXPECT_GT(unplanned, 0) << "otherwise this test shows nothing of programs that fit";
  EXPECT_GT(moving, 3) << "otherwise this test shows nothing of those that do not";
}

TEST_F(PlanCommand, TheReportOfTraceAndPlanHasTheBound) {
  well(ask(trainer(), "50%"));
  const Finished finished = well(reprise({"report", path("a.trace"), path("tmp/a.plan"), "--json", "-o", "-"}));
  const nlohmann::json data = nlohmann::json::parse(finished.out);
  EXPECT_TRUE(has(finished.out, "\"Speed against the bound\""));
  EXPECT_EQ(data.at("tensors").at("total"), 13);
  EXPECT_LE(data.at("iteration_memory").at("lines").at(1).at("peak"), 26 * kChunk);
}

}  // namespace
}  // namespace reprise::tools::test
