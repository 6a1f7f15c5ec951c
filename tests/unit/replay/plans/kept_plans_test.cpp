// Plans that are kept for a program's next run: what the folder holds, what leaves it, and what is not taken from it.
#include "replay/plans/kept_plans.h"

#include "replay/plans/plan_words.h"
#include "tests/support/test.h"

namespace reprise::replay {
namespace {

namespace fs = std::filesystem;

class KeptPlansTest : public ::testing::Test {
 protected:
  KeptPlans store(const PlanUse& use, KeptLimits limits = {}) const {
    return {scratch_.path("plans"), scratch_.path("facts"), use, limits};
  }
  KeptPlans store(KeptLimits limits = {}) const { return store(use_, limits); }

  // One launch on a tensor that lives on; each `loop` is another one.
  plan::Plan plan(uint64_t loop, const PlanUse& use) const {
    plan::Plan made;
    made.program_hash = use.program;
    made.safety = use.safety;
    made.chunk_bytes = use.chunk_bytes;
    made.budget_bytes = 10 * made.chunk_bytes;
    made.tensors.resize(1);
    made.tensors[0].size = 100;
    made.calls.resize(1);
    made.calls[0].op = trace::OpKind::launch;
    made.calls[0].signature = loop;
    made.calls[0].name = "a_kernel";
    made.calls[0].vertex = 0;
    made.calls[0].accesses = {{0, trace::kAccessRead | trace::kAccessWrite, 0, 0, 8}};
    made.vertices.resize(1);
    made.vertices[0].call = 0;
    made.order = {0};
    return made;
  }
  plan::Plan plan(uint64_t loop) const { return plan(loop, use_); }

  std::vector<uint64_t> loops(const KeptPlans& store) {
    std::vector<uint64_t> found;
    problems_.clear();
    for (const KeptPlan& kept : store.load(&problems_)) found.push_back(kept.plan.calls[0].signature);
    return found;
  }
  std::vector<std::string> files() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(scratch_.path("plans"))) found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    return found;
  }
  // Of launches that leave their operand alone, as far as was seen.
  facts::KernelFacts facts(uint64_t kernel) const {
    facts::KernelFacts known;
    known.kernel = kernel;
    known.name = "a_kernel";
    known.device = use_.device;
    known.launches = known.equal = 4;
    known.first_day = known.last_day = "2026-11-28";
    known.slots.emplace_back();
    known.slots[0].parameter_offset = 8;
    known.slots[0].kept = 4;
    return known;
  }

  const PlanUse use_ = {1, "train.py", "a device", "60%", "auto", plan::Safety::strict, 4096};
  const Scratch scratch_;
  std::vector<std::string> problems_;
};

TEST_F(KeptPlansTest, ComeBackInTheOrderOfTheLatestRun) {
  KeptPlans first = store();
  for (const uint64_t loop : {7u, 3u, 5u}) ASSERT_TRUE(first.keep(plan(loop)).ok());
  ASSERT_TRUE(first.keep(plan(7)).ok()) << "a better one keeps the place of its loop";
  EXPECT_EQ(loops(store()), (std::vector<uint64_t>{7, 3, 5}));
  KeptPlans second = store();
  for (const KeptPlan& kept : second.load(&problems_)) {
    if (kept.plan.calls[0].signature == 5) second.used(kept.path);
  }
  ASSERT_TRUE(second.keep(plan(9)).ok());
  EXPECT_EQ(loops(store()), (std::vector<uint64_t>{5, 9, 7, 3}));
  EXPECT_EQ(problems_, std::vector<std::string>());
}

TEST_F(KeptPlansTest, AreOfOneUse) {
  ASSERT_TRUE(store().keep(plan(7)).ok());
  std::vector<PlanUse> others(7, use_);
  others[0].program = 2;
  others[1].script = "other.py";
  others[2].device = "another device";
  others[3].budget = "50%";
  others[4].policy = "disco";
  others[5].safety = plan::Safety::trusted;
  others[6].chunk_bytes = 8192;
  for (const PlanUse& other : others) EXPECT_EQ(loops(store(other)), std::vector<uint64_t>());
  EXPECT_EQ(loops(store()), std::vector<uint64_t>{7});
}

TEST_F(KeptPlansTest, TheOldestLeave) {
  for (uint64_t run = 0; run < 6; ++run) {
    KeptLimits limits;
    limits.plans_of_program = 3;
    KeptPlans one = store(limits);
    ASSERT_TRUE(one.keep(plan(run + 1)).ok());
  }
  EXPECT_EQ(loops(store()), (std::vector<uint64_t>{6, 5, 4}));
  PlanUse other = use_;
  for (uint64_t program = 2; program < 6; ++program) {
    other.program = program;
    KeptLimits limits;
    limits.programs = 2;
    KeptPlans one = store(other, limits);
    ASSERT_TRUE(one.keep(plan(1, other)).ok());
  }
  EXPECT_EQ(files().size(), 2u) << "of the two programs that ran last";
  EXPECT_EQ(loops(store(other)), std::vector<uint64_t>{1});
}

TEST_F(KeptPlansTest, BytesAreBounded) {
  const uint64_t bytes = plan::serialize(plan(1)).size();
  KeptLimits limits;
  limits.bytes = 2 * bytes;
  for (uint64_t loop = 1; loop < 5; ++loop) {
    KeptPlans one = store(limits);
    ASSERT_TRUE(one.keep(plan(loop)).ok());
  }
  EXPECT_EQ(loops(store()), (std::vector<uint64_t>{4, 3}));
  limits.bytes_of_plan = bytes - 1;
  KeptPlans none = store(limits);
  EXPECT_FALSE(none.keep(plan(9)).ok());
  EXPECT_EQ(loops(none), std::vector<uint64_t>()) << "as large a file is not even read";
}

