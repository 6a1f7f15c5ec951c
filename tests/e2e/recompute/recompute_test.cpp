// Plans that recompute, enforced: the same bits, whatever the kernels do and wherever the program leaves the plan.
#include "preload/facts/store.h"
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

// Slow links, so that recompute pays, and kernels whose recorded times do not depend on how busy the machine is.
const Environment kSlow = {
    {"REPRISE_SIM_H2D", "50MiB"}, {"REPRISE_SIM_D2H", "50MiB"}, {"REPRISE_SIM_MEMORY_RATE", "4GB"}};

Words program(int seed, const Words& more = {}, int steps = 10) {
  return joined({built("bin/layered_program"), built("bin/hash_kernels.cubin"), std::to_string(seed),
                 std::to_string(steps), "--layers", "5", "--max-kib", "300"},
                more);
}

struct Ran {
  Outcome outcome;
  uint64_t planned = 0;
  uint64_t repeated = 0;
};

// A program whose kernels have the natures of its seed, with a cache of facts of its own.
class Learned {
 public:
  explicit Learned(int seed) : seed_(seed), natures_({{"REPRISE_SIM_KERNELS", std::to_string(1000 + seed)}}) {
    // To examine takes many copies.
    managed(program(seed_), {{"REPRISE_EXAMINE", "60"}, {"REPRISE_SIM_H2D", "0"}, {"REPRISE_SIM_D2H", "0"}});
  }

  Outcome plain(const Words& argv) const { return run(argv, merged(simulated_device(), merged(kSlow, natures_))); }
  Ran managed(const Words& argv, const Environment& more = {}) const {
    Environment environment = merged(preloaded("55%"), merged(kSlow, natures_));
    environment = merged(environment, {{"REPRISE_SAFETY", "trusted"},
                                       {"REPRISE_FACTS", scratch_.path("facts")},
                                       {"REPRISE_RUN_LOG", scratch_.path("log")},
                                       {"REPRISE_POLICY", "reprise"},
                                       {"REPRISE_WAIT_FOR_PLAN", "1"}});
    Ran ran;
    ran.outcome = run(argv, merged(environment, more));
    const auto ends = lines_of(read_run_log(scratch_.path("log")), "end");
    if (ends.empty()) return ran;
    ran.planned = ends.back()["iterations_planned"];
    ran.repeated = ends.back()["repeated_launches"];
    return ran;
  }
  // Of `reprise`, with the same device and the same facts.
  Outcome reprise(const Words& arguments) const {
    return run(joined({built("bin/reprise")}, arguments),
               launching(merged(merged(kSlow, natures_), {{"REPRISE_FACTS", scratch_.path("facts")}})));
  }
  facts::Store store() const { return facts::Store(scratch_.path("facts")); }
  int seed() const { return seed_; }

 private:
  Scratch scratch_;
  int seed_;
  Environment natures_;
};

// Of the programs of some seeds, those in whose plans something is recomputed.
std::vector<int> recomputing_seeds(int count) {
  static auto& known = *new std::vector<int>;
  static int next = 1;
  for (; static_cast<int>(known.size()) < count && next < 60; ++next) {
    if (Learned(next).managed(program(next)).repeated > 0) known.push_back(next);
  }
  return {known.begin(), known.begin() + std::min<std::ptrdiff_t>(count, std::ssize(known))};
}

TEST(Recompute, GivesTheSameBits) {
  const std::vector<int> seeds = recomputing_seeds(2);
  ASSERT_EQ(seeds.size(), 2u) << "nothing is ever recomputed";
  uint64_t repeated = 0;
  for (const int seed : seeds) {
    const Learned learned(seed);
    const Outcome plain = learned.plain(program(seed));
    const Ran ran = learned.managed(program(seed));
    EXPECT_EQ(ran.outcome.exit_code, 0) << ran.outcome.err;
    EXPECT_EQ(ran.outcome.out, plain.out) << seed << ran.outcome.err;
    repeated += ran.repeated;
    const Ran strict = learned.managed(program(seed), {{"REPRISE_SAFETY", "strict"}});
    EXPECT_EQ(strict.outcome.out, plain.out) << seed << strict.outcome.err;
    EXPECT_EQ(strict.repeated, 0u) << "strict drops nothing without a copy";
  }
  EXPECT_GT(repeated, 0u);
}

