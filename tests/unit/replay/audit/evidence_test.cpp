// What an audit concludes from launches that end and launches that fault, and what it keeps of that.
#include "replay/audit/evidence.h"

#include "tests/support/test.h"

namespace reprise::replay {
namespace {

namespace fs = std::filesystem;
using facts::Answer;

constexpr uint64_t kIn = 0x1000;
constexpr uint64_t kOut = 0x2000;
constexpr uint64_t kTable = 0x3000;
constexpr uint64_t kAway = 0x4000;

// kernel(const in, out, table of addresses): `in` is mapped to be read only.
AuditedLaunch launch_of_three() {
  AuditedLaunch launch;
  launch.shape = 5;
  launch.operands = {{0, kIn, 64, true}, {8, kOut, 64, false}, {16, kTable, 32, false, {kAway}}};
  return launch;
}

TEST(BlameTest, AnAddressSaysWhichItWas) {
  const Blame wrote = blame(launch_of_three(), {true, kIn});
  EXPECT_EQ(wrote.cause, FaultCause::wrote);
  EXPECT_EQ(wrote.operands, std::vector<uint32_t>{0});
  const Blame reached = blame(launch_of_three(), {true, kAway});
  EXPECT_EQ(reached.cause, FaultCause::reached);
  EXPECT_EQ(reached.operands, std::vector<uint32_t>{16}) << "it held the address";
  const Blame unexplained = blame(launch_of_three(), {true, 0x9000});
  EXPECT_EQ(unexplained.cause, FaultCause::reached);
  EXPECT_TRUE(unexplained.operands.empty());
  EXPECT_EQ(blame(launch_of_three(), {true, 0}).cause, FaultCause::reached) << "an address in no tensor";
}

TEST(BlameTest, WithoutAnAddressOperandsThatCouldOnlyBeReadAreDoubtedFirst) {
  AuditedLaunch launch = launch_of_three();
  EXPECT_EQ(blame(launch, {}).cause, FaultCause::wrote);
  launch.operands[0].read_only = false;
  EXPECT_EQ(blame(launch, {}).cause, FaultCause::reached);
  EXPECT_EQ(blame(launch, {}).operands, std::vector<uint32_t>{16});
}

class EvidenceTest : public testing::Test {
 protected:
  EvidenceTest() {
    command_.kernel = 77;
    command_.name = "three";
    evidence_.open(folder_, "a device");
  }
  ~EvidenceTest() override { fs::remove_all(folder_); }
  void launch(uint64_t shape) {
    AuditedLaunch one = launch_of_three();
    one.shape = shape;
    evidence_.begin(command_, shape);
    evidence_.passed(command_, one);
  }
  facts::KernelFacts kept() const {
    const auto known = facts::Store(folder_).load(77, "a device");
    return known.ok() ? known.value() : facts::KernelFacts{};
  }

  const std::string folder_ = testing::TempDir() + "evidence" + std::to_string(getpid());
  Command command_{};
  Evidence evidence_;
};

TEST_F(EvidenceTest, LaunchesOfAShapeAddUpInTheCache) {
  for (uint64_t i = 1; i < facts::kAuditedLaunches; ++i) launch(5);
  EXPECT_EQ(facts::audited(kept(), 5), Answer::unknown);
  launch(5);
  EXPECT_EQ(facts::audited(kept(), 5), Answer::yes) << "at once: the process may be lost";
  EXPECT_EQ(facts::find_slot(kept(), 0)->guarded, facts::kAuditedLaunches);
  EXPECT_EQ(facts::find_slot(kept(), 8)->guarded, 0u);
  launch(6);
  EXPECT_EQ(facts::audited_launches(kept()), facts::kAuditedLaunches);
  evidence_.keep();
  EXPECT_EQ(facts::audited_launches(kept()), facts::kAuditedLaunches + 1);
  EXPECT_EQ(facts::audited(kept(), 6), Answer::unknown);
}

TEST_F(EvidenceTest, ALaunchThatStraysIsKeptForAllShapes) {
  for (uint64_t i = 0; i < facts::kAuditedLaunches; ++i) launch(5);
  evidence_.begin(command_, 6);
  evidence_.failed(command_, launch_of_three(), blame(launch_of_three(), {true, kAway}));
  EXPECT_TRUE(evidence_.strayed(command_));
  EXPECT_EQ(facts::audited(kept(), 5), Answer::no);
  EXPECT_EQ(facts::find_slot(kept(), 16)->led, 1u);
  Evidence next;
  next.open(folder_, "a device");
  EXPECT_TRUE(next.strayed(command_)) << "the next process knows";
}

TEST_F(EvidenceTest, AnOperandThatWasWrittenIsNoLongerReadOnly) {
  facts::KernelFacts looked_at;
  looked_at.kernel = 77;
  looked_at.name = "three";
  looked_at.device = "a device";
  looked_at.first_day = looked_at.last_day = "2026-11-23";
  looked_at.slots = {{.kept = 4, .reached = 4, .least_bytes = 64, .most_bytes = 64}};
  ASSERT_TRUE(facts::Store(folder_).add(looked_at).ok());
  EXPECT_TRUE(evidence_.read_only(command_, 0));
  EXPECT_FALSE(evidence_.read_only(command_, 8));
  evidence_.begin(command_, 5);
  evidence_.failed(command_, launch_of_three(), blame(launch_of_three(), {true, kIn}));
  EXPECT_FALSE(evidence_.read_only(command_, 0));
  EXPECT_FALSE(evidence_.strayed(command_));
  EXPECT_EQ(facts::writes(kept(), 0), Answer::yes);
}

// A launch that could not be covered, as the device was busy, takes nothing back; a kernel none of whose could is told
// so.
TEST_F(EvidenceTest, WhatIsToldOfAKernelIsWhatItsAuditedLaunchesShowed) {
  const std::string path = folder_ + ".run";
  const auto told = [&] {
    RunLogWriter log;
    log.open(path.c_str());
    evidence_.tell(log);
    log.flush();
    return read_file(path);
  };
  evidence_.pass(command_, "the device was busy");
  EXPECT_TRUE(has(told(), "\"outcome\":\"never\",\"why\":\"the device was busy\""));
  launch(5);
  EXPECT_TRUE(has(told(), "\"outcome\":\"too_few\""));
  for (uint64_t i = 0; i < facts::kAuditedLaunches; ++i) launch(5);
  EXPECT_TRUE(has(told(), "\"outcome\":\"audited\",\"launches\":6,\"shapes\":1,\"audited_shapes\":1"));
  evidence_.begin(command_, 5);
  evidence_.failed(command_, launch_of_three(), blame(launch_of_three(), {true, kAway}));
  EXPECT_TRUE(has(told(), "\"outcome\":\"strayed\""));
  fs::remove(path);
}

// What comes once is not waited for; what comes again has to be audited, and then nothing new may come for a while.
TEST_F(EvidenceTest, EnoughIsWhenNothingNewComes) {
  launch(1);
  for (int i = 0; i < 200; ++i) launch(5);
  EXPECT_TRUE(evidence_.enough());
  launch(6);
  EXPECT_FALSE(evidence_.enough());
  for (int i = 0; i < 250; ++i) launch(5);
  EXPECT_FALSE(evidence_.enough());
  for (int i = 0; i < 250; ++i) launch(5);
  EXPECT_TRUE(evidence_.enough());
  command_.kernel = 0;
  command_.name = "another";
  evidence_.pass(command_, "it has no identity");
  EXPECT_FALSE(evidence_.enough());
}

}  // namespace
}  // namespace reprise::replay