TEST_F(KeptPlansTest, WhatCannotBeReadIsRemovedWithALine) {
  KeptPlans one = store();
  for (const uint64_t loop : {1u, 2u, 3u}) ASSERT_TRUE(one.keep(plan(loop)).ok());
  const std::vector<std::string> all = files();
  std::string cut = read_file(all[0]);
  std::ofstream(all[0], std::ios::trunc) << cut.substr(0, cut.size() / 2);
  std::ofstream(all[1], std::ios::trunc) << plan::serialize(plan(1, {2, "", "", "", "", plan::Safety::strict, 4096}));
  std::ofstream(scratch_.path("plans") + "/notes.plan") << "mine";
  EXPECT_EQ(loops(one).size(), 1u);
  EXPECT_EQ(problems_.size(), 2u);
  EXPECT_EQ(files().size(), 2u) << "what is not ours stays";
}

TEST_F(KeptPlansTest, OtherVersionsAreNotLookedAt) {
  std::string bytes = plan::serialize(plan(1));
  KeptPlans one = store();
  ASSERT_TRUE(one.keep(plan(1)).ok());
  ++bytes[8];  // behind the magic: the version
  std::ofstream(files()[0], std::ios::trunc) << bytes;
  EXPECT_EQ(loops(one), std::vector<uint64_t>());
  EXPECT_EQ(problems_.size(), 1u);
}

TEST_F(KeptPlansTest, WritersAtOnceLeaveWholePlans) {
  constexpr uint64_t kWriters = 4;
  for (uint64_t writer = 0; writer < kWriters; ++writer) {
    if (fork() != 0) continue;
    KeptPlans one = store();
    bool kept = true;
    for (uint64_t loop = 1; loop < 20; ++loop) kept = one.keep(plan(loop % 5 + 1)).ok() && kept;
    _exit(kept ? 0 : 1);
  }
  for (uint64_t writer = 0; writer < kWriters; ++writer) {
    int status = 0;
    wait(&status);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(loops(store()).size(), 5u);
  EXPECT_EQ(problems_, std::vector<std::string>());
}

TEST_F(KeptPlansTest, RestOnFactsThatAreStillKnown) {
  plan::Plan clean = plan(1);
  clean.calls[0].accesses[0].mode |= trace::kAccessUnchanged;
  clean.calls[0].pure = true;
  ASSERT_TRUE(store().keep(clean).ok());
  EXPECT_EQ(loops(store()), std::vector<uint64_t>()) << "nothing is known of the kernel any more";
  facts::Store known(scratch_.path("facts"));
  ASSERT_TRUE(known.add(facts(11)).ok());
  EXPECT_EQ(loops(store()), std::vector<uint64_t>{1});
  facts::KernelFacts writes = facts(11);
  writes.slots[0].written = 1;
  writes.slots[0].kept = 0;
  ASSERT_TRUE(known.add(writes).ok());
  EXPECT_EQ(loops(store()), std::vector<uint64_t>()) << "a launch did more since";
  EXPECT_EQ(problems_, std::vector<std::string>());
}

TEST_F(KeptPlansTest, RestOnShapesThatAreStillAudited) {
  PlanUse use = use_;
  use.safety = plan::Safety::audited;
  facts::Store known(scratch_.path("facts"));
  facts::KernelFacts audited = facts(11);
  audited.shapes = {{5, facts::kAuditedLaunches}};
  ASSERT_TRUE(known.add(audited).ok());
  plan::Plan rests = plan(1, use);
  rests.calls[0].audited = 11;
  ASSERT_TRUE(store(use).keep(rests).ok());
  EXPECT_EQ(loops(store(use)), std::vector<uint64_t>{1});
  facts::KernelFacts strays = facts(11);
  strays.strayed = 1;
  ASSERT_TRUE(known.add(strays).ok());
  EXPECT_EQ(loops(store(use)), std::vector<uint64_t>());
  ASSERT_TRUE(known.remove(11, use.device).ok());
  audited.shapes = {{6, facts::kAuditedLaunches}};
  ASSERT_TRUE(known.add(audited).ok());
  EXPECT_EQ(loops(store(use)), std::vector<uint64_t>()) << "another shape of it is audited";
}

TEST(ScriptOf, IsTheFirstWordThatNamesAFile) {
  const Scratch scratch;
  const std::string script = scratch.path("train.py");
  std::ofstream{script} << "pass\n";
  const std::string real = fs::canonical(script);
  EXPECT_EQ(script_of({"python", "-u", script, "--steps", "9"}), real);
  EXPECT_EQ(script_of({"python", script, "--steps", "10"}), real);
  EXPECT_EQ(script_of({"python", "-m", "train.it", "--steps", "10"}), "-m train.it");
  EXPECT_EQ(script_of({"trainer", "--steps", "10", script}), "") << "a program of its own";
  EXPECT_EQ(script_of({"trainer"}), "");
}

TEST(IsOfBudget, AllowsALittleLess) {
  plan::Plan plan;
  plan.chunk_bytes = 1;
  plan.budget_bytes = 1000;
  for (const uint64_t budget : {1000u, 1001u, 1060u}) EXPECT_TRUE(is_of_budget(plan, budget)) << budget;
  for (const uint64_t budget : {999u, 1100u, 2000u}) EXPECT_FALSE(is_of_budget(plan, budget)) << budget;
}

}  // namespace
}  // namespace reprise::replay