// What `reprise plan` makes is what `reprise replay` takes, with the same --safety; with another one it says so at
// once.
TEST(Recompute, ReplayTakesWhatPlanMakes) {
  const std::vector<int> seeds = recomputing_seeds(1);
  ASSERT_EQ(seeds.size(), 1u) << "nothing is ever recomputed";
  const Learned learned(seeds[0]);
  const Scratch scratch;
  const std::string plan = scratch.path("a.plan"), log = scratch.path("a.run");
  learned.managed(program(seeds[0]), {{"REPRISE_TRACE", scratch.path("a.trace")}});
  well(learned.reprise(
      {"plan", scratch.path("a.trace"), "--budget", "55%", "--policy", "reprise", "--safety", "trusted", "-o", plan}));
  const auto replay = [&](const std::string& safety) {
    Words command = joined({"replay", "--device", "sim", "--safety", safety, "--plan", plan, "--run-log", log, "--"},
                           program(seeds[0]));
    return learned.reprise(command);
  };
  const Outcome trusted = well(replay("trusted"));
  EXPECT_EQ(trusted.out, learned.plain(program(seeds[0])).out);
  EXPECT_GT(lines_of(read_run_log(log), "end").at(0).at("repeated_launches"), 0) << "the test tests nothing";
  const Outcome strict = replay("strict");
  EXPECT_EQ(strict.exit_code, 1);
  EXPECT_EQ(strict.out, "") << "nothing was started";
  EXPECT_TRUE(has(strict.err, "a.plan: drops what it recomputes"));
  EXPECT_TRUE(has(strict.err, "run with --safety trusted"));
}

// Every kernel seems to be pure, to overwrite its first operand and to read the others.
void forge(facts::Store store) {
  Words problems;
  for (facts::KernelFacts known : store.all(&problems)) {
    ASSERT_TRUE(store.remove(known.kernel, known.device).ok());
    known.launches = known.equal = 8;
    known.unequal = 0;
    for (size_t i = 0; i < known.slots.size(); ++i) {
      facts::SlotEvidence& slot = known.slots[i];
      slot.overwritten = i == 0 ? 8 : 0;
      slot.kept = i == 0 ? 0 : 8;
      slot.written = slot.updated = slot.same = 0;
    }
    ASSERT_TRUE(store.add(known).ok());
  }
}

// Nothing that facts say is taken on trust: the lines are the plain run's, or an error is told and they end there.
TEST(Recompute, FalseFactsAreToldOrHarmless) {
  int noticed = 0;
  for (int seed = 1; seed <= 8; ++seed) {
    const Learned learned(seed);
    forge(learned.store());
    const Outcome plain = learned.plain(program(seed));
    for (const char* safety : {"trusted", "strict"}) {
      const Ran ran = learned.managed(program(seed), {{"REPRISE_SAFETY", safety}});
      const bool noted = bool{has_cause(ran.outcome.err, Cause::repeat_was_other)};
      if (ran.outcome.exit_code == 0) {
        EXPECT_EQ(ran.outcome.out, plain.out) << seed << " " << safety << ran.outcome.err;
      } else {
        EXPECT_TRUE(noted) << seed << " " << safety << ran.outcome.err << ran.outcome.out;
        const std::string before = ran.outcome.out.substr(0, ran.outcome.out.find("error:"));
        EXPECT_EQ(plain.out.substr(0, before.size()), before) << seed << ran.outcome.err;
      }
      noticed += noted ? 1 : 0;
    }
  }
  EXPECT_GT(noticed, 0) << "no false fact was ever used: this proves nothing";
}

// Where the plan that rested on a false fact costs nothing but itself, the next one does without facts.
TEST(Recompute, APlanThatAFalseFactEndsIsReplaced) {
  int replaced = 0;
  for (int seed = 6; seed <= 24 && replaced < 2; ++seed) {
    const Learned learned(seed);
    forge(learned.store());
    const Words argv = program(seed, {}, 24);
    const Ran ran = learned.managed(argv, {{"REPRISE_BUDGET", "70%"}});
    if (!has_cause(ran.outcome.err, Cause::repeat_differed)) continue;
    EXPECT_EQ(ran.outcome.exit_code, 0) << seed << ran.outcome.err;
    EXPECT_EQ(ran.outcome.out, learned.plain(argv).out) << seed << ran.outcome.err;
    EXPECT_GT(ran.planned, 8u) << seed << ": on demand ever after";
    ++replaced;
  }
  EXPECT_EQ(replaced, 2) << "no false fact was found to be one in time";
}

// What is left of a fact that was found wrong is that the kernel is not pure, so that the next run does better.
TEST(Recompute, AFactThatWasWrongIsNotBelievedAgain) {
  for (int seed = 1; seed <= 40; ++seed) {
    const Learned learned(seed);
    forge(learned.store());
    const Ran ran = learned.managed(program(seed));
    if (!has_cause(ran.outcome.err, Cause::repeat_was_other)) continue;
    Words problems;
    const auto known = learned.store().all(&problems);
    const auto is_disproved = [](const facts::KernelFacts& one) {
      return one.unequal == 1 && one.launches == 0 && one.slots.empty() && facts::pure(one) == facts::Answer::no;
    };
    EXPECT_TRUE(std::any_of(known.begin(), known.end(), is_disproved)) << seed;
    return;
  }
  FAIL() << "no false fact was ever used";
}

}  // namespace
}  // namespace reprise::e2e
